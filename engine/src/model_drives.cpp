// Tendons, transmissions and actuators, and the forces on links that need no contact: gravity compensation and the medium.
#include <algorithm>
#include <cmath>

#include "model_builder.hpp"

namespace revolute {

void ModelBuilder::add_transmission(Transmission transmission) {
  transmission.entry = out_.model_.ntransmission_entry;
  out_.model_.ntransmission_entry += out_.supports_[transmission.support].count;
  out_.transmissions_.push_back(transmission);
}

void ModelBuilder::add_tendons() {
  out_.model_.ntendon = int(in_.ten_stiffness.size());
  for (std::size_t t = 0; t < in_.ten_stiffness.size(); ++t) {
    Transmission transmission{};
    if (in_.ten_jointnum[t] > 0)
      add_tendon_joints(t, transmission);
    else
      add_path(t, transmission);
    add_transmission(transmission);
    out_.tendons_.push_back(tendon(t));
  }
}

Tendon ModelBuilder::tendon(std::size_t t) const {
  Tendon out{};
  out.stiffness = in_.ten_stiffness[t];
  out.damping = in_.ten_damping[t];
  out.armature = in_.ten_armature[t];
  std::copy_n(&in_.ten_lengthspring[2 * t], 2, out.spring);
  out.limited = in_.ten_limited[t] != 0;
  std::copy_n(&in_.ten_range[2 * t], 2, out.range);
  out.margin = in_.ten_margin[t];
  out.frictionloss = in_.ten_frictionloss[t];
  out.force_limited = in_.ten_actfrclimited[t] != 0;
  std::copy_n(&in_.ten_actfrcrange[2 * t], 2, out.force_range);
  if (!soft()) return out;
  out.weight = in_.ten_invweight0[t];
  out.limit_softness = softness(in_.ten_solref_lim, in_.ten_solimp_lim, t);
  out.friction_softness = softness(in_.ten_solref_fri, in_.ten_solimp_fri, t);
  return out;
}

void ModelBuilder::add_tendon_joints(std::size_t t, Transmission& out) {
  out.type = TransmissionType::joints;
  out.first = int(out_.tendon_joints_.size());
  out.count = in_.ten_jointnum[t];
  std::map<int, int> dofs;
  for (int i = in_.ten_jointadr[t]; i < in_.ten_jointadr[t] + out.count; ++i) {
    const int joint = in_.ten_joint[i];
    out_.tendon_joints_.push_back({in_.jnt_dofadr[joint], in_.jnt_qposadr[joint], in_.ten_coef[i]});
    dofs[in_.jnt_dofadr[joint]] = 0;
  }
  out.support = add_support({dofs.begin(), dofs.end()});
}

void ModelBuilder::add_path(std::size_t t, Transmission& out) {
  out.type = TransmissionType::path;
  out.first = int(out_.path_segments_.size());
  out.count = in_.ten_segmentnum[t];
  std::vector<int> links;
  for (int i = in_.ten_segmentadr[t]; i < in_.ten_segmentadr[t] + out.count; ++i) {
    PathSegment segment{};
    segment.link_a = body_link_[in_.seg_body1[i]];
    segment.link_b = body_link_[in_.seg_body2[i]];
    place(in_.seg_body1[i], &in_.seg_pos1[3 * i], segment.point_a);
    place(in_.seg_body2[i], &in_.seg_pos2[3 * i], segment.point_b);
    segment.divisor = in_.seg_divisor[i];
    segment.wrap = in_.seg_wrap[i];
    links.insert(links.end(), {segment.link_a, segment.link_b});
    if (segment.wrap >= 0) links.push_back(body_link_[in_.wrap_body[segment.wrap]]);
    out_.path_segments_.push_back(segment);
  }
  out.support = support_of_links(links);
}

void ModelBuilder::add_path_wraps() {
  for (std::size_t i = 0; i < in_.wrap_body.size(); ++i) {
    PathWrap wrap{};
    const int body = in_.wrap_body[i], side = in_.wrap_sidebody[i];
    wrap.cylinder = in_.wrap_cylinder[i] != 0;
    wrap.link = body_link_[body];
    place(body, &in_.wrap_pos[3 * i], wrap.position);
    turn(body, &in_.wrap_quat[4 * i], wrap.rotation);
    wrap.radius = in_.wrap_radius[i];
    wrap.sided = side >= 0;
    wrap.side_link = side >= 0 ? body_link_[side] : -1;
    if (side >= 0) place(side, &in_.wrap_side[3 * i], wrap.side);
    out_.path_wraps_.push_back(wrap);
  }
}

void ModelBuilder::add_other_transmission(int row, int actuator) {
  Transmission out{};
  out.type = TransmissionType(in_.trn_type[row]);
  out.actuator = actuator;
  if (out.type == TransmissionType::body) {
    out.body = in_.trn_body[row];
    out.support = support_of_all();
    out_.model_.adhesive = true;
    return add_transmission(out);
  }
  std::copy_n(&in_.trn_gear[6 * row], 6, out.gear);
  out.rod = in_.trn_rod[row];
  if (out.type == TransmissionType::ball || out.type == TransmissionType::free) {
    const int joint = in_.trn_joint[row];
    out.dof = in_.jnt_dofadr[joint];
    out.qpos = in_.jnt_qposadr[joint];
    out.in_parent = in_.trn_inparent[row] != 0;
    std::vector<std::pair<int, int>> dofs;
    const int count = out.type == TransmissionType::free ? 6 : 3;
    for (int i = 0; i < count; ++i) dofs.push_back({out.dof + i, 0});
    out.support = add_support(std::move(dofs));
    return add_transmission(out);
  }
  const int body = in_.trn_body[row], reference = in_.trn_refbody[row];
  out.referred = reference >= 0;
  out.link_a = body_link_[body];
  out.link_b = out.referred ? body_link_[reference] : -1;
  place(body, &in_.trn_pos[3 * row], out.position_a);
  turn(body, &in_.trn_quat[4 * row], out.rotation_a);
  if (out.referred) {
    place(reference, &in_.trn_refpos[3 * row], out.position_b);
    turn(reference, &in_.trn_refquat[4 * row], out.rotation_b);
  }
  out.support = support(out.link_a, out.link_b);
  add_transmission(out);
}

Muscle ModelBuilder::muscle(const double* prm, const double* lengths) {
  Muscle out{};
  std::copy_n(prm, 2, out.range);
  out.force = prm[2];
  out.lmin = prm[4];
  out.lmax = prm[5];
  out.fpmax = prm[7];
  out.fvmax = prm[8];
  constexpr double least = 1e-15;
  out.lowest = lengths[0];
  out.optimum = std::max(least, (lengths[1] - lengths[0]) / std::max(least, prm[1] - prm[0]));
  out.fastest = std::max(least, out.optimum * prm[6]);
  return out;
}

void ModelBuilder::add_activation(int a, Actuator& out) const {
  out.dynamics = ActivationType(in_.act_dyn[a]);
  out.act = in_.act_adr[a];
  out.early = in_.act_early[a] != 0;
  out.act_limited = in_.act_actlimited[a] != 0;
  std::copy_n(&in_.act_dynprm[3 * a], 3, out.time);
  std::copy_n(&in_.act_actrange[2 * a], 2, out.act_range);
  const double h = in_.timestep;
  const bool filter = out.dynamics == ActivationType::filter || out.dynamics == ActivationType::filterexact;
  if (filter) out.time[0] = std::max(1e-15, out.time[0]);
  out.act_step =
      out.dynamics == ActivationType::filterexact ? -out.time[0] * std::expm1(-h / out.time[0]) : h;
}

void ModelBuilder::add_actuators() {
  add_path_wraps();
  for (int a = 0; a < in_.nu; ++a) {
    Actuator actuator{};
    actuator.dof = in_.act_dof[a];
    actuator.qpos = in_.act_qpos[a];
    actuator.transmission = in_.act_tendon[a];
    actuator.geared = in_.act_tendon[a] >= 0;
    if (in_.act_trn[a] >= 0) {
      actuator.transmission = int(out_.transmissions_.size());
      add_other_transmission(in_.act_trn[a], a);
      actuator.geared = out_.transmissions_.back().type == TransmissionType::slider_crank;
    }
    actuator.ctrl_limited = in_.act_ctrllimited[a] != 0;
    actuator.force_limited = in_.act_forcelimited[a] != 0;
    std::copy_n(&in_.act_ctrlrange[2 * a], 2, actuator.ctrl_range);
    std::copy_n(&in_.act_forcerange[2 * a], 2, actuator.force_range);
    add_activation(a, actuator);
    actuator.muscle_gain = in_.act_musclegain[a] != 0;
    actuator.muscle_bias = in_.act_musclebias[a] != 0;
    actuator.gain = muscle(&in_.act_musclegainprm[9 * a], &in_.act_lengthrange[2 * a]);
    actuator.bias = muscle(&in_.act_musclebiasprm[9 * a], &in_.act_lengthrange[2 * a]);
    out_.actuators_.push_back(actuator);
  }
  out_.model_.ntransmission = int(out_.transmissions_.size());
  const auto any = [](const Ints& flags) {
    return std::any_of(flags.begin(), flags.end(), [](int f) { return f; });
  };
  out_.model_.total_limits = any(in_.jnt_actfrclimited) || any(in_.ten_actfrclimited);
  out_.model_.tendon_inertia =
      std::any_of(in_.ten_armature.begin(), in_.ten_armature.end(), [](double a) { return a != 0; });
  out_.model_.tendon_friction =
      soft() && in_.dry_friction &&
      std::any_of(in_.ten_frictionloss.begin(), in_.ten_frictionloss.end(), [](double f) { return f > 0; });
}

// Adds gravity compensation, and the bodies with mass that a medium resists.
void ModelBuilder::add_link_forces() {
  Model& m = out_.model_;
  std::copy_n(in_.wind.data(), 3, m.wind);
  m.compensated =
      std::any_of(in_.body_gravcomp.begin(), in_.body_gravcomp.end(), [](double s) { return s != 0; });
  if (m.compensated) out_.map_.compensated = in_.body_gravcomp;
  out_.map_.medium.density = in_.density;
  out_.map_.medium.viscosity = in_.viscosity;
  if (in_.density <= 0 && in_.viscosity <= 0) return;
  for (int b = 1; b < in_.nbody; ++b) {
    if (body_link_[b] < 0 || in_.body_mass[b] < 1e-15 || add_medium_ellipsoids(b)) continue;
    MediumBody body{};
    body.link = body_link_[b];
    store(body_pose_[b].R * pose(&in_.body_ipos[3 * b], &in_.body_iquat[4 * b]).R, body.axes);
    out_.medium_bodies_.push_back(body);
    out_.map_.medium.bodies.push_back(b);
  }
  m.nmedium = int(out_.medium_bodies_.size());
  m.nellipsoid = int(out_.medium_ellipsoids_.size());
}

// Adds the shapes that a medium resists as ellipsoids; returns whether there are any. Then the inertia box does not count.
bool ModelBuilder::add_medium_ellipsoids(int body) {
  bool any = false;
  for (int g = 0; g < in_.ngeom; ++g) {
    const double* fluid = &in_.geom_fluid[12 * g];
    if (in_.geom_bodyid[g] != body || !(fluid[0] > 0)) continue;
    any = true;
    MediumEllipsoid out{};
    const Pose at = body_pose_[body] * pose(&in_.geom_pos[3 * g], &in_.geom_quat[4 * g]);
    out.link = body_link_[body];
    store(at.R, out.axes);
    store(at.p, out.position);
    std::copy_n(&in_.geom_semiaxes[3 * g], 3, out.half);
    out.density = in_.density;
    out.viscosity = in_.viscosity;
    out.blunt = fluid[1];
    out.slender = fluid[2];
    out.angular = fluid[3];
    out.kutta = fluid[4];
    out.magnus = fluid[5];
    std::copy_n(fluid + 6, 3, out.virtual_mass);
    std::copy_n(fluid + 9, 3, out.virtual_inertia);
    out_.medium_ellipsoids_.push_back(out);
  }
  return any;
}

}  // namespace revolute
