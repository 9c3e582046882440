// Translates a compiled MuJoCo model into the engine's links, shapes, contact candidates and paths.
#include "revolute/model/model_storage.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include "hulls.hpp"
#include "pose.hpp"
#include "revolute/model/pair_kinds.hpp"
#include "revolute/stages/pair_softness.hpp"
#include "shape_table.hpp"

namespace revolute {

namespace {

// A rotation whose third column is the axis.
Matrix3<double> frame_with_z(const Vector3<double>& axis) {
  const Vector3<double> z = (1.0 / std::sqrt(dot(axis, axis))) * axis;
  const Vector3<double> other = std::fabs(z.x) < 0.8 ? Vector3<double>{1, 0, 0} : Vector3<double>{0, 1, 0};
  Vector3<double> x = other - dot(other, z) * z;
  x = (1.0 / std::sqrt(dot(x, x))) * x;
  const Vector3<double> y = cross(z, x);
  return {{x.x, y.x, z.x, x.y, y.y, z.y, x.z, y.z, z.z}};
}

}  // namespace

class ModelBuilder {
 public:
  ModelBuilder(const MujocoArrays& in, ModelStorage& out) : in_(in), out_(out) {}

  void build() {
    check_sizes();
    add_options();
    add_bodies();
    add_dof_supports();
    find_single_free();
    add_tendons();
    add_actuators();
    add_link_forces();
    add_geoms();
    add_sites();
    add_candidates();
    if (in_.unlisted_pairs) add_filters();
    out_.near_pairs_.build(out_.model_, out_.dofs_, out_.candidates_, out_.geoms_);
    add_dof_constraints();
    add_equalities();
    add_parameters();
    point_model();
  }

 private:
  const MujocoArrays& in_;
  ModelStorage& out_;
  std::vector<int> body_link_;
  std::vector<Pose> body_pose_;  // in the link's frame
  std::map<std::pair<int, int>, int> path_of_, support_of_;
  std::vector<Path> chain_of_;  // of each degree of freedom, once listed

  static void expect(const char* name, std::size_t got, std::size_t wanted) {
    if (got != wanted)
      throw std::invalid_argument(std::string(name) + ": expected " + std::to_string(wanted) +
                                  " numbers, got " + std::to_string(got));
  }
  void check_sizes() const {
    const std::size_t nq = in_.nq, nv = in_.nv, nu = in_.nu, nb = in_.nbody, nj = in_.njnt, ng = in_.ngeom,
                      np = in_.pair_geom1.size();
    const std::vector<std::tuple<const char*, std::size_t, std::size_t>> sizes = {
        {"body_parentid", in_.body_parentid.size(), nb},
        {"body_pos", in_.body_pos.size(), 3 * nb},
        {"body_quat", in_.body_quat.size(), 4 * nb},
        {"body_mocapid", in_.body_mocapid.size(), nb},
        {"body_iquat", in_.body_iquat.size(), 4 * nb},
        {"jnt_type", in_.jnt_type.size(), nj},
        {"jnt_bodyid", in_.jnt_bodyid.size(), nj},
        {"jnt_qposadr", in_.jnt_qposadr.size(), nj},
        {"jnt_dofadr", in_.jnt_dofadr.size(), nj},
        {"jnt_limited", in_.jnt_limited.size(), nj},
        {"jnt_pos", in_.jnt_pos.size(), 3 * nj},
        {"jnt_axis", in_.jnt_axis.size(), 3 * nj},
        {"qpos0", in_.qpos0.size(), nq},
        {"geom_type", in_.geom_type.size(), ng},
        {"geom_bodyid", in_.geom_bodyid.size(), ng},
        {"geom_pos", in_.geom_pos.size(), 3 * ng},
        {"geom_quat", in_.geom_quat.size(), 4 * ng},
        {"geom_size", in_.geom_size.size(), 3 * ng},
        {"geom_rbound", in_.geom_rbound.size(), ng},
        {"geom_fluid", in_.geom_fluid.size(), 12 * ng},
        {"geom_semiaxes", in_.geom_semiaxes.size(), 3 * ng},
        {"site_bodyid", in_.site_bodyid.size(), std::size_t(in_.nsite)},
        {"site_pos", in_.site_pos.size(), 3 * std::size_t(in_.nsite)},
        {"site_quat", in_.site_quat.size(), 4 * std::size_t(in_.nsite)},
        {"hfield_ncol", in_.hfield_ncol.size(), in_.hfield_nrow.size()},
        {"hfield_size", in_.hfield_size.size(), 4 * in_.hfield_nrow.size()},
        {"geom_field", in_.geom_field.size(), ng},
        {"hull_adr", in_.hull_adr.size(), ng},
        {"hull_num", in_.hull_num.size(), ng},
        {"hull_polyadr", in_.hull_polyadr.size(), ng},
        {"hull_polynum", in_.hull_polynum.size(), ng},
        {"ray_adr", in_.ray_adr.size(), in_.ray_adr.empty() ? 0 : ng},
        {"ray_num", in_.ray_num.size(), in_.ray_adr.size()},
        {"pair_geom2", in_.pair_geom2.size(), np},
        {"pair_mu_from", in_.pair_mu_from.size(), np},
        {"pair_condim", in_.pair_condim.size(), np},
        {"pair_friction", in_.pair_friction.size(), 3 * np},
        {"pair_margin", in_.pair_margin.size(), np},
        {"pair_gap", in_.pair_gap.size(), np},
        {"eq_obj1", in_.eq_obj1.size(), in_.eq_type.size()},
        {"eq_obj2", in_.eq_obj2.size(), in_.eq_type.size()},
        {"eq_data", in_.eq_data.size(), 11 * in_.eq_type.size()},
        {"act_dof", in_.act_dof.size(), nu},
        {"act_qpos", in_.act_qpos.size(), nu},
        {"act_ctrllimited", in_.act_ctrllimited.size(), nu},
        {"act_forcelimited", in_.act_forcelimited.size(), nu},
        {"act_ctrlrange", in_.act_ctrlrange.size(), 2 * nu},
        {"act_forcerange", in_.act_forcerange.size(), 2 * nu},
        {"act_tendon", in_.act_tendon.size(), nu},
        {"act_trn", in_.act_trn.size(), nu},
        {"act_dyn", in_.act_dyn.size(), nu},
        {"act_adr", in_.act_adr.size(), nu},
        {"act_early", in_.act_early.size(), nu},
        {"act_actlimited", in_.act_actlimited.size(), nu},
        {"act_dynprm", in_.act_dynprm.size(), 3 * nu},
        {"act_actrange", in_.act_actrange.size(), 2 * nu},
        {"act_musclegain", in_.act_musclegain.size(), nu},
        {"act_musclebias", in_.act_musclebias.size(), nu},
        {"act_musclegainprm", in_.act_musclegainprm.size(), 9 * nu},
        {"act_musclebiasprm", in_.act_musclebiasprm.size(), 9 * nu},
        {"act_lengthrange", in_.act_lengthrange.size(), 2 * nu},
        {"jnt_actfrclimited", in_.jnt_actfrclimited.size(), nj},
        {"jnt_actgravcomp", in_.jnt_actgravcomp.size(), nj},
        {"jnt_actfrcrange", in_.jnt_actfrcrange.size(), 2 * nj},
        {"body_gravcomp", in_.body_gravcomp.size(), nb},
        {"wind", in_.wind.size(), 3}};
    for (const auto& [name, got, wanted] : sizes) expect(name, got, wanted);
    const MujocoArrays& m = in_;
#define REVOLUTE_EXPECT(name, array, wanted, ...) expect(#array, m.array.size(), std::size_t(wanted));
    REVOLUTE_PARAMETERS(REVOLUTE_EXPECT, REVOLUTE_EXPECT)
#undef REVOLUTE_EXPECT
    if (soft()) check_soft_sizes();
  }
  bool soft() const { return in_.contact_model == ContactModel::mujoco; }
  void check_soft_sizes() const {
    const std::size_t nv = in_.nv, nb = in_.nbody, nj = in_.njnt, ng = in_.ngeom, np = in_.pair_geom1.size(),
                      ne = in_.eq_type.size();
    const std::vector<std::tuple<const char*, std::size_t, std::size_t>> sizes = {
        {"body_invweight0", in_.body_invweight0.size(), 2 * nb},
        {"dof_invweight0", in_.dof_invweight0.size(), nv},
        {"jnt_solref", in_.jnt_solref.size(), 2 * nj},
        {"jnt_solimp", in_.jnt_solimp.size(), 5 * nj},
        {"jnt_margin", in_.jnt_margin.size(), nj},
        {"dof_solref", in_.dof_solref.size(), 2 * nv},
        {"dof_solimp", in_.dof_solimp.size(), 5 * nv},
        {"eq_solref", in_.eq_solref.size(), 2 * ne},
        {"eq_solimp", in_.eq_solimp.size(), 5 * ne},
        {"pair_weight", in_.pair_weight.size(), np},
        {"pair_solref", in_.pair_solref.size(), 2 * np},
        {"pair_solreffriction", in_.pair_solreffriction.size(), 2 * np},
        {"pair_solimp", in_.pair_solimp.size(), 5 * np},
        {"pair_friction5", in_.pair_friction5.size(), 5 * np}};
    for (const auto& [name, got, wanted] : sizes) expect(name, got, wanted);
  }
  static Softness softness(const Doubles& solref, const Doubles& solimp, std::size_t i) {
    Softness out;
    std::copy_n(&solref[2 * i], 2, out.solref);
    std::copy_n(&solimp[5 * i], 5, out.solimp);
    return out;
  }

  void add_options() {
    Model& m = out_.model_;
    static_cast<Options&>(m) = in_;
    m.nq = in_.nq;
    m.nv = in_.nv;
    m.nu = in_.nu;
    m.na = in_.na;
    m.nbody = in_.nbody;
    m.ngeom = in_.ngeom;
    m.njnt = in_.njnt;
    m.nsite = in_.nsite;
    m.integrator = Integrator(in_.integrator);
    m.friction_to_normal = in_.impratio;
    m.safe_solref = in_.refsafe;
    m.implicit_damping = in_.eulerdamp;
  }

  // --- bodies, joints, degrees of freedom --------------------------------------------------------------------------------

  void add_bodies() {
    body_link_.assign(in_.nbody, -1);
    body_pose_.assign(in_.nbody, identity());
    int joint = 0;
    for (int b = 1; b < in_.nbody; ++b) {
      const int parent = in_.body_parentid[b];
      int link = body_link_[parent];
      // the body frame before its joints move, in the frame of the link that carries it
      Pose at = body_pose_[parent] * pose(&in_.body_pos[3 * b], &in_.body_quat[4 * b]);
      if (in_.body_mocapid[b] >= 0) {
        add_mocap(b);
        continue;
      }
      for (; joint < in_.njnt && in_.jnt_bodyid[joint] == b; ++joint) add_joint(joint, link, at);
      body_link_[b] = link;
      body_pose_[b] = at;
      if (link >= 0) out_.dofs_[link].has_inertia = true;
    }
  }

  // Adds a mocap body, a child of the world without joints, with its own frame.
  void add_mocap(int b) {
    const std::size_t i = std::size_t(in_.body_mocapid[b]),
                      count = std::max(out_.mocap_pos_.size() / 3, i + 1);
    out_.model_.nmocap = int(count);
    out_.mocap_pos_.resize(3 * count);
    out_.mocap_quat_.resize(4 * count);
    std::copy_n(&in_.body_pos[3 * b], 3, &out_.mocap_pos_[3 * i]);
    std::copy_n(&in_.body_quat[4 * b], 4, &out_.mocap_quat_[4 * i]);
    body_link_[b] = mocap_link(int(i));
  }
  // World position of a point in the frame of a link or mocap body, at the poses of the file.
  Vector3<double> at_rest(int link, const Vector3<double>& p) const {
    if (!is_mocap(link)) return p;
    const Pose at = pose(&out_.mocap_pos_[3 * mocap_index(link)], &out_.mocap_quat_[4 * mocap_index(link)]);
    return at.p + at.R * p;
  }

  // Adds a joint on `link`. Afterwards `link` is the link that the joint moves, and `at` is the body frame in it.
  void add_joint(int j, int& link, Pose& at) {
    Joint joint{};
    joint.type = JointType(in_.jnt_type[j]);
    joint.qpos = in_.jnt_qposadr[j];
    joint.dof = in_.jnt_dofadr[j];
    joint.parent = link;
    joint.limited = in_.jnt_limited[j] != 0;
    joint.reference = in_.qpos0[joint.qpos];
    joint.force_limited = in_.jnt_actfrclimited[j] != 0;
    std::copy_n(&in_.jnt_actfrcrange[2 * j], 2, joint.force_range);
    joint.lifted = in_.jnt_actgravcomp[j] != 0;
    const Vector3<double> anchor = vector3<double>(&in_.jnt_pos[3 * j]);
    const bool along_axis = joint.type == JointType::prismatic || joint.type == JointType::revolute;
    const Matrix3<double> axes =
        along_axis ? frame_with_z(vector3<double>(&in_.jnt_axis[3 * j])) : identity().R;
    const Pose moved = {axes, anchor, quaternion_of(axes)};
    const Pose frame = at * moved;
    store(frame.R, joint.rotation);
    store(frame.p, joint.position);
    store(frame.q, joint.orientation);
    add_dofs(joint);
    if (joint.type == JointType::free) {
      at = identity();
    } else {
      at = {transpose(moved.R), -transpose_times(moved.R, anchor), conjugate(moved.q)};
    }
    link = int(out_.dofs_.size()) - 1;
    out_.joints_.push_back(joint);
  }

  void add_dofs(const Joint& joint) {
    if (joint.parent < 0) {
      const bool floating = joint.type == JointType::free;
      out_.tree_qpos_.push_back(floating ? joint.qpos : -1);
      double origin[3];
      store(at_rest(joint.parent, vector3<double>(joint.position)), origin);
      out_.tree_origin_.insert(out_.tree_origin_.end(), origin, origin + 3);
      ++out_.model_.ntree;
    }
    const int tree = joint.parent < 0 ? out_.model_.ntree - 1 : out_.dofs_[joint.parent].tree,
              first = joint.dof;
    const int parent = moved_link(joint.parent);
    const auto add = [&](int base, int carrier) {
      const int k = int(out_.dofs_.size());
      out_.dofs_.push_back({k == first ? parent : k - 1, base, carrier, tree, false});
      out_.dof_joints_.push_back(int(out_.joints_.size()));
    };
    switch (joint.type) {
      case JointType::free:
        for (int i = 0; i < 3; ++i) add(-1, -1);
        for (int i = 0; i < 3; ++i) add(first + 2, first + 5);
        break;
      case JointType::ball:
        for (int i = 0; i < 3; ++i) add(parent, first + 2);
        break;
      default:
        add(parent, first);
    }
  }

  // --- tendons and actuators ---------------------------------------------------------------------------------------------

  void place(int body, const double* local, double* out) const {
    store(body_pose_[body].p + body_pose_[body].R * vector3<double>(local), out);
  }
  void turn(int body, const double* quat, double* out) const {
    const double origin[3] = {0, 0, 0};
    store(body_pose_[body].R * pose(origin, quat).R, out);
  }
  // Returns the support of the degrees of freedom that move some of the links, but not all.
  int support_of_links(const std::vector<int>& links) {
    std::map<int, std::size_t> movers;
    for (int link : links)
      for (int k = link; k >= 0; k = out_.dofs_[k].parent) ++movers[k];
    std::vector<std::pair<int, int>> dofs;
    for (const auto& [k, count] : movers)
      if (count < links.size()) dofs.push_back({k, 0});
    return add_support(std::move(dofs));
  }
  int support_of_all() {
    std::vector<std::pair<int, int>> dofs;
    for (int k = 0; k < in_.nv; ++k) dofs.push_back({k, 0});
    return add_support(std::move(dofs));
  }
  void add_transmission(Transmission transmission) {
    transmission.entry = out_.model_.ntransmission_entry;
    out_.model_.ntransmission_entry += out_.supports_[transmission.support].count;
    out_.transmissions_.push_back(transmission);
  }
  void add_tendons() {
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
  Tendon tendon(std::size_t t) const {
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
  void add_tendon_joints(std::size_t t, Transmission& out) {
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
  void add_path(std::size_t t, Transmission& out) {
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
  void add_path_wraps() {
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
  void add_other_transmission(int row, int actuator) {
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

  static Muscle muscle(const double* prm, const double* lengths) {
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
  void add_activation(int a, Actuator& out) const {
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
  void add_actuators() {
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
  void add_link_forces() {
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
  bool add_medium_ellipsoids(int body) {
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

  // --- shapes and where they may touch -------------------------------------------------------------------------------------

  void add_height_fields() {
    const Doubles& data = in_.hfield_data;
    std::size_t first = 0;
    for (std::size_t f = 0; f < in_.hfield_nrow.size(); ++f) {
      const double* size = &in_.hfield_size[4 * f];
      HeightField field{};
      field.rows = in_.hfield_nrow[f];
      field.columns = in_.hfield_ncol[f];
      const std::size_t count = std::size_t(field.rows) * field.columns;
      if (field.rows < 2 || field.columns < 2 || first + count > data.size())
        throw std::invalid_argument(
            "hfield_data: expected 2 rows and columns or more, and a height for each");
      for (int i : {0, 1}) {
        field.half[i] = size[i];
        field.step[i] = 2 * size[i] / ((i == 0 ? field.columns : field.rows) - 1);
      }
      field.base = size[3];
      for (std::size_t i = first; i < first + count; ++i) out_.heights_.push_back(data[i] * size[2]);
      first += count;
      out_.height_fields_.push_back(field);
    }
    first = 0;
    for (HeightField& field : out_.height_fields_) {
      field.heights = out_.heights_.data() + first;
      first += std::size_t(field.rows) * field.columns;
    }
  }
  // The number of points at which a shape may touch a field: one for each prism that it may lie over.
  static int field_points(const HeightField& field, const Geom& geom) {
    double cells = 1;
    for (int i : {0, 1}) {
      const int all = (i == 0 ? field.columns : field.rows) - 1;
      cells *= std::min(double(all), std::ceil(2 * geom.bound / field.step[i]) + 1);
    }
    return int(std::min(2.0 * cells, double(most_field_points)));
  }

  void add_geoms() {
    add_height_fields();
    out_.triangles_ = in_.ray_triangles;
    for (int g = 0; g < in_.ngeom; ++g) {
      const int body = in_.geom_bodyid[g];
      const Pose at = body_pose_[body] * pose(&in_.geom_pos[3 * g], &in_.geom_quat[4 * g]);
      Geom geom{};
      const ShapeRow& row = shape_row(in_.geom_type[g]);
      geom.shape = row.shape;
      geom.link = body_link_[body];
      geom.body = body;
      for (const Transmission& of : out_.transmissions_)
        geom.adheres = geom.adheres || (of.type == TransmissionType::body && of.body == body);
      store(at.R, geom.rotation);
      store(at.p, geom.position);
      store(at.q, geom.orientation);
      row.measure(&in_.geom_size[3 * g], geom);
      geom.bound = in_.geom_rbound[g];
      geom.field = in_.geom_field[g];
      const bool is_field = geom.shape == Shape::height_field;
      if (is_field != (geom.field >= 0) || geom.field >= int(out_.height_fields_.size()) ||
          (is_field && !is_world(geom.link)))
        throw std::invalid_argument("geom_field: expected a height field fixed in the world, geom " +
                                    std::to_string(g));
      if (geom.shape == Shape::plane) std::copy_n(&in_.geom_size[3 * g], 2, geom.extent);
      if (!in_.ray_adr.empty()) {
        geom.first_triangle = in_.ray_adr[g];
        geom.triangles = in_.ray_num[g];
      }
      add_hull(in_, g, at, geom, out_.hulls_);
      out_.geoms_.push_back(geom);
    }
  }

  void add_sites() {
    for (int s = 0; s < in_.nsite; ++s) {
      const int body = in_.site_bodyid[s];
      const Pose at = body_pose_[body] * pose(&in_.site_pos[3 * s], &in_.site_quat[4 * s]);
      FixedFrame site{};
      site.link = body_link_[body];
      site.body = body;
      store(at.R, site.rotation);
      store(at.p, site.position);
      store(at.q, site.orientation);
      out_.sites_.push_back(site);
    }
  }

  // Ancestors of both links, leaf to root.
  int path(int link_a, int link_b) {
    const int below = moved_link(std::max(link_a, link_b)), above = moved_link(std::min(link_a, link_b));
    const auto found = path_of_.find({above, below});
    if (found != path_of_.end()) return found->second;
    out_.paths_.push_back(carries(above, below) ? chain(below) : merged_chains(above, below));
    return path_of_[{above, below}] = int(out_.paths_.size()) - 1;
  }
  // Whether `above`, the world or a link, is an ancestor of `below`.
  bool carries(int above, int below) const {
    while (below > above) below = out_.dofs_[below].parent;
    return below == above;
  }
  // A link and its ancestors. It is the end of the list of a leaf below it, so a long chain is listed once.
  Path chain(int link) {
    if (link < 0) return {0, 0};
    if (chain_of_.empty()) list_chains();
    return chain_of_[link];
  }
  void list_chains() {
    chain_of_.assign(in_.nv, {-1, 0});
    for (int leaf = in_.nv - 1; leaf >= 0; --leaf) {
      if (chain_of_[leaf].count > 0) continue;
      const int first = int(out_.path_dofs_.size());
      for (int k = leaf; k >= 0; k = out_.dofs_[k].parent) out_.path_dofs_.push_back(k);
      const int end = int(out_.path_dofs_.size());
      for (int i = first; i < end; ++i) {
        Path& suffix = chain_of_[out_.path_dofs_[i]];
        if (suffix.count == 0) suffix = {i, end - i};
      }
    }
  }
  Path merged_chains(int link_a, int link_b) {
    const int first = int(out_.path_dofs_.size());
    for (int a = link_a, b = link_b; a >= 0 || b >= 0;) {
      const int k = std::max(a, b);
      out_.path_dofs_.push_back(k);
      if (a == k) a = out_.dofs_[k].parent;
      if (b == k) b = out_.dofs_[k].parent;
    }
    return {first, int(out_.path_dofs_.size()) - first};
  }

  // mujoco: the degrees of freedom that move only one of the links; those that move both leave the constraint as it is.
  int support(int link_a, int link_b) {
    link_a = moved_link(link_a);
    link_b = moved_link(link_b);
    const auto found = support_of_.find({link_a, link_b});
    if (found != support_of_.end()) return found->second;
    std::vector<std::pair<int, int>> dofs;
    // leaf to root, until the chains meet
    for (int a = link_a, b = link_b; a != b;) {
      const int side = b > a, k = std::max(a, b);
      dofs.push_back({k, side});
      (side ? b : a) = out_.dofs_[k].parent;
    }
    return support_of_[{link_a, link_b}] = add_support(std::move(dofs));
  }
  // mujoco: the degrees of freedom that move either link. Two points that should coincide but do not, move against each other
  // when both turn with the same joint.
  int whole_support(int link_a, int link_b) {
    std::vector<std::pair<int, int>> dofs;
    for (int a = link_a, b = link_b; link_a != link_b && (a >= 0 || b >= 0);) {
      const int k = std::max(a, b);
      const bool of_a = a == k, of_b = b == k;
      dofs.push_back({k, of_a && of_b ? both_sides : int(of_b)});
      if (of_a) a = out_.dofs_[k].parent;
      if (of_b) b = out_.dofs_[k].parent;
    }
    return add_support(std::move(dofs));
  }
  // Adds degrees of freedom, each with its side.
  int add_support(std::vector<std::pair<int, int>> dofs) {
    std::sort(dofs.rbegin(), dofs.rend());
    Support support = {int(out_.support_dofs_.size()), int(dofs.size()), true, nullptr, nullptr};
    int k = dofs.empty() ? -1 : dofs[0].first;
    for (const auto& [dof, side] : dofs) {
      out_.support_dofs_.push_back(dof);
      out_.support_sides_.push_back(side);
      while (k > dof) k = out_.dofs_[k].parent;
      support.chain = support.chain && k == dof;
    }
    out_.supports_.push_back(support);
    return int(out_.supports_.size()) - 1;
  }
  PairMixing mixing(std::size_t i) {
    const int from = in_.pair_mu_from[i];
    PairMixing out = {from != 2, from != 1, soft() ? in_.pair_weight[i] : 0.0, -1};
    if (soft() ? !std::isnan(in_.pair_weight[i]) : std::isnan(in_.pair_friction[3 * i])) return out;
    PairSoftness<double> own{};
    out.own = int(out_.own_softness_.size());
    if (!soft()) {
      for (int k = 0; k < 5; ++k) own.friction[k] = in_.pair_friction[3 * i + friction_column(k)];
      out_.own_softness_.push_back(own);
      return out;
    }
    std::copy_n(&in_.pair_solref[2 * i], 2, own.solref);
    std::copy_n(&in_.pair_solreffriction[2 * i], 2, own.solref_friction);
    std::copy_n(&in_.pair_solimp[5 * i], 5, own.solimp);
    for (int k = 0; k < 5; ++k) own.friction[k] = std::max(in_.pair_friction5[5 * i + k], least_friction);
    out_.own_softness_.push_back(own);
    return out;
  }
  void add_dof_supports() {
    int entries = 0;
    for (int k = 0; k < in_.nv; ++k) {
      add_support({{k, 0}});
      out_.mass_rows_.push_back(entries);
      for (int j = k; j >= 0; j = out_.dofs_[j].parent) ++entries;
      out_.dof_softness_.push_back(soft() ? softness(in_.dof_solref, in_.dof_solimp, k) : Softness{});
      out_.dof_weight_.push_back(soft() ? in_.dof_invweight0[k] : 0.0);
    }
    out_.mass_rows_.push_back(entries);
  }
  // Finds the trees with a free joint and no other joint.
  void find_single_free() {
    std::vector<int> dofs(out_.model_.ntree, 0);
    for (const Dof& dof : out_.dofs_) ++dofs[dof.tree];
    out_.single_free_ = std::make_unique<bool[]>(dofs.size());
    for (std::size_t t = 0; t < dofs.size(); ++t)
      out_.single_free_[t] = out_.tree_qpos_[t] >= 0 && dofs[t] == 6;
  }
  double body_weight(int a, int b, int part) const {
    return soft() ? in_.body_invweight0[2 * a + part] + in_.body_invweight0[2 * b + part] : 0.0;
  }

  void add_candidates() {
    for (std::size_t i = 0; i < in_.pair_geom1.size(); ++i) {
      const int a = in_.pair_geom1[i], b = in_.pair_geom2[i];
      const int link_a = out_.geoms_[a].link, link_b = out_.geoms_[b].link;
      if (moved_link(link_a) == moved_link(link_b)) continue;
      Candidate candidate{};
      candidate.mixing = mixing(i);
      candidate.geom_a = a;
      candidate.geom_b = b;
      candidate.link_a = link_a;
      candidate.link_b = link_b;
      candidate.path = path(link_a, link_b);
      candidate.support = soft() ? support(link_a, link_b) : 0;
      candidate.weight = body_weight(in_.geom_bodyid[a], in_.geom_bodyid[b], 0);
      candidate.condim = in_.pair_condim[i];
      candidate.margin = in_.pair_margin[i];
      candidate.gap = in_.pair_gap[i];
      add_pair(candidate);
    }
  }

  void add_pair(Candidate candidate) {
    const Shape a = out_.geoms_[candidate.geom_a].shape, b = out_.geoms_[candidate.geom_b].shape;
    if (is_ground(b))
      throw std::invalid_argument("pair_geom2: no contact between two shapes of the ground, geoms " +
                                  std::to_string(candidate.geom_a) + " and " +
                                  std::to_string(candidate.geom_b));
    if (out_.model_.contact_model == ContactModel::mujoco && add_mujoco_pair(candidate)) return;
    if (a == Shape::plane && (b == Shape::sphere || b == Shape::capsule || b == Shape::box)) {
      candidate.pair = Pair::plane_point;
      return add_plane_points(candidate, out_.geoms_[candidate.geom_b]);
    }
    const PairKind kind = hard_pair_kind(a, b);
    candidate.pair = kind.pair;
    candidate.slots = kind.slots;
    if (kind.slots == 0) {
      for (int geom : {candidate.geom_a, candidate.geom_b})
        if (a != Shape::plane && out_.geoms_[geom].shape == Shape::mesh && out_.geoms_[geom].faces == 0)
          throw std::invalid_argument("hull_polynum: expected the faces of geom " + std::to_string(geom) +
                                      "'s hull, got none");
      candidate.pair = a == Shape::plane          ? Pair::plane_convex
                       : a == Shape::height_field ? Pair::field_convex
                                                  : Pair::convex_convex;
      const Geom &first = out_.geoms_[candidate.geom_a], &second = out_.geoms_[candidate.geom_b];
      candidate.slots = a == Shape::plane          ? shape_row(b).points
                        : a == Shape::height_field ? field_points(out_.height_fields_[first.field], second)
                                                   : std::min(shape_row(a).points, shape_row(b).points);
      ++out_.model_.nconvex;
    }
    add_slots(candidate);
  }
  void add_slots(Candidate candidate) {
    for (candidate.slot = 0; candidate.slot < candidate.slots; ++candidate.slot)
      out_.candidates_.push_back(candidate);
  }

  // Adds a pair for which MuJoCo has a closed formula; returns false for other pairs, which go to the general search.
  bool add_mujoco_pair(Candidate candidate) {
    const Geom &a = out_.geoms_[candidate.geom_a], &b = out_.geoms_[candidate.geom_b];
    const PairKind kind = mujoco_pair_kind(a.shape, b.shape);
    if (kind.slots == 0) return false;
    candidate.pair = kind.pair;
    candidate.slots = kind.slots;
    const bool fixed_points =
        kind.pair == Pair::plane_point || kind.pair == Pair::plane_capsule || kind.pair == Pair::plane_box;
    if (fixed_points)
      add_plane_points(candidate, b);
    else
      add_slots(candidate);
    return true;
  }

  // Adds the filters for pairs that are not listed.
  void add_filters() {
    Model& m = out_.model_;
    for (int g = 0; g < in_.ngeom; ++g) {
      const int body = in_.geom_bodyid[g], weld = in_.body_weldid[body];
      GeomFilter filter{};
      filter.contype = in_.geom_contype[g];
      filter.conaffinity = in_.geom_conaffinity[g];
      filter.body = body;
      filter.weld = weld;
      filter.parent_weld = in_.body_weldid[in_.body_parentid[weld]];
      filter.priority = in_.geom_priority[g];
      filter.condim = in_.geom_condim[g];
      filter.points = shape_row(out_.geoms_[g].shape).points;
      filter.margin = in_.geom_margin[g];
      filter.gap = in_.geom_gap[g];
      filter.mixing = in_.geom_solmix[g];
      filter.weight = soft() ? in_.body_invweight0[2 * body] : 0.0;
      out_.geom_filters_.push_back(filter);
      if (filter.points > 0 && (filter.contype || filter.conaffinity)) {
        out_.near_pairs_.unlisted.push_back(g);
        const double watched =
            soft() ? in_.geom_margin[g] + (m.adhesive ? in_.geom_gap[g] : 0.0) : 0.5 * m.margin;
        out_.geoms_[g].watched = std::max(out_.geoms_[g].watched, watched);
        m.unlisted_condim = std::max(m.unlisted_condim, filter.condim);
        ++m.nconvex;
      }
    }
    // the two deepest links of different trees
    for (int k = 0; k < in_.nv; ++k) m.longest_support = std::max(m.longest_support, 2 * chain(k).count);
    m.filter_parent = in_.filter_parent;
    for (int signature : in_.exclude_signature)
      out_.excluded_bodies_.push_back(pair_key(signature >> 16, signature & 0xffff));
    for (std::size_t i = 0; i + 1 < in_.excluded_geoms.size(); i += 2)
      out_.excluded_geoms_.push_back(pair_key(in_.excluded_geoms[i], in_.excluded_geoms[i + 1]));
    std::sort(out_.excluded_bodies_.begin(), out_.excluded_bodies_.end());
    std::sort(out_.excluded_geoms_.begin(), out_.excluded_geoms_.end());
  }
  void point_filters(Model& m) const {
    m.own_softness = out_.own_softness_.data();
    m.geom_filters = out_.geom_filters_.empty() ? nullptr : out_.geom_filters_.data();
    m.nexcluded_bodies = int(out_.excluded_bodies_.size());
    m.excluded_bodies = out_.excluded_bodies_.data();
    m.nexcluded_geoms = int(out_.excluded_geoms_.size());
    m.excluded_geoms = out_.excluded_geoms_.data();
  }

  // Adds the points of a shape that can be nearest to a plane: a sphere's centre, a capsule's ends, a box's corners.
  void add_plane_points(Candidate candidate, const Geom& shape) {
    candidate.radius = shape.radius;
    const bool ends = shape.shape == Shape::capsule, corners = shape.shape == Shape::box;
    const double x = corners ? shape.half[0] : 0, y = corners ? shape.half[1] : 0,
                 z = corners || ends ? shape.half[2] : 0;
    const int count = corners ? 8 : ends ? 2 : 1;
    // MuJoCo counts a box's corners from the lowest, x first
    const bool mujoco_box = candidate.pair == Pair::plane_box;
    if (candidate.pair == Pair::plane_point) candidate.slots = 1;
    for (int i = 0; i < count; ++i) {
      const Vector3<double> local = mujoco_box
                                        ? Vector3<double>{i & 1 ? x : -x, i & 2 ? y : -y, i & 4 ? z : -z}
                                        : Vector3<double>{i & 4 ? -x : x, i & 2 ? -y : y, i & 1 ? -z : z};
      candidate.slot = candidate.slots == 1 ? 0 : i;
      store(vector3<double>(shape.position) + matrix3<double>(shape.rotation) * local, candidate.point);
      out_.candidates_.push_back(candidate);
    }
  }

  void add_dof_constraints() {
    for (int k = 0; k < in_.nv; ++k) out_.dof_paths_.push_back(path(k, -1));
    for (std::size_t j = 0; j < out_.joints_.size(); ++j) {
      const Joint& joint = out_.joints_[j];
      if (!joint.limited) continue;
      const bool ball = joint.type == JointType::ball;
      const int last = ball ? joint.dof + 2 : joint.dof;
      Limit limit{};
      limit.ball = ball;
      limit.dof = joint.dof;
      limit.qpos = joint.qpos;
      limit.path = path(last, -1);
      limit.support = joint.dof;
      if (ball && soft()) limit.support = add_support({{last, 0}, {last - 1, 0}, {last - 2, 0}});
      if (soft()) {
        limit.margin = in_.jnt_margin[j];
        limit.weight = in_.dof_invweight0[joint.dof];
        limit.softness = softness(in_.jnt_solref, in_.jnt_solimp, j);
      }
      for (int side = ball ? 1 : 0; side < 2; ++side) {
        limit.sign = side == 0 ? 1.0 : -1.0;
        limit.bound = int(2 * j) + side;
        out_.limits_.push_back(limit);
      }
    }
  }

  // --- equality constraints ------------------------------------------------------------------------------------------------

  void add_equalities() {
    for (std::size_t i = 0; i < in_.eq_type.size(); ++i) {
      const double* data = &in_.eq_data[11 * i];
      Equality equality{};
      equality.type = EqualityType(in_.eq_type[i]);
      equality.link_a = equality.link_b = equality.dof_a = equality.dof_b = -1;
      equality.tendon_a = equality.tendon_b = -1;
      if (equality.type == EqualityType::tendon) {
        add_tendon_equality(in_.eq_obj1[i], in_.eq_obj2[i], data, equality);
      } else if (equality.type == EqualityType::joint) {
        add_joint_equality(in_.eq_obj1[i], in_.eq_obj2[i], data, equality);
      } else {
        add_body_equality(in_.eq_obj1[i], in_.eq_obj2[i], data, equality);
      }
      if (soft()) soften(i, equality);
      out_.equalities_.push_back(equality);
    }
  }
  void soften(std::size_t i, Equality& equality) {
    const int a = in_.eq_obj1[i], b = in_.eq_obj2[i];
    equality.softness = softness(in_.eq_solref, in_.eq_solimp, i);
    equality.torque_scale = in_.eq_data[11 * i + 10];
    if (equality.type == EqualityType::tendon) {
      equality.weight[0] = in_.ten_invweight0[a] + (b >= 0 ? in_.ten_invweight0[b] : 0.0);
      equality.support = support_of_tendons(a, b);
      return;
    }
    if (equality.type == EqualityType::joint) {
      equality.weight[0] = in_.dof_invweight0[equality.dof_a];
      std::vector<std::pair<int, int>> dofs = {{equality.dof_a, 0}};
      if (b >= 0) {
        equality.weight[0] += in_.dof_invweight0[equality.dof_b];
        dofs.push_back({equality.dof_b, 1});
      }
      equality.support = add_support(std::move(dofs));
      return;
    }
    for (int part : {0, 1}) equality.weight[part] = body_weight(a, b, part);
    equality.support = whole_support(equality.link_a, equality.link_b);
  }
  // MuJoCo's data are the polynomial of the second tendon's length beyond its length at qpos0.
  void add_tendon_equality(int a, int b, const double* data, Equality& out) const {
    std::copy_n(data, 5, out.polynomial);
    out.tendon_a = a;
    out.tendon_b = b;
    out.reference_a = in_.ten_length0[a];
    if (b >= 0) out.reference_b = in_.ten_length0[b];
  }
  int support_of_tendons(int a, int b) {
    std::map<int, int> dofs;
    for (int t : {a, b}) {
      if (t < 0) continue;
      const Support& support = out_.supports_[out_.transmissions_[t].support];
      for (int i = 0; i < support.count; ++i) dofs[out_.support_dofs_[support.first + i]] = 0;
    }
    return add_support({dofs.begin(), dofs.end()});
  }
  // MuJoCo's data are the polynomial of the second joint's displacement from its qpos0.
  void add_joint_equality(int a, int b, const double* data, Equality& out) {
    std::copy_n(data, 5, out.polynomial);
    const auto set = [&](int joint, int& dof, int& qpos, double& reference) {
      if (joint < 0) return;
      dof = in_.jnt_dofadr[joint];
      qpos = in_.jnt_qposadr[joint];
      reference = in_.qpos0[qpos];
    };
    set(a, out.dof_a, out.qpos_a, out.reference_a);
    set(b, out.dof_b, out.qpos_b, out.reference_b);
    out.path = path(out.dof_a, out.dof_b);
  }
  // MuJoCo's data. connect: anchor in body 1, anchor in body 2. weld: anchor in body 2, the same in body 1, orientation of
  // body 2 in body 1.
  void add_body_equality(int a, int b, const double* data, Equality& out) {
    const bool weld = out.type == EqualityType::weld;
    const Pose relative = weld ? pose(data + 3, data + 6) : identity();
    const Vector3<double> in_a = vector3<double>(weld ? data + 3 : data),
                          in_b = vector3<double>(weld ? data : data + 3);
    out.link_a = body_link_[a];
    out.link_b = body_link_[b];
    out.body_a = a;
    out.body_b = b;
    store(body_pose_[a].p + body_pose_[a].R * in_a, out.anchor_a);
    store(body_pose_[b].p + body_pose_[b].R * in_b, out.anchor_b);
    store(body_pose_[a].R * relative.R, out.rotation_a);
    store(body_pose_[b].R, out.rotation_b);
    out.path = path(out.link_a, out.link_b);
  }

  void add_parameters() {
    for (int b = 0; b < in_.nbody; ++b) {
      Body body{};
      body.link = body_link_[b];
      body.body = b;
      body.parent = in_.body_parentid[b];
      store(body_pose_[b].R, body.rotation);
      store(body_pose_[b].p, body.position);
      const Pose principal = body_pose_[b] * pose(&in_.body_ipos[3 * b], &in_.body_iquat[4 * b]);
      store(principal.R, body.principal);
      store(principal.q, body.principal_orientation);
      store(body_pose_[b].q, body.orientation);
      out_.map_.bodies.push_back(body);
    }
#define REVOLUTE_DEFAULT(name, array, ...) out_.map_.defaults[int(Parameter::name)] = in_.array;
    REVOLUTE_PARAMETERS(REVOLUTE_DEFAULT, REVOLUTE_DEFAULT)
#undef REVOLUTE_DEFAULT
  }

  void point_model() {
    Model& m = out_.model_;
    m.ncandidate = int(out_.candidates_.size());
    m.nlimit = int(out_.limits_.size());
    m.nequality = int(out_.equalities_.size());
    m.joints = out_.joints_.data();
    m.dofs = out_.dofs_.data();
    m.mocap_pos = out_.mocap_pos_.data();
    m.mocap_quat = out_.mocap_quat_.data();
    m.dof_joints = out_.dof_joints_.data();
    m.actuators = out_.actuators_.data();
    m.bodies = out_.map_.bodies.data();
    m.sites = out_.sites_.data();
    m.tendons = out_.tendons_.data();
    m.transmissions = out_.transmissions_.data();
    m.tendon_joints = out_.tendon_joints_.data();
    m.path_segments = out_.path_segments_.data();
    m.path_wraps = out_.path_wraps_.data();
    m.medium_bodies = out_.medium_bodies_.data();
    m.medium_ellipsoids = out_.medium_ellipsoids_.data();
    m.geoms = out_.geoms_.data();
    m.candidates = out_.candidates_.data();
    out_.near_pairs_.point(m);
    m.limits_list = out_.limits_.data();
    m.equalities = out_.equalities_.data();
    m.paths = out_.paths_.data();
    m.path_dofs = out_.path_dofs_.data();
    m.dof_paths = out_.dof_paths_.data();
    for (Support& support : out_.supports_) {
      support.dofs = out_.support_dofs_.data() + support.first;
      support.sides = out_.support_sides_.data() + support.first;
    }
    m.supports = out_.supports_.data();
    point_filters(m);
    m.mass_rows = out_.mass_rows_.data();
    m.dof_softness = out_.dof_softness_.data();
    m.dof_weight = out_.dof_weight_.data();
    m.vertices = out_.hulls_.vertices.data();
    m.faces = out_.hulls_.faces.data();
    m.edges = out_.hulls_.edges.data();
    m.corners = out_.hulls_.corners.data();
    m.vertex_faces = out_.hulls_.vertex_faces.data();
    m.vertex_faces_begin = out_.hulls_.vertex_faces_begin.data();
    m.height_fields = out_.height_fields_.data();
    m.triangles = out_.triangles_.data();
    m.hull_nodes = out_.hulls_.nodes.data();
    m.hull_items = out_.hulls_.items.data();
    m.support_cells = out_.hulls_.cells.data();
    m.cell_members = out_.hulls_.cell_members.data();
    m.tree_origin = out_.tree_origin_.data();
    m.tree_qpos = out_.tree_qpos_.data();
    m.single_free = out_.single_free_.get();
    const Doubles& loss = out_.map_.defaults[int(Parameter::dof_frictionloss)];
    out_.model_as_loaded_ = m;
    out_.model_as_loaded_.dry_friction =
        m.dry_friction && std::any_of(loss.begin(), loss.end(), [](double value) { return value > 0; });
  }
};

ModelStorage::ModelStorage(const MujocoArrays& arrays) { ModelBuilder(arrays, *this).build(); }

std::size_t ModelStorage::bytes() const {
  const auto sum = [](const auto&... arrays) {
    return (std::size_t(0) + ... + (arrays.capacity() * sizeof(arrays[0])));
  };
  std::size_t parameters = sum(map_.bodies);
  for (const std::vector<double>& values : map_.defaults) parameters += sum(values);
  return sizeof(*this) + parameters +
         sum(joints_, dofs_, mocap_pos_, mocap_quat_, actuators_, geoms_, sites_, candidates_, limits_) +
         sum(tendons_, transmissions_, tendon_joints_, path_segments_, path_wraps_, medium_bodies_,
             medium_ellipsoids_, dof_joints_) +
         sum(equalities_, paths_, path_dofs_, dof_paths_, supports_, support_dofs_, support_sides_) +
         sum(geom_filters_, excluded_bodies_, excluded_geoms_, own_softness_) +
         sum(mass_rows_, dof_softness_, dof_weight_, tree_origin_, tree_qpos_, heights_, height_fields_,
             triangles_) +
         sum(hulls_.vertices, hulls_.faces, hulls_.edges, hulls_.corners, hulls_.nodes, hulls_.items) +
         sum(hulls_.vertex_faces, hulls_.vertex_faces_begin, hulls_.cells, hulls_.cell_members);
}

}  // namespace revolute
