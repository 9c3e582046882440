// Actuation: generalized forces of actuators, springs and viscous damping, and their part that is implicit in the velocity.
//
// MuJoCo's actuator acts on a length l with rate d: gear q and gear v of a hinge or slide joint, or those of a transmission:
//   f = clamp(g u + b),  g = g0 + g1 l + g2 d,  b = b0 + b1 l + b2 d,  or a muscle's,   tau = (dl/dq)' f      (1)
// u is the control within its range, or the activation (activation.hpp).
//   tau -= stiffness (q - rest) + damping v, the same for tendons on their lengths,   tau += qfrc_applied                   (2)
// The mass matrix gets, in addition,
//   armature + h damping,   and with implicitfast  + h J' (-df/dd) J  where f is within its range,  + h J' damping J of tendons      (3)
// On hinges and slides this is a diagonal. Of transmissions, `coupling` has the entries between degrees of freedom on one path
// to the root, as in MuJoCo. If the sum of forces of a joint or tendon has a limit, the forces are clamped as well, and beyond
// the limit nothing is implicit:
//   tendon: all forces times limit/sum,   joint: the sum of generalized forces               (4)
// Reads qpos, qvel, ctrl, transmissions. Writes tau, diagonal. A control or force beyond its range has no derivative; exactly
// on the bound it has one.
#pragma once

#include "revolute/model/joints/ball.hpp"
#include "revolute/model/joints/revolute.hpp"
#include "revolute/stages/activation.hpp"
#include "revolute/stages/link_forces.hpp"
#include "revolute/stages/muscle.hpp"
#include "revolute/stages/transmission.hpp"

namespace revolute {

REVOLUTE_HD inline bool implicit_actuators(const Model& model) {
  return model.integrator == Integrator::implicitfast || model.integrator == Integrator::implicit;
}
// Whether (3), or a medium, adds more than a diagonal to the implicit matrix.
REVOLUTE_HD inline bool has_coupling(const Model& model) {
  return implicit_actuators(model) && (model.ntransmission > 0 || any_medium(model));
}

// The inputs of actuation.
template <class Real>
struct ActuationInput {
  const Real *qpos, *qvel, *ctrl;
  const Transmissions<Real>* transmissions;
  const Real* lift;  // [nv] gravity compensation, or null
};

// How one actuator gets from control to force.
template <class Real>
struct ActuatorState {
  Real scale;  // of the length of the joint or transmission
  Real length, velocity;
  Real ctrl;      // within its range
  Real ctrl_cut;  // 0 where the range cut the control off, 1 elsewhere
  ActivationRate<Real> rate;
  Real act_cut, input;                                      // u
  Real force;                                               // within its range
  Real force_cut;                                           // as ctrl_cut, for the force
  Real gain;                                                // df/du before the range
  Real by_length, by_velocity;                              // df/dl, df/dd
  Real slope_by_input, slope_by_length, slope_by_velocity;  // derivatives of by_velocity
};

template <class Real>
REVOLUTE_HD inline void actuator_input(const Actuator& actuator, const Real* act, ActuatorState<Real>& s) {
  s.input = s.ctrl;
  s.act_cut = Real(1);
  if (actuator.dynamics == ActivationType::none) return;
  s.input = act[actuator.act];
  if (!actuator.early) return;
  s.rate = activation_rate(actuator, s.ctrl, s.input);
  s.input = next_activation(actuator, s.input, s.rate.value, s.act_cut);
}
template <class Real>
REVOLUTE_HD inline ActuatorState<Real> actuator_state(const Model& model, const Parameters<Real>& parameters,
                                                      int a, const ActuationInput<Real>& at) {
  const Actuator& actuator = model.actuators[a];
  const Real gear = parameters.gear[a];
  const Real *const gain = parameters.gain + 3 * a, *const bias = parameters.bias + 3 * a;
  ActuatorState<Real> s;
  const int t = actuator.transmission;
  s.scale = t < 0 || actuator.geared ? gear : Real(1);
  s.length = s.scale * (t < 0 ? at.qpos[actuator.qpos] : at.transmissions->length[t]);
  s.velocity = s.scale * (t < 0 ? at.qvel[actuator.dof] : at.transmissions->velocity[t]);
  s.ctrl = within_range(actuator.ctrl_limited, actuator.ctrl_range, at.ctrl[a], s.ctrl_cut);
  actuator_input(actuator, at.qvel + model.nv, s);
  s.by_length = gain[1] * s.input + bias[1];
  s.by_velocity = gain[2] * s.input + bias[2];
  Real force = gain[0] * s.input + bias[0] + s.by_length * s.length + s.by_velocity * s.velocity;  // (1)
  s.gain = gain[0] + gain[1] * s.length + gain[2] * s.velocity;
  s.slope_by_input = gain[2];
  s.slope_by_length = s.slope_by_velocity = Real(0);
  if (actuator.muscle_gain) {
    const MuscleForce<Real> muscle = muscle_gain(actuator.gain, s.length, s.velocity);
    force += muscle.value * s.input;
    s.gain += muscle.value;
    s.by_length += muscle.by_length * s.input;
    s.by_velocity += muscle.by_velocity * s.input;
    s.slope_by_input += muscle.by_velocity;
    s.slope_by_length = muscle.by_velocity_length * s.input;
    s.slope_by_velocity = muscle.by_velocity_velocity * s.input;
  }
  if (actuator.muscle_bias) {
    const MuscleForce<Real> muscle = muscle_bias(actuator.bias, s.length);
    force += muscle.value;
    s.by_length += muscle.by_length;
  }
  s.force = within_range(actuator.force_limited, actuator.force_range, force, s.force_cut);
  return s;
}

// Adds an actuator's force to the generalized forces.
template <class Real, class X>
REVOLUTE_HD inline void add_actuator_force(const Model& model, const Actuator& actuator,
                                           const Transmissions<Real>* transmissions, const X& force, X* tau) {
  if (actuator.transmission < 0) {
    tau[actuator.dof] += force;
    return;
  }
  const Transmission& of = model.transmissions[actuator.transmission];
  add_row(dofs_of(model, of), transmissions->row(of), force, tau);
}

// --- limits on sums (4) ---------------------------------------------------------------------------------------------------

// The tendon that an actuator pulls if the tendon limits the sum of its actuators' forces, else -1.
REVOLUTE_HD inline int limited_tendon(const Model& model, const Actuator& actuator) {
  const int t = actuator.transmission;
  return t >= 0 && t < model.ntendon && model.tendons[t].force_limited ? t : -1;
}
// The share of each of a tendon's forces that the limit leaves; `cut` is 0 if the limit acts.
template <class Real>
REVOLUTE_HD inline Real tendon_share(const Tendon& tendon, const Real& total, Real& cut) {
  const Real kept = within_range(true, tendon.force_range, total, cut);
  const auto acts = less(cut, Real(0.5));
  return select(acts, kept / select(acts, total, Real(1)), Real(1));
}
// 0 if a limit on a sum acts on an actuator, else 1.
template <class Real>
REVOLUTE_HD inline Real sum_cut(const Model& model, const Actuator& actuator,
                                const Transmissions<Real>* transmissions) {
  Real cut(1);
  if (!model.total_limits) return cut;
  const int t = limited_tendon(model, actuator);
  if (t >= 0) tendon_share(model.tendons[t], transmissions->total[t], cut);
  if (actuator.transmission >= 0) return cut;
  const Joint& joint = model.joints[model.dof_joints[actuator.dof]];
  if (joint.force_limited) within_range(true, joint.force_range, transmissions->driven[actuator.dof], cut);
  return cut;
}
template <class Real>
REVOLUTE_HD void add_limited_forces(const Model& model, const Parameters<Real>& parameters,
                                    const ActuationInput<Real>& at, Transmissions<Real>& out, Real* tau) {
  for (int t = 0; t < model.ntendon; ++t) out.total[t] = Real(0);
  for (int k = 0; k < model.nv; ++k) out.driven[k] = Real(0);
  for (int a = 0; a < model.nu; ++a) {
    const int t = limited_tendon(model, model.actuators[a]);
    if (t >= 0) out.total[t] += out.force[a];
  }
  for (int a = 0; a < model.nu; ++a) {
    const Actuator& actuator = model.actuators[a];
    const int t = limited_tendon(model, actuator);
    Real force = out.force[a], cut;
    if (t >= 0) force = tendon_share(model.tendons[t], out.total[t], cut) * force;
    const Real scale = actuator.transmission < 0 || actuator.geared ? parameters.gear[a] : Real(1);
    add_actuator_force(model, actuator, at.transmissions, scale * force, out.driven);
  }
  for (int j = 0; j < model.njnt; ++j) {
    const Joint& joint = model.joints[j];
    const int last = joint.dof + degrees_of_freedom(joint.type);
    for (int k = joint.dof; k < last; ++k) {
      if (joint.lifted && at.lift) out.driven[k] += at.lift[k];
      Real cut;
      tau[k] += within_range(joint.force_limited, joint.force_range, out.driven[k], cut);
    }
  }
}
// An actuator's force within all ranges but that of the joint's sum. add_actuator_forces() must have run.
template <class Real>
REVOLUTE_HD inline Real force_of_actuator(const Model& model, const Transmissions<Real>& at, int a,
                                          const ActuatorState<Real>& s) {
  const int t = model.total_limits ? limited_tendon(model, model.actuators[a]) : -1;
  if (t < 0) return s.force;
  Real cut;
  return tendon_share(model.tendons[t], at.total[t], cut) * s.force;
}
// Cotangents of the measurements of actuators: lengths, velocities, and forces after all clamps of the actuators themselves.
template <class Bar>
struct ActuatorCotangent {
  const Bar *length, *velocity, *force;  // [nu]
};

// Passes tau_bar on to the forces before (4): `driven_bar` gives the cotangents of the joints' forces, bar.force gets those of
// the actuators' forces. Adds to the cotangents of J and of the gears.
template <class Real, class Bar>
REVOLUTE_HD void limited_forces_adjoint(const Model& model, const Parameters<Real>& parameters,
                                        const ActuationInput<Real>& at, const Bar* tau_bar,
                                        const ActuatorCotangent<Bar>* own, TransmissionsCotangent<Bar>& bar,
                                        Bar* lift_bar, Parameters<Bar>& parameters_bar) {
  const Transmissions<Real>& forces = *at.transmissions;
  const auto driven_bar = [&](int k) {
    const Joint& joint = model.joints[model.dof_joints[k]];
    Real cut;
    within_range(joint.force_limited, joint.force_range, forces.driven[k], cut);
    return cut * tau_bar[k];
  };
  for (int k = 0; lift_bar && k < model.nv; ++k)
    if (model.joints[model.dof_joints[k]].lifted) lift_bar[k] = driven_bar(k);
  // by the force of each actuator
  for (int a = 0; a < model.nu; ++a) {
    const Actuator& actuator = model.actuators[a];
    const int t = limited_tendon(model, actuator);
    Real share(1), cut;
    if (t >= 0) share = tendon_share(model.tendons[t], forces.total[t], cut);
    const Real scale = actuator.transmission < 0 || actuator.geared ? parameters.gear[a] : Real(1);
    const Real given = share * forces.force[a];
    Bar sum(0);
    if (actuator.transmission < 0) {
      sum = driven_bar(actuator.dof);
    } else {
      const Transmission& of = model.transmissions[actuator.transmission];
      const TransmissionDofs dofs = dofs_of(model, of);
      Bar* const J_bar = bar.row(of);
      for (int i = 0; i < dofs.count; ++i) {
        const Bar k_bar = driven_bar(dofs.dofs[i]);
        sum = multiply_add(forces.row(of)[i], k_bar, sum);
        J_bar[i] += (scale * given) * k_bar;
      }
    }
    if (actuator.transmission < 0 || actuator.geared) parameters_bar.gear[a] += given * sum;
    bar.force[a] = scale * sum;
    if (own) bar.force[a] += own->force[a];
  }
  // a tendon whose sum T is limited to c scales each force f_i to f_i c/T
  for (int t = 0; t < model.ntendon; ++t) {
    if (!model.tendons[t].force_limited) continue;
    Real cut;
    const Real share = tendon_share(model.tendons[t], forces.total[t], cut);
    Bar together(0);
    for (int a = 0; a < model.nu; ++a)
      if (limited_tendon(model, model.actuators[a]) == t) together += forces.force[a] * bar.force[a];
    const Real acts = Real(1) - cut;
    const Real inverse = acts / select(less(Real(0.5), acts), forces.total[t], Real(1));
    for (int a = 0; a < model.nu; ++a)
      if (limited_tendon(model, model.actuators[a]) == t)
        bar.force[a] = share * (bar.force[a] - inverse * together);
  }
}

// --- tendons (2) ----------------------------------------------------------------------------------------------------------

// A spring's pull, and whether the spring pulls.
template <class Real>
REVOLUTE_HD inline Real tendon_stretch(const Tendon& tendon, const Real& length, Real& pulls) {
  const Real lower(tendon.spring[0]), upper(tendon.spring[1]);
  // a rest length, and no range in which the spring is slack
  if (tendon.spring[0] == tendon.spring[1]) {
    pulls = Real(1);
    return lower - length;
  }
  const auto longer = less(upper, length), shorter = less(length, lower);
  pulls = indicator<Real>(longer | shorter);
  return select(longer, upper - length, select(shorter, lower - length, Real(0)));
}
template <class Real>
REVOLUTE_HD void add_tendon_forces(const Model& model, const Transmissions<Real>& at, Real* tau) {
  for (int t = 0; t < model.ntendon; ++t) {
    const Tendon& tendon = model.tendons[t];
    if (tendon.stiffness == 0 && tendon.damping == 0) continue;
    Real pulls;
    const Real force = Real(tendon.stiffness) * tendon_stretch(tendon, at.length[t], pulls) -
                       Real(tendon.damping) * at.velocity[t];
    add_row(dofs_of(model, model.transmissions[t]), at.row(model.transmissions[t]), force, tau);
  }
}
template <class Real, class Bar>
REVOLUTE_HD void tendon_forces_adjoint(const Model& model, const Transmissions<Real>& at, const Bar* tau_bar,
                                       TransmissionsCotangent<Bar>& bar) {
  for (int t = 0; t < model.ntendon; ++t) {
    const Tendon& tendon = model.tendons[t];
    if (tendon.stiffness == 0 && tendon.damping == 0) continue;
    const Transmission& of = model.transmissions[t];
    const TransmissionDofs dofs = dofs_of(model, of);
    Real pulls;
    const Real stiffness(tendon.stiffness), damping(tendon.damping);
    const Real force = stiffness * tendon_stretch(tendon, at.length[t], pulls) - damping * at.velocity[t];
    const Bar force_bar = row_product(dofs, at.row(of), tau_bar);
    Bar* const J_bar = bar.row(of);
    for (int i = 0; i < dofs.count; ++i) J_bar[i] += force * tau_bar[dofs.dofs[i]];
    bar.length[t] -= (stiffness * pulls) * force_bar;
    bar.velocity[t] -= damping * force_bar;
  }
}

// --- all together ---------------------------------------------------------------------------------------------------------

// Adds the generalized forces of the actuators, which are MuJoCo's qfrc_actuator, and their implicit part; `diagonal` may be null.
template <class Real>
REVOLUTE_HD void add_actuator_forces(const Model& model, const Parameters<Real>& parameters, Real h,
                                     const ActuationInput<Real>& at, Transmissions<Real>& transmissions,
                                     Real* tau, Real* diagonal) {
  const bool implicit = diagonal && implicit_actuators(model);
  for (int a = 0; a < model.nu; ++a) {
    const Actuator& actuator = model.actuators[a];
    const ActuatorState<Real> s = actuator_state(model, parameters, a, at);
    if (model.total_limits)
      transmissions.force[a] = s.force;
    else
      add_actuator_force(model, actuator, at.transmissions, s.scale * s.force, tau);
    if (implicit && actuator.transmission < 0)
      diagonal[actuator.dof] -= h * (s.scale * s.scale * (s.force_cut * s.by_velocity));  // (3)
  }
  if (!model.total_limits) return;
  add_limited_forces(model, parameters, at, transmissions, tau);
  // forces that a limit on the sum cuts off are not implicit
  for (int a = 0; implicit && a < model.nu; ++a) {
    const Actuator& actuator = model.actuators[a];
    if (actuator.transmission >= 0) continue;
    const ActuatorState<Real> s = actuator_state(model, parameters, a, at);
    const Real cut = Real(1) - sum_cut(model, actuator, at.transmissions);
    diagonal[actuator.dof] += h * (s.scale * s.scale * (cut * s.force_cut * s.by_velocity));
  }
}

template <class Real>
REVOLUTE_HD void actuation(const Model& model, const Parameters<Real>& parameters, Real h,
                           const ActuationInput<Real>& at, Transmissions<Real>& transmissions, Real* tau,
                           Real* diagonal) {
  for (int k = 0; k < model.nv; ++k) {
    tau[k] = -parameters.damping[k] * at.qvel[k];                      // (2)
    diagonal[k] = parameters.armature[k] + h * parameters.damping[k];  // (3)
  }
  if (const Real* const applied = parameters.input(Input::qfrc_applied))
    for (int k = 0; k < model.nv; ++k) tau[k] += applied[k];  // (2)
  for (int j = 0; j < model.njnt; ++j) {
    const Joint& joint = model.joints[j];
    if (joint.type == JointType::ball)
      BallJoint::add_spring(joint, parameters.stiffness[j], parameters.spring, at.qpos, tau);
    if (joint.type > JointType::ball)
      RevoluteJoint::add_spring(joint, parameters.stiffness[j], parameters.spring, at.qpos, tau);
  }
  add_tendon_forces(model, transmissions, tau);
  for (int k = 0; at.lift && k < model.nv; ++k)
    if (!model.total_limits || !model.joints[model.dof_joints[k]].lifted) tau[k] += at.lift[k];
  add_actuator_forces(model, parameters, h, at, transmissions, tau, diagonal);
}

// Calls visit(i, j, place) for the pairs of a row's degrees of freedom that lie on one path, i <= j in the row; `place` is the
// place of their entry in the mass matrix.
template <class Visit>
REVOLUTE_HD void visit_coupling(const Model& model, const TransmissionDofs& dofs, const Visit& visit) {
  for (int i = 0; i < dofs.count; ++i) {
    const MatrixRow row = tree_row(model, dofs.dofs[i]);
    for (int p = 0, j = i; p < row.count; ++p) {
      while (j < dofs.count && dofs.dofs[j] > row.dofs[p]) ++j;
      if (j < dofs.count && dofs.dofs[j] == row.dofs[p]) visit(i, j, model.mass_rows[dofs.dofs[i]] + p);
    }
  }
}

// The implicit part of (3), without armature; `coupling` is null or is laid out as the mass matrix.
template <class Real>
REVOLUTE_HD void implicit_matrix(const Model& model, const Parameters<Real>& parameters, Real h,
                                 const ActuationInput<Real>& at, Real* diagonal, Real* coupling) {
  for (int k = 0; k < model.nv; ++k) diagonal[k] = h * parameters.damping[k];
  if (!implicit_actuators(model)) return;
  for (int i = 0; coupling && i < model.mass_rows[model.nv]; ++i) coupling[i] = Real(0);
  const auto add_square = [&](const Transmission& of, const Real& weight) {
    const TransmissionDofs dofs = dofs_of(model, of);
    const Real* const J = at.transmissions->row(of);
    visit_coupling(model, dofs, [&](int i, int j, int place) { coupling[place] += weight * J[i] * J[j]; });
  };
  for (int t = 0; coupling && t < model.ntendon; ++t)
    if (model.tendons[t].damping != 0) add_square(model.transmissions[t], h * Real(model.tendons[t].damping));
  for (int a = 0; a < model.nu; ++a) {
    const Actuator& actuator = model.actuators[a];
    const ActuatorState<Real> s = actuator_state(model, parameters, a, at);
    const Real cut = s.force_cut * sum_cut(model, actuator, at.transmissions);
    const Real weight = h * (s.scale * s.scale * (cut * s.by_velocity));
    if (actuator.transmission < 0)
      diagonal[actuator.dof] -= weight;
    else if (coupling)
      add_square(model.transmissions[actuator.transmission], -weight);
  }
}

// Cotangents of tau, of the armature in (3), and of the rest of its diagonal. The coupling's cotangent is -p_i x_j - p_j x_i;
// null `p` and `x` mean no coupling.
template <class Real, class Bar>
struct ActuationCotangent {
  const Bar *tau, *armature, *implicit;
  const Bar* p;
  const Real* x;
};

// From the cotangent of weight J'J, given by p and x: returns the weight's cotangent and adds to that of J.
template <class Real, class Bar>
REVOLUTE_HD Bar square_adjoint(const Model& model, const TransmissionDofs& dofs, const Real* J,
                               const Real& weight, const Bar* p, const Real* x, Bar* J_bar) {
  Bar weight_bar(0);
  visit_coupling(model, dofs, [&](int i, int j, int) {
    const int k = dofs.dofs[i], l = dofs.dofs[j];
    const Bar entry_bar = i == j ? Bar(-x[k] * p[k]) : Bar(-x[l] * p[k] - x[k] * p[l]);
    weight_bar += (J[i] * J[j]) * entry_bar;
    J_bar[i] += (weight * J[j]) * entry_bar;
    J_bar[j] += (weight * J[i]) * entry_bar;
  });
  return weight_bar;
}

// The reverse of add_actuator_forces(). `bar.implicit`, `own` and `lift_bar` may be null; sets the lift_bar of joints whose
// actuators' forces include the lift.
template <class Real, class Bar>
REVOLUTE_HD void actuator_forces_adjoint(const Model& model, const Parameters<Real>& parameters, Real h,
                                         const ActuationInput<Real>& at,
                                         const ActuationCotangent<Real, Bar>& bar,
                                         const ActuatorCotangent<Bar>* own,
                                         TransmissionsCotangent<Bar>& transmissions_bar, Bar* lift_bar,
                                         Bar* qpos_bar, Bar* qvel_bar, Bar* ctrl_bar,
                                         Parameters<Bar>& parameters_bar) {
  const Bar *const tau_bar = bar.tau, *const diagonal_bar = bar.implicit;
  const bool coupled = bar.p != nullptr && has_coupling(model);
  if (model.total_limits)
    limited_forces_adjoint(model, parameters, at, tau_bar, own, transmissions_bar, lift_bar, parameters_bar);
  for (int a = 0; a < model.nu; ++a) {
    const Actuator& actuator = model.actuators[a];
    const int k = actuator.dof, t = actuator.transmission;
    const bool geared = t < 0 || actuator.geared;
    const ActuatorState<Real> s = actuator_state(model, parameters, a, at);
    Bar clamped_bar, scale_bar(0), length_bar(0), velocity_bar(0);  // clamped: the force after its clamp
    if (model.total_limits) {
      clamped_bar = transmissions_bar.force[a];
    } else if (t < 0) {
      clamped_bar = s.scale * tau_bar[k];
      scale_bar = s.force * tau_bar[k];
    } else {
      const Transmission& of = model.transmissions[t];
      const TransmissionDofs dofs = dofs_of(model, of);
      const Bar along = row_product(dofs, at.transmissions->row(of), tau_bar);
      Bar* const J_bar = transmissions_bar.row(of);
      for (int i = 0; i < dofs.count; ++i) J_bar[i] += (s.scale * s.force) * tau_bar[dofs.dofs[i]];
      clamped_bar = s.scale * along;
      scale_bar = s.force * along;
    }
    if (own) {
      if (!model.total_limits) clamped_bar += own->force[a];
      length_bar = own->length[a];
      velocity_bar = own->velocity[a];
    }
    const Bar force_bar = s.force_cut * clamped_bar;
    Bar *const gain_bar = parameters_bar.gain + 3 * a, *const bias_bar = parameters_bar.bias + 3 * a;
    Bar input_bar = s.gain * force_bar;
    const Real one_length_velocity[3] = {Real(1), s.length, s.velocity};
    for (int i = 0; i < 3; ++i) {
      const Bar by_bias = one_length_velocity[i] * force_bar;
      bias_bar[i] += by_bias;
      gain_bar[i] += s.input * by_bias;
    }
    length_bar += s.by_length * force_bar;
    velocity_bar += s.by_velocity * force_bar;
    if (diagonal_bar && implicit_actuators(model) && (t < 0 || coupled)) {
      const Real cut = s.force_cut * sum_cut(model, actuator, at.transmissions);
      Bar slope_bar(0);  // cotangent of scale^2 by_velocity
      if (t < 0) {
        slope_bar = -h * (cut * diagonal_bar[k]);
      } else {
        const Transmission& of = model.transmissions[t];
        const Real weight = -h * (s.scale * s.scale * (cut * s.by_velocity));
        slope_bar = (-h * cut) * square_adjoint(model, dofs_of(model, of), at.transmissions->row(of), weight,
                                                bar.p, bar.x, transmissions_bar.row(of));
      }
      const Bar velocity_slope_bar = s.scale * s.scale * slope_bar;
      input_bar += s.slope_by_input * velocity_slope_bar;
      length_bar += s.slope_by_length * velocity_slope_bar;
      velocity_bar += s.slope_by_velocity * velocity_slope_bar;
      bias_bar[2] += velocity_slope_bar;
      gain_bar[2] += s.input * velocity_slope_bar;
      scale_bar += Real(2) * s.scale * s.by_velocity * slope_bar;
    }
    if (actuator.dynamics == ActivationType::none) {
      ctrl_bar[a] += s.ctrl_cut * input_bar;
    } else {
      const Bar act_bar = s.act_cut * input_bar;
      Bar& of_act = qvel_bar[model.nv + actuator.act];
      of_act += act_bar;
      if (actuator.early) {
        const Bar rate_bar = Real(actuator.act_step) * act_bar;
        of_act += s.rate.by_act * rate_bar;
        ctrl_bar[a] += (s.ctrl_cut * s.rate.by_ctrl) * rate_bar;
      }
    }
    if (t < 0) {
      qpos_bar[k] += s.scale * length_bar;
      qvel_bar[k] += s.scale * velocity_bar;
      scale_bar += at.qpos[actuator.qpos] * length_bar + at.qvel[k] * velocity_bar;
    } else {
      transmissions_bar.length[t] += s.scale * length_bar;
      transmissions_bar.velocity[t] += s.scale * velocity_bar;
      scale_bar += at.transmissions->length[t] * length_bar + at.transmissions->velocity[t] * velocity_bar;
    }
    if (geared) parameters_bar.gear[a] += scale_bar;
  }
}

// Adds to all cotangents except `lift_bar`, which it sets; `lift_bar` may be null.
template <class Real, class Bar>
REVOLUTE_HD void actuation_adjoint(const Model& model, const Parameters<Real>& parameters, Real h,
                                   const ActuationInput<Real>& at, const ActuationCotangent<Real, Bar>& bar,
                                   TransmissionsCotangent<Bar>& transmissions_bar, Bar* lift_bar,
                                   Bar* qpos_bar, Bar* qvel_bar, Bar* ctrl_bar,
                                   Parameters<Bar>& parameters_bar) {
  const Bar *const tau_bar = bar.tau, *const diagonal_bar = bar.implicit;
  for (int k = 0; k < model.nv; ++k) {
    qvel_bar[k] -= parameters.damping[k] * tau_bar[k];
    parameters_bar.damping[k] += h * diagonal_bar[k] - at.qvel[k] * tau_bar[k];
    parameters_bar.armature[k] += bar.armature[k];
  }
  if (parameters.input(Input::qfrc_applied))
    for (int k = 0; k < model.nv; ++k) parameters_bar.input(Input::qfrc_applied)[k] += tau_bar[k];
  for (int j = 0; j < model.njnt; ++j) {
    const Joint& joint = model.joints[j];
    const Real stiffness = parameters.stiffness[j];
    Bar& stiffness_bar = parameters_bar.stiffness[j];
    if (joint.type == JointType::ball)
      BallJoint::add_spring_adjoint(joint, stiffness, parameters.spring, at.qpos, tau_bar, qpos_bar,
                                    stiffness_bar, parameters_bar.spring);
    if (joint.type > JointType::ball)
      RevoluteJoint::add_spring_adjoint(joint, stiffness, parameters.spring, at.qpos, tau_bar, qpos_bar,
                                        stiffness_bar, parameters_bar.spring);
  }
  tendon_forces_adjoint(model, *at.transmissions, tau_bar, transmissions_bar);
  const bool coupled = bar.p != nullptr && has_coupling(model);
  for (int t = 0; coupled && t < model.ntendon; ++t) {
    const Transmission& of = model.transmissions[t];
    if (model.tendons[t].damping != 0)
      square_adjoint(model, dofs_of(model, of), at.transmissions->row(of), h * Real(model.tendons[t].damping),
                     bar.p, bar.x, transmissions_bar.row(of));
  }
  for (int k = 0; lift_bar && k < model.nv; ++k) lift_bar[k] = tau_bar[k];
  actuator_forces_adjoint(model, parameters, h, at, bar, static_cast<const ActuatorCotangent<Bar>*>(nullptr),
                          transmissions_bar, lift_bar, qpos_bar, qvel_bar, ctrl_bar, parameters_bar);
}

}  // namespace revolute
