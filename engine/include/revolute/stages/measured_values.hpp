// The values of probes (measurement.hpp).
//
// With p, R, v, w of a frame, index r for its reference frame (the world if there is no reference), and d = p - p_r:
//   position R_r' d,   rotation R_r' R,   angular velocity R_r' (w - w_r),                    (1)
//   linear velocity R_r' (v - v_r - w_r x d)                                                  (2)
// Local quantities are R' v, R' w, R' a. Sums over subtrees come from measured_bodies.hpp:
//   com = h/m,   velocity P_f/m,   angular momentum about the com P_n - com x P_f             (3)
// The wrench at the joint that carries a body is F of its subtree: force R' F_f, torque R' (F_n - p x F_f)         (4)
// A point x in the frame of a camera with focal lengths f and principal point c is at the pixel (c_x - f_x x/z, c_y + f_y y/z).
// A sensor is clamped at its cutoff and has no derivative beyond it. Not differentiated: which contacts a touch sensor feels,
// and whether a site holds a point.
// Source: MuJoCo, XML reference, section sensor.
#pragma once

#include "revolute/stages/measured_contacts.hpp"
#include "revolute/stages/measured_distances.hpp"
#include "revolute/stages/measured_drives.hpp"
#include "revolute/stages/measured_rays.hpp"
#include "revolute/stages/measured_tendons.hpp"

namespace revolute {

namespace detail {

template <class Real>
REVOLUTE_HD inline Matrix3<Real> rotation_of(const Probe& probe, const MeasuredFrame<Real>& reference) {
  return probe.relative ? reference.R : identity_matrix<Real>();
}
REVOLUTE_HD inline bool is_frame(ProbeKind kind) {
  return (kind >= ProbeKind::position && kind <= ProbeKind::distance) ||
         kind == ProbeKind::camera_projection ||
         (kind >= ProbeKind::local_acceleration && kind <= ProbeKind::torque);
}

// A frame with its reference, and the motion of both.
template <class Real>
struct FramePair {
  MeasuredFrame<Real> of, reference;
  FrameMotion<Real> motion, reference_motion;
};

template <class Real>
REVOLUTE_HD FramePair<Real> frame_pair(const Model& model, const Parameters<Real>& parameters,
                                       const Measurement<Real>& at, const Probe& probe) {
  const Kinematics<Real>& kin = *at.kinematics;
  FramePair<Real> out;
  out.of = measured_frame(model, parameters, kin, probe.of);
  out.motion = frame_motion(kin, *parameters.gravity, at.A, probe.of, out.of);
  out.reference = {zero3<Real>(), zero3<Real>(), identity_matrix<Real>()};
  out.reference_motion = {zero3<Real>(), zero3<Real>(), zero3<Real>(), zero3<Real>()};
  if (!probe.relative) return out;
  out.reference = measured_frame(model, parameters, kin, probe.reference);
  out.reference_motion = frame_motion(kin, *parameters.gravity, at.A, probe.reference, out.reference);
  return out;
}
// (2) before R_r'
template <class Real>
REVOLUTE_HD inline Vector3<Real> relative_velocity(const FramePair<Real>& pair) {
  return pair.motion.v - pair.reference_motion.v -
         cross(pair.reference_motion.w, pair.of.p - pair.reference.p);
}

// (4), about the world's origin
template <class Real>
REVOLUTE_HD Force<Real> subtree_force(const Model& model, const Parameters<Real>& parameters,
                                      const Measurement<Real>& at, const Probes& probes, const Probe& probe,
                                      const Real* qpos, const Real* qvel) {
  Force<Real> out = subtree_inertial_force(model, parameters, *at.kinematics, at.A, probes, probe);
  const auto take_off = [&](const ConstraintView&, int r, int, const Force<Real>& wrench,
                            const Vector3<Real>& o) { out += -at.force[r] * at_world_origin(o, wrench); };
  for_wrenches(model, at, probes, probe, take_off);
  visit_pieces(model, probes, probe, [&](int t, const PathSegment& segment, int flags) {
    out += -tendon_pull(model, parameters, t, qpos, qvel, at) *
           piece_wrench(model, *at.kinematics, segment, flags);
  });
  visit_applied_wrenches(model, parameters, *at.kinematics, [&](int b, int link, const Force<Real>& wrench) {
    if (probes.in_subtree[std::size_t(probe.membership) * model.nbody + b])
      out += -at_world_origin(tree_origin(model, *at.kinematics, link), wrench);
  });
  return out;
}

template <class Real>
REVOLUTE_HD void measure_frame(const Model& model, const Parameters<Real>& parameters, const Probes& probes,
                               const Probe& probe, const Real* qpos, const Real* qvel,
                               const Measurement<Real>& at, Real* out) {
  const FramePair<Real> pair = frame_pair(model, parameters, at, probe);
  const Vector3<Real> d = pair.of.p - pair.reference.p;
  const Matrix3<Real>&R = pair.of.R, R_r = pair.reference.R;
  switch (probe.kind) {
    case ProbeKind::position:
      return write3(probe.relative ? transpose_times(R_r, d) : pair.of.p, out);
    case ProbeKind::quaternion: {
      Quaternion<Real> q = place_quaternion(model, parameters, probes, probe.of, qpos);
      if (probe.relative)
        q = conjugate(place_quaternion(model, parameters, probes, probe.reference, qpos)) * q;
      out[0] = q.w;
      return write3(Vector3<Real>{q.x, q.y, q.z}, out + 1);
    }
    case ProbeKind::rotation:
      for (int j = 0; j < 3; ++j) {
        const Vector3<Real> column = probe.relative ? transpose_times(R_r, R.column(j)) : R.column(j);
        out[j] = column.x;
        out[3 + j] = column.y;
        out[6 + j] = column.z;
      }
      return;
    case ProbeKind::x_axis:
    case ProbeKind::y_axis:
    case ProbeKind::z_axis: {
      const Vector3<Real> axis = R.column(int(probe.kind) - int(ProbeKind::x_axis));
      return write3(probe.relative ? transpose_times(R_r, axis) : axis, out);
    }
    case ProbeKind::linear_velocity:
      return write3(probe.relative ? transpose_times(R_r, relative_velocity(pair)) : pair.motion.v, out);
    case ProbeKind::angular_velocity:
      return write3(
          probe.relative ? transpose_times(R_r, pair.motion.w - pair.reference_motion.w) : pair.motion.w,
          out);
    case ProbeKind::local_linear_velocity:
      return write3(transpose_times(R, pair.motion.v), out);
    case ProbeKind::local_angular_velocity:
      return write3(transpose_times(R, pair.motion.w), out);
    case ProbeKind::local_field:
      return write3(transpose_times(R, vector3<Real>(probe.field)), out);
    case ProbeKind::distance:
      out[0] = sqrt(dot(d, d));
      return;
    case ProbeKind::camera_projection: {
      const double* const lens = probes.numbers.data() + probe.first_number;  // f, c
      const Vector3<Real> x = transpose_times(R_r, d);
      const Real inverse = Real(1) / x.z;
      out[0] = Real(lens[2]) - Real(lens[0]) * x.x * inverse;
      out[1] = Real(lens[3]) + Real(lens[1]) * x.y * inverse;
      return;
    }
    case ProbeKind::local_acceleration:
      return write3(transpose_times(R, pair.motion.a), out);
    case ProbeKind::linear_acceleration:
      return write3(pair.motion.a, out);
    case ProbeKind::angular_acceleration:
      return write3(pair.motion.alpha, out);
    default: {
      const Force<Real> F = subtree_force(model, parameters, at, probes, probe, qpos, qvel);
      return write3(transpose_times(R, probe.kind == ProbeKind::force ? F.f : F.n - cross(pair.of.p, F.f)),
                    out);
    }
  }
}

template <class Real>
REVOLUTE_HD void measure_subtree(const Model& model, const Parameters<Real>& parameters, const Probes& probes,
                                 const Probe& probe, const Measurement<Real>& at, Real* out) {
  const SubtreeSums<Real> sums = subtree_sums(model, parameters, *at.kinematics, probes, probe);
  const Real inverse = Real(1) / sums.mass;
  if (probe.kind == ProbeKind::subtree_com) return write3(inverse * sums.h, out);
  if (probe.kind == ProbeKind::subtree_linear_velocity) return write3(inverse * sums.momentum.f, out);
  write3(sums.momentum.n - cross(inverse * sums.h, sums.momentum.f), out);  // (3)
}

// 1 where the volume of the reference site holds the frame's origin, else 0.
template <class Real>
REVOLUTE_HD Real is_inside(const Model& model, const Parameters<Real>& parameters, const Probe& probe,
                           const Measurement<Real>& at) {
  const MeasuredFrame<Real> of = measured_frame(model, parameters, *at.kinematics, probe.of),
                            site = measured_frame(model, parameters, *at.kinematics, probe.reference);
  const Vector3<Real> x = transpose_times(site.R, of.p - site.p);
  Real out(0);
  for (int lane = 0; lane < Width<Real>::value; ++lane)
    set_lane(out, lane, zone_holds(probe.zone.shape, probe.zone.size, get_lane(x, lane)) ? 1.0 : 0.0);
  return out;
}

template <class Real>
REVOLUTE_HD Real measure_number(const Model& model, const Parameters<Real>& parameters, const Probes& probes,
                                const Probe& probe, const Real& time, const Real* qpos, const Real* qvel,
                                const Measurement<Real>& at) {
  Real sum(0);
  const int index = probe.index;
  switch (probe.kind) {
    case ProbeKind::clock:
      return time;
    case ProbeKind::joint_position:
      return qpos[index];
    case ProbeKind::joint_velocity:
      return qvel[index];
    case ProbeKind::actuator_position:
      return actuator_state(model, parameters, index, drive_input(model, at, qpos, qvel)).length;
    case ProbeKind::actuator_velocity:
      return actuator_state(model, parameters, index, drive_input(model, at, qpos, qvel)).velocity;
    case ProbeKind::force_of_actuator:
      return measured_actuator_force(model, parameters, index, qpos, qvel, at);
    case ProbeKind::actuator_force_on_joint:
      return at.of_joint[index];
    case ProbeKind::actuator_force_on_tendon:
      for (int a = 0; a < model.nu; ++a)
        if (model.actuators[a].transmission == index)
          sum += measured_actuator_force(model, parameters, a, qpos, qvel, at);
      return sum;
    case ProbeKind::tendon_position:
      return at.transmissions.length[index];
    case ProbeKind::tendon_velocity:
      return at.transmissions.velocity[index];
    case ProbeKind::tendon_limit_position:
    case ProbeKind::tendon_limit_velocity:
      for_tendon_limits(model, index, at.transmissions.length[index],
                        [&](int, const Real& sign, const Real& x, const Real& acts) {
                          sum += acts * (probe.kind == ProbeKind::tendon_limit_position
                                             ? x
                                             : sign * at.transmissions.velocity[index]);
                        });
      return sum;
    case ProbeKind::tendon_limit_force:
      for (int side = 0; side < 2; ++side) {
        const int row = row_of_source(model, at, RowSource::tendon_limit, 2 * index + side);
        if (row >= 0) sum += at.force[row];
      }
      return sum;
    case ProbeKind::potential_energy:
      return potential_energy(model, parameters, probes, probe, qpos, at);
    case ProbeKind::kinetic_energy:
      return kinetic_energy(model, parameters, qvel, at);
    case ProbeKind::inside_site:
      return is_inside(model, parameters, probe, at);
    case ProbeKind::touch: {
      const MeasuredFrame<Real> frame = measured_frame(model, parameters, *at.kinematics, probe.of);
      for_touches(model, at, probe, frame, [&](int row, const Real& felt) { sum += felt * at.force[row]; });
      return sum;
    }
    default:
      for_limits(model, parameters, qpos, index,
                 [&](int limit, const RowJacobian<Real>& J, const Real& x, const Real& acts) {
                   if (probe.kind == ProbeKind::limit_position) sum += acts * x;
                   if (probe.kind == ProbeKind::limit_velocity)
                     sum += acts * row_times(J, qvel, at.kinematics->V);
                   if (probe.kind != ProbeKind::limit_force) return;
                   const int row = row_of_source(model, at, RowSource::limit, limit);
                   if (row >= 0) sum += (is_soft(model) ? acts : Real(1)) * at.force[row];
                 });
      return sum;
  }
}

template <class Real>
REVOLUTE_HD void measure_probe(const Model& model, const Parameters<Real>& parameters, const Probes& probes,
                               const Probe& probe, std::size_t place, const Real& time, const Real* qpos,
                               const Real* qvel, const Measurement<Real>& at, Real* out) {
  if (is_frame(probe.kind)) return measure_frame(model, parameters, probes, probe, qpos, qvel, at, out);
  switch (probe.kind) {
    case ProbeKind::subtree_com:
    case ProbeKind::subtree_linear_velocity:
    case ProbeKind::subtree_angular_momentum:
      return measure_subtree(model, parameters, probes, probe, at, out);
    case ProbeKind::ball_velocity:
      return write3(load3(qvel + probe.index), out);
    case ProbeKind::ball_quaternion: {
      const Quaternion<Real> q = load_quaternion(qpos + probe.index);
      out[0] = q.w;
      return write3(Vector3<Real>{q.x, q.y, q.z}, out + 1);
    }
    case ProbeKind::range_finder:
      return measure_rays(model, parameters, probes, probe, at, at.rays + place * Width<Real>::value, out);
    case ProbeKind::geom_distance:
    case ProbeKind::geom_normal:
    case ProbeKind::geom_points:
      return measure_distance(model, probes, probe, at, out);
    case ProbeKind::contacts:
      return measure_contacts(model, parameters, probes, probe, at, out);
    default:
      out[0] = measure_number(model, parameters, probes, probe, time, qpos, qvel, at);
  }
}

}  // namespace detail

namespace detail {

// The acceleration and the forces of constraints, of a step of the hard model from this state.
template <class Real>
REVOLUTE_HD void measure_hard_step(const Model& model, const Parameters<Real>& parameters, const Real* qpos,
                                   const Real* qvel, const Real* ctrl, Measurement<Real>& at) {
  const Real inverse_h(1.0 / model.timestep);
  step(model, parameters, qpos, qvel, ctrl, true, at.hard, at.qpos_next, at.qvel_next);
  for (int k = 0; k < model.nv; ++k) at.a[k] = (at.qvel_next[k] - qvel[k]) * inverse_h;
  for (int r = 0; r < at.hard.rows.count; ++r) at.force[r] = at.hard.solver.x[r] * inverse_h;
  link_accelerations(model, *parameters.gravity, at.own, qvel, at.a, at.hard_A);
  at.A = at.hard_A;
}
template <class Real>
REVOLUTE_HD void measure_soft_stage(const Model& model, const Parameters<Real>& parameters, const Real* qpos,
                                    const Real* qvel, const Real* ctrl, Measurement<Real>& at) {
  soft_stage(model, parameters, qpos, qvel, ctrl, true, at.stage);
  record_soft_stage(model, parameters, qvel, static_cast<const Real*>(nullptr), at.stage);
  for (int k = 0; k < model.nv; ++k) at.a[k] = at.stage.newton.a[k];
  for (int r = 0; r < at.stage.constraints.rows; ++r) at.force[r] = -at.stage.newton.slope[r];
  at.kinematics = &at.stage.kinematics;
  at.A = at.stage.acceleration.A;
}

}  // namespace detail

template <class Real>
void measurement(const Model& model, const Parameters<Real>& parameters, const Probes& probes,
                 const Real& time, const Real* qpos, const Real* qvel, const Real* ctrl,
                 Measurement<Real>& ws, Real* values) {
  for (int a = 0; a < model.nu; ++a) ws.no_ctrl[a] = Real(0);
  ws.A = nullptr;
  ws.ctrl = ctrl;
  ws.kinematics = &ws.own;
  const bool soft = probes.acceleration && is_soft(model);
  if (!soft) kinematics(model, parameters, qpos, qvel, ws.own);
  if (soft)
    detail::measure_soft_stage(model, parameters, qpos, qvel, ctrl, ws);
  else if (probes.acceleration)
    detail::measure_hard_step(model, parameters, qpos, qvel, ctrl, ws);
  if (probes.transmissions) detail::measure_drives(model, parameters, qpos, qvel, ws);
  for (std::size_t place = 0; place < probes.list.size(); ++place) {
    const Probe& probe = probes.list[place];
    Real* const raw = ws.raw + probe.first;
    detail::measure_probe(model, parameters, probes, probe, place, time, qpos, qvel, ws, raw);
    const Real bound(probe.cutoff);
    for (int i = 0; i < probe.size; ++i)
      values[probe.first + i] = probe.cutoff <= 0 ? raw[i]
                                : probe.positive  ? minimum(raw[i], bound)
                                                  : clamp(raw[i], -bound, bound);
  }
}

}  // namespace revolute
