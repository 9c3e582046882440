// The reverse of measured_values.hpp: pulls cotangents of the measured numbers back to the state, the control and parameters.
//
// Each probe adds to the cotangents of frames, links, bodies and rows of constraints. The links' cotangents are then summed
// towards the roots (kinematics.hpp, acceleration.hpp), which leaves a_bar of the acceleration. soft_stage.hpp pulls back a_bar
// and the cotangents of the constraints' forces; with the hard contact model, step.hpp does. With y_bar of a number, g = R_r y_bar (or R y_bar of a local one):
//   R_r' u:  u_bar = g,  turn_r -= u x g;    a column e of R:  turn += e x e_bar              (1)
#pragma once

#include "revolute/stages/measured_values.hpp"

namespace revolute {

namespace detail {

template <class Real>
REVOLUTE_HD void frame_probe_adjoint(const Model& model, const Parameters<Real>& parameters,
                                     const Probes& probes, const Probe& probe, const Real* qpos,
                                     const Real* qvel, const Measurement<Real>& at, const Real* bar,
                                     MeasurementAdjointWorkspace<Real>& ws,
                                     const InputCotangents<Real>& inputs) {
  const FramePair<Real> pair = frame_pair(model, parameters, at, probe);
  const Matrix3<Real>&R = pair.of.R, R_r = rotation_of(probe, pair.reference);
  const Vector3<Real> d = pair.of.p - pair.reference.p;
  FrameCotangent<Real> of = zero_frame_cotangent<Real>(), reference = of;
  const bool four = probe.kind == ProbeKind::quaternion, one = probe.kind == ProbeKind::distance,
             nine = probe.kind == ProbeKind::rotation;
  const bool two = probe.kind == ProbeKind::camera_projection;
  const Vector3<Real> y = one || two || nine ? zero3<Real>() : load3(bar + (four ? 1 : 0));
  const Vector3<Real> g = R_r * y, local = R * y;
  switch (probe.kind) {
    case ProbeKind::position:
      of.p = g;
      reference.p = -g;
      reference.turn = -cross(d, g);  // (1)
      break;
    case ProbeKind::quaternion: {
      Quaternion<Real> q = place_quaternion(model, parameters, probes, probe.of, qpos);
      if (probe.relative)
        q = conjugate(place_quaternion(model, parameters, probes, probe.reference, qpos)) * q;
      of.turn = R * tangent_cotangent(q, Quaternion<Real>{bar[0], y.x, y.y, y.z});
      reference.turn = -of.turn;
      break;
    }
    case ProbeKind::rotation:
      for (int j = 0; j < 3; ++j) {
        const Vector3<Real> column = R.column(j), G = R_r * Vector3<Real>{bar[j], bar[3 + j], bar[6 + j]};
        of.turn += cross(column, G);
      }
      reference.turn = -of.turn;
      break;
    case ProbeKind::x_axis:
    case ProbeKind::y_axis:
    case ProbeKind::z_axis:
      of.turn = cross(R.column(int(probe.kind) - int(ProbeKind::x_axis)), g);
      reference.turn = -of.turn;
      break;
    case ProbeKind::linear_velocity:
      of.v = g;
      reference.v = -g;
      if (!probe.relative) break;
      reference.w = -cross(d, g);
      of.p = cross(pair.reference_motion.w, g);
      reference.p = -of.p;
      reference.turn = -cross(relative_velocity(pair), g);
      break;
    case ProbeKind::angular_velocity:
      of.w = g;
      reference.w = -g;
      reference.turn = -cross(pair.motion.w - pair.reference_motion.w, g);
      break;
    case ProbeKind::local_linear_velocity:
      of.v = local;
      of.turn = -cross(pair.motion.v, local);
      break;
    case ProbeKind::local_angular_velocity:
      of.w = local;
      of.turn = -cross(pair.motion.w, local);
      break;
    case ProbeKind::local_field:
      of.turn = -cross(vector3<Real>(probe.field), local);
      break;
    case ProbeKind::distance: {
      const Real length = at.raw[probe.first];
      const auto apart = less(Real(0), length);
      of.p = select(apart, bar[0] / select(apart, length, Real(1)), Real(0)) * d;
      reference.p = -of.p;
      break;
    }
    case ProbeKind::camera_projection: {
      const double* const lens = probes.numbers.data() + probe.first_number;
      const Vector3<Real> x = transpose_times(R_r, d);
      const Real inverse = Real(1) / x.z, u = -(Real(lens[0]) * inverse) * bar[0],
                 v = (Real(lens[1]) * inverse) * bar[1];
      const Vector3<Real> x_bar = R_r * Vector3<Real>{u, v, -inverse * (u * x.x + v * x.y)};
      of.p = x_bar;
      reference.p = -x_bar;
      reference.turn = -cross(d, x_bar);
      break;
    }
    case ProbeKind::local_acceleration:
      of.a = local;
      of.turn = -cross(pair.motion.a, local);
      break;
    case ProbeKind::linear_acceleration:
      of.a = y;
      break;
    case ProbeKind::angular_acceleration:
      of.alpha = y;
      break;
    default: {  // force, torque
      const Force<Real> F = subtree_force(model, parameters, at, probes, probe, qpos, qvel);
      Motion<Real> M = {zero3<Real>(), local};
      if (probe.kind == ProbeKind::force) {
        of.turn = -cross(F.f, local);
      } else {
        M = {local, cross(pair.of.p, local)};
        of.p = -cross(F.f, local);
        of.turn = -cross(F.n - cross(pair.of.p, F.f), local);
      }
      subtree_inertial_force_adjoint(model, parameters, *at.kinematics, at.A, probes, probe, M, ws.links,
                                     *inputs.parameters);
      const auto pull = [&](const ConstraintView& c, int r, int side, const Force<Real>& wrench,
                            const Vector3<Real>& o) {
        const Motion<Real> on = at_reference(o, M);
        ws.force_bar[r] -= dot(on, wrench);
        if (r == c.row) add_motion(model, c, side, Motion<Real>{-on.w, -on.v}, ws);
      };
      for_wrenches(model, at, probes, probe, pull);
      visit_pieces(model, probes, probe, [&](int t, const PathSegment& segment, int flags) {
        const Kinematics<Real>& links = *at.kinematics;
        const Real y = -dot(M, piece_wrench(model, links, segment, flags));
        tendon_pull_adjoint(model, parameters, t, qpos, qvel, at, y, ws, inputs);
        piece_wrench_adjoint(model, links, segment, flags, M,
                             -tendon_pull(model, parameters, t, qpos, qvel, at), ws.links.kinematics);
      });
      visit_applied_wrenches(model, parameters, *at.kinematics, [&](int b, int link, const Force<Real>&) {
        if (!probes.in_subtree[std::size_t(probe.membership) * model.nbody + b]) return;
        const Motion<Real> on = at_reference(tree_origin(model, *at.kinematics, link), M);
        applied_wrench_adjoint(model, parameters, *at.kinematics, b, Motion<Real>{-on.w, -on.v},
                               ws.links.kinematics, *inputs.parameters);
      });
    }
  }
  const Kinematics<Real>& kin = *at.kinematics;
  frame_adjoint(model, kin, at.A, probe.of, pair.of, pair.motion, of, ws.links, *inputs.parameters);
  if (probe.relative)
    frame_adjoint(model, kin, at.A, probe.reference, pair.reference, pair.reference_motion, reference,
                  ws.links, *inputs.parameters);
}

template <class Real>
REVOLUTE_HD void subtree_probe_adjoint(const Model& model, const Parameters<Real>& parameters,
                                       const Probes& probes, const Probe& probe, const Measurement<Real>& at,
                                       const Real* bar, MeasurementAdjointWorkspace<Real>& ws,
                                       const InputCotangents<Real>& inputs) {
  const SubtreeSums<Real> sums = subtree_sums(model, parameters, *at.kinematics, probes, probe);
  const Real inverse = Real(1) / sums.mass;
  const Vector3<Real> y = load3(bar), P = sums.momentum.f, com = inverse * sums.h, o = zero3<Real>();
  Real mass_bar(0);
  Vector3<Real> h_bar = o;
  Motion<Real> momentum_bar = {o, o};
  if (probe.kind == ProbeKind::subtree_com) {
    h_bar = inverse * y;
    mass_bar = -inverse * dot(com, y);
  } else if (probe.kind == ProbeKind::subtree_linear_velocity) {
    momentum_bar.v = inverse * y;
    mass_bar = -inverse * inverse * dot(P, y);
  } else {
    const Vector3<Real> com_bar = -cross(P, y);  // from -y . (com x P)
    momentum_bar = {y, cross(com, y)};
    h_bar = inverse * com_bar;
    mass_bar = -inverse * dot(com, com_bar);
  }
  subtree_adjoint(model, parameters, *at.kinematics, probes, probe, mass_bar, h_bar, momentum_bar, ws.links,
                  *inputs.parameters);
}

template <class Real>
REVOLUTE_HD void limit_probe_adjoint(const Model& model, const Parameters<Real>& parameters,
                                     const Probe& probe, const Real* qpos, const Real* qvel,
                                     const Measurement<Real>& at, const Real& bar,
                                     MeasurementAdjointWorkspace<Real>& ws,
                                     const InputCotangents<Real>& inputs) {
  for_limits(model, parameters, qpos, probe.index,
             [&](int i, const RowJacobian<Real>& J, const Real&, const Real& acts) {
               const Limit& limit = model.limits_list[i];
               RowJacobianCotangent<Real> J_bar;
               J_bar.force_a = J_bar.force_b = zero_force<Real>();
               for (Real& entry : J_bar.coefficient) entry = Real(0);
               const Real y = acts * bar;
               if (probe.kind == ProbeKind::limit_velocity) {
                 add_row_cotangent(J, y, qvel, at.kinematics->V, J_bar);
                 add_row_transpose(J, y, inputs.qvel, ws.links.V);
                 limit_gap_adjoint(limit, qpos, Real(0), J_bar, inputs.qpos, *inputs.parameters);
               }
               if (probe.kind == ProbeKind::limit_position)
                 limit_gap_adjoint(limit, qpos, y, J_bar, inputs.qpos, *inputs.parameters);
               if (probe.kind != ProbeKind::limit_force) return;
               const int row = row_of_source(model, at, RowSource::limit, i);
               if (row >= 0) ws.force_bar[row] += is_soft(model) ? y : bar;
             });
}

template <class Real>
REVOLUTE_HD void probe_adjoint(const Model& model, const Parameters<Real>& parameters, const Probes& probes,
                               const Probe& probe, std::size_t place, const Real* qpos, const Real* qvel,
                               const Measurement<Real>& at, const Real* bar,
                               MeasurementAdjointWorkspace<Real>& ws, const InputCotangents<Real>& inputs) {
  if (is_frame(probe.kind))
    return frame_probe_adjoint(model, parameters, probes, probe, qpos, qvel, at, bar, ws, inputs);
  const int index = probe.index;
  switch (probe.kind) {
    case ProbeKind::clock:
      return;
    case ProbeKind::joint_position: {
      for (int j = 0; j < model.njnt; ++j)
        if (model.joints[j].qpos == probe.index) inputs.qpos[model.joints[j].dof] += bar[0];
      return;
    }
    case ProbeKind::joint_velocity:
      inputs.qvel[probe.index] += bar[0];
      return;
    case ProbeKind::ball_velocity:
      return add3(inputs.qvel + probe.index, load3(bar));
    case ProbeKind::ball_quaternion: {
      for (int j = 0; j < model.njnt; ++j)
        if (model.joints[j].qpos == probe.index)
          add3(inputs.qpos + model.joints[j].dof,
               tangent_cotangent(load_quaternion(qpos + probe.index),
                                 Quaternion<Real>{bar[0], bar[1], bar[2], bar[3]}));
      return;
    }
    case ProbeKind::subtree_com:
    case ProbeKind::subtree_linear_velocity:
    case ProbeKind::subtree_angular_momentum:
      return subtree_probe_adjoint(model, parameters, probes, probe, at, bar, ws, inputs);
    case ProbeKind::actuator_position:
      ws.actuator_length[index] += bar[0];
      return;
    case ProbeKind::actuator_velocity:
      ws.actuator_velocity[index] += bar[0];
      return;
    case ProbeKind::force_of_actuator:
      ws.actuator_force[index] += bar[0];
      return;
    case ProbeKind::actuator_force_on_joint:
      ws.joint_force[index] += bar[0];
      return;
    case ProbeKind::actuator_force_on_tendon:
      for (int a = 0; a < model.nu; ++a)
        if (model.actuators[a].transmission == index) ws.actuator_force[a] += bar[0];
      return;
    case ProbeKind::tendon_position:
      ws.transmissions.length[index] += bar[0];
      return;
    case ProbeKind::tendon_velocity:
      ws.transmissions.velocity[index] += bar[0];
      return;
    case ProbeKind::tendon_limit_position:
    case ProbeKind::tendon_limit_velocity:
      return for_tendon_limits(model, index, at.transmissions.length[index],
                               [&](int, const Real& sign, const Real&, const Real& acts) {
                                 const bool position = probe.kind == ProbeKind::tendon_limit_position;
                                 (position ? ws.transmissions.length : ws.transmissions.velocity)[index] +=
                                     acts * sign * bar[0];
                               });
    case ProbeKind::tendon_limit_force:
      for (int side = 0; side < 2; ++side) {
        const int row = row_of_source(model, at, RowSource::tendon_limit, 2 * index + side);
        if (row >= 0) ws.force_bar[row] += bar[0];
      }
      return;
    case ProbeKind::potential_energy:
      return potential_energy_adjoint(model, parameters, probes, probe, qpos, at, bar[0], ws, inputs);
    case ProbeKind::kinetic_energy:
      return kinetic_energy_adjoint(model, parameters, qvel, at, bar[0], ws, inputs);
    case ProbeKind::inside_site:
      return;
    case ProbeKind::range_finder:
      return rays_adjoint(model, parameters, probes, probe, at, at.rays + place * Width<Real>::value, bar, ws,
                          inputs);
    case ProbeKind::geom_distance:
    case ProbeKind::geom_normal:
    case ProbeKind::geom_points:
      return distance_adjoint(model, probes, probe, at, bar, ws);
    case ProbeKind::contacts:
      return contacts_adjoint(model, parameters, probes, probe, at, bar, ws);
    case ProbeKind::touch: {
      const MeasuredFrame<Real> frame = measured_frame(model, parameters, *at.kinematics, probe.of);
      for_touches(model, at, probe, frame,
                  [&](int row, const Real& felt) { ws.force_bar[row] += felt * bar[0]; });
      return;
    }
    default:
      return limit_probe_adjoint(model, parameters, probe, qpos, qvel, at, bar[0], ws, inputs);
  }
}

// Sums the links' cotangents of V and A towards the roots: gives those of S, qvel and gravity, and a_bar.
template <class Real>
REVOLUTE_HD void link_motion_adjoint(const Model& model, const Real* qvel, const Measurement<Real>& at,
                                     MeasurementAdjointWorkspace<Real>& ws,
                                     const InputCotangents<Real>& inputs) {
  const Kinematics<Real>& kin = *at.kinematics;
  Force<Real>*const V_bar = ws.links.V, *const A_bar = ws.links.A;
  for (int k = model.nv - 1; k >= 0; --k) {
    const Dof& dof = model.dofs[k];
    const Motion<Real>& S = kin.S[k];
    if (at.A) {
      const Real a = at.a[k];
      ws.a_bar[k] = dot(S, A_bar[k]);
      ws.links.kinematics.S[k] += a * A_bar[k];
      velocity_product_adjoint(model, kin, k, qvel[k], A_bar[k], inputs.qvel[k], ws.links.kinematics.S[k],
                               V_bar);
      if (dof.parent >= 0)
        A_bar[dof.parent] += A_bar[k];
      else
        *inputs.parameters->gravity -= A_bar[k].f;
    }
    inputs.qvel[k] += dot(S, V_bar[k]);
    ws.links.kinematics.S[k] += qvel[k] * V_bar[k];
    if (dof.parent >= 0) V_bar[dof.parent] += V_bar[k];
  }
}

}  // namespace detail

namespace detail {

template <class Real>
REVOLUTE_HD void clear_cotangents(const Model& model, const Probes& probes, const Measurement<Real>& at,
                                  MeasurementAdjointWorkspace<Real>& ws) {
  ws.links.clear(model);
  for (int k = 0; k < model.nv; ++k) ws.joint_force[k] = ws.zero[k] = Real(0);
  for (int a = 0; a < model.nu; ++a)
    ws.actuator_length[a] = ws.actuator_velocity[a] = ws.actuator_force[a] = ws.no_ctrl_bar[a] = Real(0);
  if (probes.transmissions) ws.transmissions.clear(model);
  if (!probes.acceleration) return;
  visit_constraints(model, at, [&](const ConstraintView& c) {
    for (int r = c.row; r < c.row + c.rows; ++r) ws.force_bar[r] = Real(0);
    for (int i = 0; i < (is_soft(model) ? 1 : c.rows); ++i)
      ws.on_a[c.place + i] = ws.on_b[c.place + i] = zero_motion<Real>();
  });
  for (int c = 0; c < contacts_of(model, at).count; ++c) ws.contacts[c].clear();
}

// Starts from the cotangents of the mean acceleration and forces of a step.
template <class Real>
REVOLUTE_HD void hard_step_adjoint(const Model& model, const Parameters<Real>& parameters, const Real* qpos,
                                   const Real* qvel, const Real* ctrl, const Measurement<Real>& at,
                                   MeasurementAdjointWorkspace<Real>& ws,
                                   const InputCotangents<Real>& inputs) {
  const Real inverse_h(1.0 / model.timestep);
  for (int k = 0; k < velocities(model); ++k) ws.state.qvel[k] = Real(0);
  for (int k = 0; k < model.nv; ++k) {
    ws.state.qpos[k] = Real(0);
    ws.state.qvel[k] = inverse_h * ws.a_bar[k];
    inputs.qvel[k] -= ws.state.qvel[k];
  }
  for (int r = 0; r < at.hard.rows.count; ++r) {
    ws.force_bar[r] = inverse_h * ws.force_bar[r];
    ws.on_a[r] = inverse_h * ws.on_a[r];
    ws.on_b[r] = inverse_h * ws.on_b[r];
  }
  const ImpulseCotangent<Real> measured = {ws.force_bar, ws.on_a, ws.on_b};
  step_adjoint(model, parameters, qpos, qvel, ctrl, at.hard, ws.hard, ws.state,
               inputs.ctrl ? inputs.ctrl : ws.no_ctrl_bar, *inputs.parameters, &measured);
  for (int k = 0; k < model.nv; ++k) inputs.qpos[k] += ws.state.qpos[k];
  for (int k = 0; k < velocities(model); ++k) inputs.qvel[k] += ws.state.qvel[k];
}

}  // namespace detail

template <class Real>
void measurement_adjoint(const Model& model, const Parameters<Real>& parameters, const Probes& probes,
                         const Real* qpos, const Real* qvel, const Real* ctrl, const Measurement<Real>& at,
                         const Real* bar, MeasurementAdjointWorkspace<Real>& ws,
                         const InputCotangents<Real>& inputs) {
  detail::clear_cotangents(model, probes, at, ws);
  for (std::size_t place = 0; place < probes.list.size(); ++place) {
    const Probe& probe = probes.list[place];
    for (int i = 0; i < probe.size; ++i) {
      const int k = probe.first + i;
      const Real beyond = probe.positive ? at.raw[k] : abs(at.raw[k]);
      ws.cut[k] = probe.cutoff > 0 ? select(less(Real(probe.cutoff), beyond), Real(0), bar[k]) : bar[k];
    }
    detail::probe_adjoint(model, parameters, probes, probe, place, qpos, qvel, at, ws.cut + probe.first, ws,
                          inputs);
  }
  if (probes.transmissions) detail::drives_adjoint(model, parameters, qpos, qvel, at, ws, inputs);
  for (int c = 0; probes.acceleration && c < detail::contacts_of(model, at).count; ++c)
    collision_detection_adjoint(model, detail::kinematics_of_rows(model, at),
                                detail::contacts_of(model, at).list[c], ws.contacts[c], ws.links.kinematics);
  detail::link_motion_adjoint(model, qvel, at, ws, inputs);
  kinematics_adjoint(model, parameters, *at.kinematics, ws.links.kinematics, inputs.qpos, *inputs.parameters);
  if (!probes.acceleration) return;
  if (!is_soft(model)) return detail::hard_step_adjoint(model, parameters, qpos, qvel, ctrl, at, ws, inputs);
  const SoftForceCotangent<Real> forces = {ws.force_bar, ws.on_a, ws.on_b};
  soft_stage_adjoint(model, parameters, qpos, qvel, ctrl, at.stage, ws.a_bar,
                     IntegratorCotangent<Real, Real>{nullptr, nullptr, ws.zero, nullptr, nullptr, nullptr},
                     ws.stage, inputs.qpos, inputs.qvel, inputs.ctrl, *inputs.parameters, &forces);
}

}  // namespace revolute
