// Sensors of actuators and tendons, and energies.
//
// Lengths, velocities and forces come from transmission.hpp and actuation.hpp. The force on a joint is MuJoCo's qfrc_actuator,
// which a limit on the joint's sum bounds; that of an actuator is bounded by its own range and its tendon's.
//   potential energy  -g.h + sum k d^2/2 of the springs of joints and tendons, h = sum m c       (1)
//   kinetic energy    v'Mv/2 with the armature of joints and tendons                             (2)
// Gravity compensation and other forces have no part in (1). Adjoint of a joint's spring with force tau at stiffness 1, from a
// cotangent y of its energy k |tau|^2/2:  tau_bar = y k tau,  k_bar = y |tau|^2/2.
#pragma once

#include "revolute/stages/measured_bodies.hpp"

namespace revolute::detail {

template <class Real>
REVOLUTE_HD inline ActuationInput<Real> drive_input(const Model& model, const Measurement<Real>& at,
                                                    const Real* qpos, const Real* qvel) {
  return {qpos, qvel, at.ctrl ? at.ctrl : at.no_ctrl, &at.transmissions,
          model.compensated ? at.link_forces.lift : nullptr};
}
// Fills the transmissions and the actuators' forces.
template <class Real>
REVOLUTE_HD void measure_drives(const Model& model, const Parameters<Real>& parameters, const Real* qpos,
                                const Real* qvel, Measurement<Real>& at) {
  const Kinematics<Real>& kin = *at.kinematics;
  transmissions(model, parameters, kin, qpos, qvel, at.transmissions);
  if (any_link_forces(model)) link_forces(model, parameters, kin, at.link_forces);
  for (int k = 0; k < model.nv; ++k) {
    const bool lifted = at.link_forces.lift && model.compensated && !model.total_limits &&
                        model.joints[model.dof_joints[k]].lifted;
    at.of_joint[k] = lifted ? at.link_forces.lift[k] : Real(0);
  }
  add_actuator_forces(model, parameters, Real(0), drive_input(model, at, qpos, qvel), at.transmissions,
                      at.of_joint, static_cast<Real*>(nullptr));
}

template <class Real>
REVOLUTE_HD inline Real measured_actuator_force(const Model& model, const Parameters<Real>& parameters, int a,
                                                const Real* qpos, const Real* qvel,
                                                const Measurement<Real>& at) {
  const ActuatorState<Real> s = actuator_state(model, parameters, a, drive_input(model, at, qpos, qvel));
  return force_of_actuator(model, at.transmissions, a, s);
}

// Calls visit(j, joint, number of its degrees of freedom) for the joints that may have a spring. force [nv] gets the springs'
// forces at stiffness 1.
template <class Real, class Visit>
REVOLUTE_HD void visit_springs(const Model& model, const Parameters<Real>& parameters, const Real* qpos,
                               Real* force, const Visit& visit) {
  for (int k = 0; k < model.nv; ++k) force[k] = Real(0);
  for (int j = 0; j < model.njnt; ++j) {
    const Joint& joint = model.joints[j];
    if (joint.type == JointType::free) continue;
    if (joint.type == JointType::ball)
      BallJoint::add_spring(joint, Real(1), parameters.spring, qpos, force);
    else
      RevoluteJoint::add_spring(joint, Real(1), parameters.spring, qpos, force);
    visit(j, joint, degrees_of_freedom(joint.type));
  }
}
// (1)
template <class Real>
REVOLUTE_HD Real potential_energy(const Model& model, const Parameters<Real>& parameters,
                                  const Probes& probes, const Probe& probe, const Real* qpos,
                                  const Measurement<Real>& at) {
  const SubtreeSums<Real> sums = subtree_sums(model, parameters, *at.kinematics, probes, probe);
  Real energy = -dot(*parameters.gravity, sums.h);
  Real* const force = at.qvel_next;  // scratch
  visit_springs(model, parameters, qpos, force, [&](int j, const Joint& joint, int count) {
    for (int k = joint.dof; k < joint.dof + count; ++k)
      energy += Real(0.5) * parameters.stiffness[j] * force[k] * force[k];
  });
  for (int t = 0; t < model.ntendon; ++t) {
    Real pulls;
    const Real d = tendon_stretch(model.tendons[t], at.transmissions.length[t], pulls);
    energy += Real(0.5 * model.tendons[t].stiffness) * d * d;
  }
  return energy;
}
template <class Real>
REVOLUTE_HD void potential_energy_adjoint(const Model& model, const Parameters<Real>& parameters,
                                          const Probes& probes, const Probe& probe, const Real* qpos,
                                          const Measurement<Real>& at, const Real& y,
                                          MeasurementAdjointWorkspace<Real>& ws,
                                          const InputCotangents<Real>& inputs) {
  const SubtreeSums<Real> sums = subtree_sums(model, parameters, *at.kinematics, probes, probe);
  const Motion<Real> none = zero_motion<Real>();
  subtree_adjoint(model, parameters, *at.kinematics, probes, probe, Real(0), -y * *parameters.gravity, none,
                  ws.links, *inputs.parameters);
  *inputs.parameters->gravity -= y * sums.h;
  Real *const force = at.qvel_next, *const force_bar = ws.lift;  // scratch
  visit_springs(model, parameters, qpos, force, [&](int j, const Joint& joint, int count) {
    Real ignored(0);
    for (int k = joint.dof; k < joint.dof + count; ++k) {
      force_bar[k] = y * parameters.stiffness[j] * force[k];
      inputs.parameters->stiffness[j] += Real(0.5) * y * force[k] * force[k];
    }
    if (joint.type == JointType::ball)
      BallJoint::add_spring_adjoint(joint, Real(1), parameters.spring, qpos, force_bar, inputs.qpos, ignored,
                                    inputs.parameters->spring);
    else
      RevoluteJoint::add_spring_adjoint(joint, Real(1), parameters.spring, qpos, force_bar, inputs.qpos,
                                        ignored, inputs.parameters->spring);
  });
  for (int t = 0; t < model.ntendon; ++t) {
    Real pulls;
    const Real d = tendon_stretch(model.tendons[t], at.transmissions.length[t], pulls);
    ws.transmissions.length[t] -= y * (Real(model.tendons[t].stiffness) * pulls * d);
  }
}

// (2)
template <class Real>
REVOLUTE_HD Real kinetic_energy(const Model& model, const Parameters<Real>& parameters, const Real* qvel,
                                const Measurement<Real>& at) {
  const Kinematics<Real>& kin = *at.kinematics;
  Real twice(0);
  for (int k = 0; k < model.nv; ++k) {
    if (model.dofs[k].has_inertia) twice += dot(kin.V[k], kin.I[k] * kin.V[k]);
    twice += parameters.armature[k] * qvel[k] * qvel[k];
  }
  for (int t = 0; model.tendon_inertia && t < model.ntendon; ++t) {
    const TransmissionDofs dofs = dofs_of(model, model.transmissions[t]);
    const Real* const J = at.transmissions.row(model.transmissions[t]);
    visit_coupling(model, dofs, [&](int i, int j, int) {
      const Real weight((i == j ? 1.0 : 2.0) * model.tendons[t].armature);
      twice += weight * J[i] * J[j] * qvel[dofs.dofs[i]] * qvel[dofs.dofs[j]];
    });
  }
  return Real(0.5) * twice;
}
template <class Real>
REVOLUTE_HD void kinetic_energy_adjoint(const Model& model, const Parameters<Real>& parameters,
                                        const Real* qvel, const Measurement<Real>& at, const Real& y,
                                        MeasurementAdjointWorkspace<Real>& ws,
                                        const InputCotangents<Real>& inputs) {
  const Kinematics<Real>& kin = *at.kinematics;
  const Real half = Real(0.5) * y;
  for (int k = 0; k < model.nv; ++k) {
    if (model.dofs[k].has_inertia) {
      ws.links.V[k] += y * (kin.I[k] * kin.V[k]);
      add_bilinear_adjoint(ws.links.kinematics.I[k], half, kin.V[k], kin.V[k]);
    }
    inputs.qvel[k] += y * parameters.armature[k] * qvel[k];
    inputs.parameters->armature[k] += half * qvel[k] * qvel[k];
  }
  for (int t = 0; model.tendon_inertia && t < model.ntendon; ++t) {
    const Transmission& of = model.transmissions[t];
    const TransmissionDofs dofs = dofs_of(model, of);
    const Real* const J = at.transmissions.row(of);
    Real* const J_bar = ws.transmissions.row(of);
    visit_coupling(model, dofs, [&](int i, int j, int) {
      const int k = dofs.dofs[i], l = dofs.dofs[j];
      const Real weight = Real((i == j ? 1.0 : 2.0) * model.tendons[t].armature) * half;
      inputs.qvel[k] += weight * J[i] * J[j] * qvel[l];
      inputs.qvel[l] += weight * J[i] * J[j] * qvel[k];
      J_bar[i] += weight * J[j] * qvel[k] * qvel[l];
      J_bar[j] += weight * J[i] * qvel[k] * qvel[l];
    });
  }
}

// Pulls back the cotangents of lengths, velocities and forces that the probes have collected.
template <class Real>
REVOLUTE_HD void drives_adjoint(const Model& model, const Parameters<Real>& parameters, const Real* qpos,
                                const Real* qvel, const Measurement<Real>& at,
                                MeasurementAdjointWorkspace<Real>& ws, const InputCotangents<Real>& inputs) {
  const Kinematics<Real>& kin = *at.kinematics;
  const ActuatorCotangent<Real> own = {ws.actuator_length, ws.actuator_velocity, ws.actuator_force};
  for (int k = 0; k < model.nv; ++k)
    ws.lift[k] = model.joints[model.dof_joints[k]].lifted ? ws.joint_force[k] : Real(0);
  actuator_forces_adjoint(model, parameters, Real(0), drive_input(model, at, qpos, qvel),
                          ActuationCotangent<Real, Real>{ws.joint_force, nullptr, nullptr, nullptr, nullptr},
                          &own, ws.transmissions, model.compensated ? ws.lift : nullptr, inputs.qpos,
                          inputs.qvel, inputs.ctrl ? inputs.ctrl : ws.no_ctrl_bar, *inputs.parameters);
  transmissions_adjoint(model, parameters, kin, qpos, qvel, at.transmissions, ws.transmissions, inputs.qpos,
                        inputs.qvel, ws.links.kinematics, *inputs.parameters);
  compensation_adjoint(model, parameters, kin, at.link_forces, ws.lift, ws.scratch, ws.links.kinematics,
                       *inputs.parameters);
}

}  // namespace revolute::detail
