// Actuation: generalized forces of actuators, springs and viscous damping.
//
// MuJoCo's affine actuator on a hinge or slide joint, with length l = gear q and velocity gear v:
//   f = clamp(gain clamp(u) + b0 + b1 l + b2 gear v),   tau = gear f                          (1)
//   tau -= stiffness (q - rest) + damping v                                                   (2)
// Reads qpos, qvel, ctrl. Writes tau. A control or force beyond its range has no derivative; on the bound it has one.
#pragma once

#include "revolute/model/joints/ball.hpp"
#include "revolute/model/joints/revolute.hpp"
#include "revolute/model/parameters.hpp"

namespace revolute {

// The actuator's force before its range is applied, and the control that acts.
template <class Real>
REVOLUTE_HD inline Real actuator_force(const Actuator& actuator, Real gear, const Real* qpos, const Real* qvel, Real ctrl,
                                       Real& clamped) {
  clamped = actuator.ctrl_limited ? clamp(ctrl, Real(actuator.ctrl_range[0]), Real(actuator.ctrl_range[1])) : ctrl;
  return actuator.gain * clamped + Real(actuator.bias[0]) + actuator.bias[1] * (gear * qpos[actuator.qpos]) +
         actuator.bias[2] * (gear * qvel[actuator.dof]);
}
template <class Real>
REVOLUTE_HD inline Real limited_force(const Actuator& actuator, Real force) {
  return actuator.force_limited ? clamp(force, Real(actuator.force_range[0]), Real(actuator.force_range[1])) : force;
}

template <class Real>
REVOLUTE_HD void actuation(const Model& model, const Parameters<Real>& parameters, const Real* qpos, const Real* qvel,
                           const Real* ctrl, Real* tau) {
  for (int k = 0; k < model.nv; ++k) tau[k] = -parameters.damping[k] * qvel[k];
  for (int j = 0; j < model.njnt; ++j) {
    const Joint& joint = model.joints[j];
    if (joint.type == JointType::ball) BallJoint::add_spring(joint, parameters.stiffness[j], qpos, tau);
    if (joint.type > JointType::ball) RevoluteJoint::add_spring(joint, parameters.stiffness[j], qpos, tau);
  }
  for (int a = 0; a < model.nu; ++a) {
    const Actuator& actuator = model.actuators[a];
    Real clamped;
    const Real force = actuator_force(actuator, parameters.gear[a], qpos, qvel, ctrl[a], clamped);
    tau[actuator.dof] += parameters.gear[a] * limited_force(actuator, force);  // (1)
  }
}

template <class Real>
REVOLUTE_HD void actuation_adjoint(const Model& model, const Parameters<Real>& parameters, const Real* qpos, const Real* qvel,
                                   const Real* ctrl, const Real* tau_bar, Real* qpos_bar, Real* qvel_bar, Real* ctrl_bar,
                                   Parameters<Real>& parameters_bar) {
  for (int k = 0; k < model.nv; ++k) {
    qvel_bar[k] -= parameters.damping[k] * tau_bar[k];
    parameters_bar.damping[k] -= qvel[k] * tau_bar[k];
  }
  for (int j = 0; j < model.njnt; ++j) {
    const Joint& joint = model.joints[j];
    const Real stiffness = parameters.stiffness[j];
    Real& stiffness_bar = parameters_bar.stiffness[j];
    if (joint.type == JointType::ball) BallJoint::add_spring_adjoint(joint, stiffness, qpos, tau_bar, qpos_bar, stiffness_bar);
    if (joint.type > JointType::ball) RevoluteJoint::add_spring_adjoint(joint, stiffness, qpos, tau_bar, qpos_bar, stiffness_bar);
  }
  for (int a = 0; a < model.nu; ++a) {
    const Actuator& actuator = model.actuators[a];
    const Real gear = parameters.gear[a], q = qpos[actuator.qpos], v = qvel[actuator.dof];
    Real clamped;
    const Real force = actuator_force(actuator, gear, qpos, qvel, ctrl[a], clamped);
    const Real applied = limited_force(actuator, force);
    // a force or a control that its range cut off passes nothing back
    const Real force_bar = select(less(force, applied) | less(applied, force), Real(0), gear * tau_bar[actuator.dof]);
    const Real ctrl_cut = select(less(ctrl[a], clamped) | less(clamped, ctrl[a]), Real(0), Real(1));
    ctrl_bar[a] += ctrl_cut * (actuator.gain * force_bar);
    qpos_bar[actuator.dof] += actuator.bias[1] * (gear * force_bar);
    qvel_bar[actuator.dof] += actuator.bias[2] * (gear * force_bar);
    parameters_bar.gear[a] +=
        applied * tau_bar[actuator.dof] + force_bar * (actuator.bias[1] * q + actuator.bias[2] * v);
  }
}

}  // namespace revolute
