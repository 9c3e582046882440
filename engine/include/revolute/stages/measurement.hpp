// Measurement: numbers in the task space and MuJoCo's sensors, at one state, from a list of probes (model/probe.hpp).
//
// With p, R, v, w of a frame, index r for its reference frame (the world if there is no reference), and d = p - p_r:
//   position R_r' d,   rotation R_r' R,   angular velocity R_r' (w - w_r),                    (1)
//   linear velocity R_r' (v - v_r - w_r x d)                                                  (2)
// Local quantities are R' v, R' w, R' a. Sums over subtrees come from measured_bodies.hpp:
//   com = h/m,   velocity P_f/m,   angular momentum about the com P_n - com x P_f             (3)
// The wrench at the joint that carries a body is F of its subtree: force R' F_f, torque R' (F_n - p x F_f)         (4)
// Probes of the acceleration take it, and the constraint forces, from soft_stage.hpp at the given control.
// A sensor is clamped at its cutoff and has no derivative beyond it. Not differentiated: which contacts a touch sensor feels.
// Source: MuJoCo, XML reference, section sensor.
#pragma once

#include "revolute/collision/ray_zone.hpp"
#include "revolute/soft_step.hpp"
#include "revolute/stages/measured_bodies.hpp"

namespace revolute {

template <class Real>
struct Measurement {
  Kinematics<Real> own;  // used without an acceleration; with one the stage's kinematics are used
  SoftStage<Real> stage;
  Real* raw;      // before the cutoff
  Real* no_ctrl;  // [nu] zeros
  const Kinematics<Real>* kinematics;
  const Motion<Real>* A;

  Measurement(const Model& model, const Probes& probes, Arena& arena)
      : own(model_if(!probes.acceleration, model), arena),
        stage(model_if(probes.acceleration, model), arena),
        raw(arena.take<Real>(probes.size)),
        no_ctrl(arena.take<Real>(model.nu)) {}
};

namespace detail {

template <class Real>
REVOLUTE_HD inline void write3(const Vector3<Real>& a, Real* out) {
  out[0] = a.x;
  out[1] = a.y;
  out[2] = a.z;
}
template <class Real>
REVOLUTE_HD inline Matrix3<Real> rotation_of(const Probe& probe, const MeasuredFrame<Real>& reference) {
  return probe.relative ? reference.R : identity_matrix<Real>();
}
REVOLUTE_HD inline bool is_frame(ProbeKind kind) {
  return (kind >= ProbeKind::position && kind <= ProbeKind::distance) ||
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

REVOLUTE_HD inline bool holds_bodies(const Equality& equality) {
  return equality.type == EqualityType::connect || equality.type == EqualityType::weld;
}
// An actuator on a hinge or slide, without activation; others are not measured. `ctrl` may be null if no force is asked for.
template <class Real>
REVOLUTE_HD ActuatorState<Real> joint_actuator(const Model& model, const Parameters<Real>& parameters, int a,
                                               const Real* qpos, const Real* qvel, const Real* ctrl,
                                               const Measurement<Real>& at) {
  const ActuationInput<Real> input = {qpos, qvel, ctrl ? ctrl : at.no_ctrl, nullptr, nullptr};
  return actuator_state(model, parameters, a, input);
}
// Constraint forces on the bodies of a subtree, about the world's origin: calls visit(constraint, row, side, wrench at the
// reference point of its link, that point).
template <class Real, class Visit>
REVOLUTE_HD void for_wrenches(const Model& model, const SoftStage<Real>& stage, const Probes& probes,
                              const Probe& probe, const Visit& visit) {
  const int nbody = model.nbody;
  for (int i = 0; i < stage.constraints.count; ++i) {
    const SoftConstraint<Real>& c = stage.constraints.list[i];
    int body[2];
    if (c.source == RowSource::contact) {
      const Candidate& candidate = *stage.contacts.list[c.index].candidate;
      body[0] = model.geoms[candidate.geom_a].body;
      body[1] = model.geoms[candidate.geom_b].body;
    } else if (c.source == RowSource::equality && holds_bodies(model.equalities[c.index])) {
      body[0] = model.equalities[c.index].body_a;
      body[1] = model.equalities[c.index].body_b;
    } else {
      continue;
    }
    for (int side = 0; side < 2; ++side) {
      if (!probes.in_subtree[std::size_t(probe.membership) * nbody + body[side]]) continue;
      for (int r = c.row; r < c.row + c.cost.rows; ++r) {
        const RowJacobian<Real>& J = stage.constraints.row_J[r];
        const int link = side == 0 ? J.link_a : J.link_b;
        if (link < 0) continue;
        visit(i, r, side, side == 0 ? J.force_a : J.force_b, tree_origin(model, stage.kinematics, link));
      }
    }
  }
}
// (4), about the world's origin
template <class Real>
REVOLUTE_HD Force<Real> subtree_force(const Model& model, const Parameters<Real>& parameters,
                                      const Measurement<Real>& at, const Probes& probes, const Probe& probe) {
  Force<Real> out = subtree_inertial_force(model, parameters, *at.kinematics, at.A, probes, probe);
  const auto take_off = [&](int, int r, int, const Force<Real>& wrench, const Vector3<Real>& o) {
    out += at.stage.newton.slope[r] * at_world_origin(o, wrench);  // the force is -slope
  };
  for_wrenches(model, at.stage, probes, probe, take_off);
  visit_applied_wrenches(model, parameters, *at.kinematics, [&](int b, int link, const Force<Real>& wrench) {
    if (probes.in_subtree[std::size_t(probe.membership) * model.nbody + b])
      out += -at_world_origin(tree_origin(model, *at.kinematics, link), wrench);
  });
  return out;
}

// Calls visit(row of the normal force, 1 if it counts, else 0) for the contacts in the zone of a touch sensor.
template <class Real, class Visit>
REVOLUTE_HD void for_touches(const Model& model, const SoftStage<Real>& stage, const Probe& probe,
                             const MeasuredFrame<Real>& frame, const Visit& visit) {
  for (int i = 0; i < stage.constraints.count; ++i) {
    const SoftConstraint<Real>& c = stage.constraints.list[i];
    if (c.source != RowSource::contact) continue;
    const Contact<Real>& contact = stage.contacts.list[c.index];
    const Candidate& candidate = *contact.candidate;
    const bool on_a = model.geoms[candidate.geom_a].body == probe.of.body,
               on_b = model.geoms[candidate.geom_b].body == probe.of.body;
    if (!on_a && !on_b) continue;
    // outwards
    const Vector3<Real> ray = transpose_times(frame.R, on_b ? -contact.axis[0] : contact.axis[0]),
                        point = transpose_times(frame.R, contact.at.point - frame.p);
    Real felt(0);
    for (int lane = 0; lane < Width<Real>::value; ++lane) {
      const bool meets =
          get_lane(contact.active, lane) && get_lane(stage.newton.slope[c.row], lane) < 0 &&
          ray_meets_zone(probe.zone.shape, probe.zone.size, get_lane(point, lane), get_lane(ray, lane));
      set_lane(felt, lane, meets ? 1.0 : 0.0);
    }
    visit(c.row, felt);
  }
}

// Calls visit(limit, row, gap - margin, 1 if it acts) for the limits of a joint; `index` is the first degree of freedom.
template <class Real, class Visit>
REVOLUTE_HD void for_limits(const Model& model, const Parameters<Real>& parameters, const Real* qpos, int dof,
                            const Visit& visit) {
  for (int i = 0; model.limits && i < model.nlimit; ++i) {
    const Limit& limit = model.limits_list[i];
    if (limit.dof != dof) continue;
    Real gap;
    const RowJacobian<Real> J = limit_jacobian(parameters, limit, qpos, gap);
    const Real x = gap - Real(limit.margin);
    visit(i, J, x, indicator<Real>(less(x, Real(0))));
  }
}
// The row of a limit, or -1 if the limit does not act.
template <class Real>
REVOLUTE_HD inline int limit_row_of(const SoftConstraints<Real>& constraints, int limit) {
  for (int i = 0; i < constraints.count; ++i)
    if (constraints.list[i].source == RowSource::limit && constraints.list[i].index == limit)
      return constraints.list[i].row;
  return -1;
}

template <class Real>
REVOLUTE_HD void measure_frame(const Model& model, const Parameters<Real>& parameters, const Probes& probes,
                               const Probe& probe, const Real* qpos, const Measurement<Real>& at, Real* out) {
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
    case ProbeKind::local_acceleration:
      return write3(transpose_times(R, pair.motion.a), out);
    case ProbeKind::linear_acceleration:
      return write3(pair.motion.a, out);
    case ProbeKind::angular_acceleration:
      return write3(pair.motion.alpha, out);
    default: {
      const Force<Real> F = subtree_force(model, parameters, at, probes, probe);
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

template <class Real>
REVOLUTE_HD Real measure_number(const Model& model, const Parameters<Real>& parameters, const Probe& probe,
                                const Real& time, const Real* qpos, const Real* qvel, const Real* ctrl,
                                const Measurement<Real>& at) {
  Real sum(0);
  switch (probe.kind) {
    case ProbeKind::clock:
      return time;
    case ProbeKind::joint_position:
      return qpos[probe.index];
    case ProbeKind::joint_velocity:
      return qvel[probe.index];
    case ProbeKind::actuator_position:
    case ProbeKind::actuator_velocity:
    case ProbeKind::force_of_actuator: {
      const ActuatorState<Real> s = joint_actuator(model, parameters, probe.index, qpos, qvel, ctrl, at);
      return probe.kind == ProbeKind::actuator_position   ? s.length
             : probe.kind == ProbeKind::actuator_velocity ? s.velocity
                                                          : s.force;
    }
    case ProbeKind::actuator_force_on_joint:
      for (int a = 0; a < model.nu; ++a)
        if (model.actuators[a].dof == probe.index)
          sum += parameters.gear[a] * joint_actuator(model, parameters, a, qpos, qvel, ctrl, at).force;
      return sum;
    case ProbeKind::touch: {
      const MeasuredFrame<Real> frame = measured_frame(model, parameters, *at.kinematics, probe.of);
      for_touches(model, at.stage, probe, frame,
                  [&](int row, const Real& felt) { sum -= felt * at.stage.newton.slope[row]; });
      return sum;
    }
    default:
      for_limits(model, parameters, qpos, probe.index,
                 [&](int limit, const RowJacobian<Real>& J, const Real& x, const Real& acts) {
                   if (probe.kind == ProbeKind::limit_position) sum += acts * x;
                   if (probe.kind == ProbeKind::limit_velocity)
                     sum += acts * row_times(J, qvel, at.kinematics->V);
                   if (probe.kind != ProbeKind::limit_force) return;
                   const int row = limit_row_of(at.stage.constraints, limit);
                   if (row >= 0) sum -= acts * at.stage.newton.slope[row];
                 });
      return sum;
  }
}

template <class Real>
REVOLUTE_HD void measure_probe(const Model& model, const Parameters<Real>& parameters, const Probes& probes,
                               const Probe& probe, const Real& time, const Real* qpos, const Real* qvel,
                               const Real* ctrl, const Measurement<Real>& at, Real* out) {
  if (is_frame(probe.kind)) return measure_frame(model, parameters, probes, probe, qpos, at, out);
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
    default:
      out[0] = measure_number(model, parameters, probe, time, qpos, qvel, ctrl, at);
  }
}

}  // namespace detail

// Fills values [probes.size]; `record` prepares measurement_adjoint(). `ctrl` may be null if probes.ctrl is false.
template <class Real>
REVOLUTE_HD void measurement(const Model& model, const Parameters<Real>& parameters, const Probes& probes,
                             const Real& time, const Real* qpos, const Real* qvel, const Real* ctrl,
                             Measurement<Real>& ws, Real* values) {
  for (int a = 0; a < model.nu; ++a) ws.no_ctrl[a] = Real(0);
  ws.A = nullptr;
  ws.kinematics = &ws.own;
  if (probes.acceleration) {
    soft_stage(model, parameters, qpos, qvel, ctrl, true, ws.stage);
    record_soft_stage(model, parameters, qvel, static_cast<const Real*>(nullptr), ws.stage);
    ws.kinematics = &ws.stage.kinematics;
    ws.A = ws.stage.acceleration.A;
  } else {
    kinematics(model, parameters, qpos, qvel, ws.own);
  }
  for (const Probe& probe : probes.list) {
    Real* const raw = ws.raw + probe.first;
    detail::measure_probe(model, parameters, probes, probe, time, qpos, qvel, ctrl, ws, raw);
    const Real bound(probe.cutoff);
    for (int i = 0; i < probe.size; ++i)
      values[probe.first + i] = probe.cutoff <= 0 ? raw[i]
                                : probe.positive  ? minimum(raw[i], bound)
                                                  : clamp(raw[i], -bound, bound);
  }
}

}  // namespace revolute
