// Actuation: generalized forces of actuators, springs and viscous damping, and what of them is implicit in the velocity.
//
// MuJoCo's affine actuator on a hinge or slide joint, with length l = gear q and velocity d = gear v:
//   f = clamp((g0 + g1 l + g2 d) clamp(u) + b0 + b1 l + b2 d),   tau = gear f                 (1)
//   tau -= stiffness (q - rest) + damping v,   tau += qfrc_applied                            (2)
// Diagonal that is added to the mass matrix:
//   armature + h damping,   and with implicitfast  + h gear^2 (-g2 u - b2)  where f is within its range     (3)
// Reads qpos, qvel, ctrl. Writes tau, diagonal. A control or force beyond its range has no derivative; on the bound it has
// one.
#pragma once

#include "revolute/model/joints/ball.hpp"
#include "revolute/model/joints/revolute.hpp"
#include "revolute/model/parameters.hpp"

namespace revolute {

REVOLUTE_HD inline bool implicit_actuators(const Model& model) {
  return model.integrator == Integrator::implicitfast || model.integrator == Integrator::implicit;
}

// One actuator's way from control to generalized force.
template <class Real>
struct ActuatorState {
  Real length, velocity;
  Real ctrl;                    // within its range
  Real ctrl_cut;                // 0 where the range cut the control off, 1 elsewhere
  Real force;                   // within its range
  Real force_cut;               // likewise
  Real by_length, by_velocity;  // df/dl, df/dd before the range
};

template <class Real>
REVOLUTE_HD inline Real within_range(bool limited, const double* range, Real value, Real& cut) {
  cut = Real(1);
  if (!limited) return value;
  const Real lower(range[0]), upper(range[1]);
  cut = select(less(value, lower) | less(upper, value), Real(0), Real(1));
  return clamp(value, lower, upper);
}

template <class Real>
REVOLUTE_HD inline ActuatorState<Real> actuator_state(const Model& model, const Parameters<Real>& parameters,
                                                      int a, const Real* qpos, const Real* qvel, Real ctrl) {
  const Actuator& actuator = model.actuators[a];
  const Real gear = parameters.gear[a];
  const Real *const gain = parameters.gain + 3 * a, *const bias = parameters.bias + 3 * a;
  ActuatorState<Real> s;
  s.length = gear * qpos[actuator.qpos];
  s.velocity = gear * qvel[actuator.dof];
  s.ctrl = within_range(actuator.ctrl_limited, actuator.ctrl_range, ctrl, s.ctrl_cut);
  s.by_length = gain[1] * s.ctrl + bias[1];
  s.by_velocity = gain[2] * s.ctrl + bias[2];
  const Real force = gain[0] * s.ctrl + bias[0] + s.by_length * s.length + s.by_velocity * s.velocity;  // (1)
  s.force = within_range(actuator.force_limited, actuator.force_range, force, s.force_cut);
  return s;
}

template <class Real>
REVOLUTE_HD void actuation(const Model& model, const Parameters<Real>& parameters, Real h, const Real* qpos,
                           const Real* qvel, const Real* ctrl, Real* tau, Real* diagonal) {
  for (int k = 0; k < model.nv; ++k) {
    tau[k] = -parameters.damping[k] * qvel[k];                         // (2)
    diagonal[k] = parameters.armature[k] + h * parameters.damping[k];  // (3)
  }
  if (parameters.qfrc_applied)
    for (int k = 0; k < model.nv; ++k) tau[k] += parameters.qfrc_applied[k];  // (2)
  for (int j = 0; j < model.njnt; ++j) {
    const Joint& joint = model.joints[j];
    if (joint.type == JointType::ball)
      BallJoint::add_spring(joint, parameters.stiffness[j], parameters.spring, qpos, tau);
    if (joint.type > JointType::ball)
      RevoluteJoint::add_spring(joint, parameters.stiffness[j], parameters.spring, qpos, tau);
  }
  for (int a = 0; a < model.nu; ++a) {
    const Actuator& actuator = model.actuators[a];
    const Real gear = parameters.gear[a];
    const ActuatorState<Real> s = actuator_state(model, parameters, a, qpos, qvel, ctrl[a]);
    tau[actuator.dof] += gear * s.force;
    if (implicit_actuators(model))
      diagonal[actuator.dof] -= h * (gear * gear * (s.force_cut * s.by_velocity));  // (3)
  }
}

// The implicit part of (3), without armature.
template <class Real>
REVOLUTE_HD void implicit_diagonal(const Model& model, const Parameters<Real>& parameters, Real h,
                                   const Real* qpos, const Real* qvel, const Real* ctrl, Real* diagonal) {
  for (int k = 0; k < model.nv; ++k) diagonal[k] = h * parameters.damping[k];
  if (!implicit_actuators(model)) return;
  for (int a = 0; a < model.nu; ++a) {
    const Actuator& actuator = model.actuators[a];
    const Real gear = parameters.gear[a];
    const ActuatorState<Real> s = actuator_state(model, parameters, a, qpos, qvel, ctrl[a]);
    diagonal[actuator.dof] -= h * (gear * gear * (s.force_cut * s.by_velocity));
  }
}

// Cotangents of tau, of the armature in (3), and of the rest of (3).
template <class Bar>
struct ActuationCotangent {
  const Bar *tau, *armature, *implicit;
};

template <class Real, class Bar>
REVOLUTE_HD void actuation_adjoint(const Model& model, const Parameters<Real>& parameters, Real h,
                                   const Real* qpos, const Real* qvel, const Real* ctrl,
                                   const ActuationCotangent<Bar>& bar, Bar* qpos_bar, Bar* qvel_bar,
                                   Bar* ctrl_bar, Parameters<Bar>& parameters_bar) {
  const Bar *const tau_bar = bar.tau, *const diagonal_bar = bar.implicit;
  for (int k = 0; k < model.nv; ++k) {
    qvel_bar[k] -= parameters.damping[k] * tau_bar[k];
    parameters_bar.damping[k] += h * diagonal_bar[k] - qvel[k] * tau_bar[k];
    parameters_bar.armature[k] += bar.armature[k];
  }
  if (parameters.qfrc_applied)
    for (int k = 0; k < model.nv; ++k) parameters_bar.qfrc_applied[k] += tau_bar[k];
  for (int j = 0; j < model.njnt; ++j) {
    const Joint& joint = model.joints[j];
    const Real stiffness = parameters.stiffness[j];
    Bar& stiffness_bar = parameters_bar.stiffness[j];
    if (joint.type == JointType::ball)
      BallJoint::add_spring_adjoint(joint, stiffness, parameters.spring, qpos, tau_bar, qpos_bar,
                                    stiffness_bar, parameters_bar.spring);
    if (joint.type > JointType::ball)
      RevoluteJoint::add_spring_adjoint(joint, stiffness, parameters.spring, qpos, tau_bar, qpos_bar,
                                        stiffness_bar, parameters_bar.spring);
  }
  for (int a = 0; a < model.nu; ++a) {
    const Actuator& actuator = model.actuators[a];
    const int k = actuator.dof;
    const Real gear = parameters.gear[a];
    const ActuatorState<Real> s = actuator_state(model, parameters, a, qpos, qvel, ctrl[a]);
    const Bar force_bar = s.force_cut * (gear * tau_bar[k]);
    Bar gear_bar = s.force * tau_bar[k];
    const Real* const gain = parameters.gain + 3 * a;
    Bar *const gain_bar = parameters_bar.gain + 3 * a, *const bias_bar = parameters_bar.bias + 3 * a;
    Bar clamped_bar = (gain[0] + gain[1] * s.length + gain[2] * s.velocity) * force_bar;
    const Real one_length_velocity[3] = {Real(1), s.length, s.velocity};
    for (int i = 0; i < 3; ++i) {
      const Bar by_bias = one_length_velocity[i] * force_bar;
      bias_bar[i] += by_bias;
      gain_bar[i] += s.ctrl * by_bias;
    }
    if (implicit_actuators(model)) {
      const Bar slope_bar = -h * (s.force_cut * diagonal_bar[k]);  // by gear^2 by_velocity
      const Bar velocity_slope_bar = gear * gear * slope_bar;
      clamped_bar += gain[2] * velocity_slope_bar;
      bias_bar[2] += velocity_slope_bar;
      gain_bar[2] += s.ctrl * velocity_slope_bar;
      gear_bar += Real(2) * gear * s.by_velocity * slope_bar;
    }
    const Bar length_bar = s.by_length * force_bar, velocity_bar = s.by_velocity * force_bar;
    ctrl_bar[a] += s.ctrl_cut * clamped_bar;
    qpos_bar[k] += gear * length_bar;
    qvel_bar[k] += gear * velocity_bar;
    parameters_bar.gear[a] += gear_bar + qpos[actuator.qpos] * length_bar + qvel[k] * velocity_bar;
  }
}

}  // namespace revolute
