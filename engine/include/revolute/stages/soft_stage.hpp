// The constrained acceleration of the contact model "mujoco" at one state, and its reverse; integrators call both.
//
//   S, V, I     = kinematics(qpos, qvel)
//   contacts    = collision_detection(links)
//   l, J        = transmissions(links, contacts)
//   tau         = actuation(qpos, qvel, ctrl, l, J), and the forces on links (link_forces.hpp,
//                 applied_wrenches.hpp)
//   M           = mass_matrix(I, S), and the armature of tendons            without implicit damping
//   a0          = M^-1 f,  f = tau - C(qpos, qvel)
//   rows        = soft_constraints(contacts)
//   a           = newton(M, f, rows)
//
// Adjoint (docs/adjoint.md, section 11), from a_bar and the factors of H that Newton's method leaves:
//   w = H^-1 a_bar,  z = J w,  x_ = s'' z,                     the only solve                  (1)
//   M_bar = -w a',  f_bar = w,  the rows as in soft_constraints.hpp                            (2)
// The terms of M and C are those of acceleration.hpp with w0 = w, a0 = a. The sum F of the links' forces there has the
// constraint forces subtracted, since J' f acts on the links as well.
#pragma once

#include "revolute/solvers/newton.hpp"
#include "revolute/stages/actuation.hpp"
#include "revolute/stages/adhesion.hpp"
#include "revolute/stages/applied_wrenches.hpp"
#include "revolute/stages/collision_detection.hpp"
#include "revolute/stages/contact_from_distance.hpp"
#include "revolute/stages/implicit_velocity.hpp"
#include "revolute/stages/soft_constraints_adjoint.hpp"
#include "revolute/stages/tendon_inertia.hpp"

namespace revolute {

template <class Real>
struct SoftStage {
  Kinematics<Real> kinematics;
  Transmissions<Real> transmissions;
  TendonInertia<Real> tendons;
  LinkForceSums<Real> link_forces;
  MassMatrix<Real> M;
  MassFactors<Real> factors;
  Acceleration<Real> acceleration;  // for the adjoint: its a0 is a, its X belongs to the integrator
  Contacts<Real> contacts;
  SoftConstraints<Real> constraints;
  Newton<Real> newton;
  Real* force;              // [nv] f
  Force<Real>* constraint;  // [nv] forces of the constraints on the links, summed towards the root
  Motion<Real>* A;          // [nv] S a summed from the root
  const ContactFromDistance<Real>* from_distance = nullptr;  // for the adjoint; null: exact

  SoftStage(const Model& model, Arena& arena)
      : kinematics(model, arena),
        transmissions(model, arena),
        tendons(model, arena),
        link_forces(model, arena),
        M(model, arena),
        factors(model, arena),
        acceleration(model, arena),
        contacts(model, arena),
        constraints(model, arena),
        newton(model, arena),
        force(arena.take<Real>(model.nv)),
        constraint(arena.take<Force<Real>>(model.nv)),
        A(arena.take<Motion<Real>>(model.nv)) {}
  REVOLUTE_HD ActuationInput<Real> actuation_input(const Model& model, const Real* qpos, const Real* qvel,
                                                   const Real* ctrl) const {
    return {qpos, qvel, ctrl, &transmissions, model.compensated ? link_forces.lift : nullptr};
  }
};

template <class Real>
REVOLUTE_HD void soft_stage(const Model& model, const Parameters<Real>& parameters, const Real* qpos,
                            const Real* qvel, const Real* ctrl, bool record, SoftStage<Real>& out) {
  const Real h(model.timestep);
  Newton<Real>& newton_ws = out.newton;
  kinematics(model, parameters, qpos, qvel, out.kinematics);
  collision_detection(model, out.kinematics, out.kinematics.V, Real(0), out.contacts);
  transmissions(model, parameters, out.kinematics, qpos, qvel, out.transmissions);
  adhesion(model, out.kinematics, out.contacts, qvel, out.transmissions);
  if (any_link_forces(model)) link_forces(model, parameters, out.kinematics, out.link_forces);
  actuation(model, parameters, Real(0), out.actuation_input(model, qpos, qvel, ctrl), out.transmissions,
            out.acceleration.tau, out.acceleration.diagonal);
  add_medium_forces(model, out.kinematics, out.link_forces, out.acceleration.tau);
  add_applied_wrenches(model, parameters, out.kinematics, out.link_forces.applied, out.acceleration.tau);
  mass_matrix(model, parameters, out.kinematics, out.M);
  add_tendon_inertia(model, out.transmissions, out.M);
  smooth_force(model, parameters, out.kinematics, qvel, out.acceleration, out.force);
  if (any_bending_inertia(model)) {
    tendon_inertia(model, out.kinematics, qvel, out.tendons);
    subtract_tendon_bias(model, out.transmissions, out.tendons, out.force);
  }
  factorize(model, out.M, static_cast<const Real*>(nullptr), static_cast<const Real*>(nullptr), out.factors);
  for (int k = 0; k < model.nv; ++k) newton_ws.a[k] = newton_ws.Ma[k] = out.force[k];
  solve(model, out.factors, newton_ws.a);
  soft_constraints(model, parameters, SoftContext<Real>{h, &out.kinematics, qpos, qvel, &out.transmissions},
                   out.contacts, out.constraints);
  newton_ws.settled = less(Real(0), Real(1));
  if (out.constraints.count > 0) newton(model, out.M, out.constraints, out.force, record, newton_ws);
}

// Records the data for the adjoint. `x` of acceleration.hpp may be null.
template <class Real>
REVOLUTE_HD void record_soft_stage(const Model& model, const Parameters<Real>& parameters, const Real* qvel,
                                   const Real* x, SoftStage<Real>& at) {
  Acceleration<Real>& out = at.acceleration;
  for (int k = 0; k < model.nv; ++k) {
    out.a0[k] = at.newton.a[k];
    out.W_bar[k] = at.constraint[k] = zero_force<Real>();
  }
  record_acceleration(model, parameters, at.kinematics, qvel, x, out);
  link_velocities(model, at.kinematics.S, at.newton.a, at.A);
  for (int i = 0; i < at.constraints.count; ++i) {
    const SoftConstraint<Real>& c = at.constraints.list[i];
    for (int r = c.row; r < c.row + c.cost.rows; ++r) {
      const RowJacobian<Real>& J = at.constraints.row_J[r];
      if (J.link_a >= 0) at.constraint[J.link_a] -= at.newton.slope[r] * J.force_a;
      if (J.link_b >= 0) at.constraint[J.link_b] -= at.newton.slope[r] * J.force_b;
    }
  }
  sum_towards_root(model, at.constraint);
  for (int k = 0; k < model.nv; ++k) out.F[k] -= at.constraint[k];
}

template <class Bar>
struct SoftStageAdjointWorkspace {
  KinematicsCotangent<Bar> kinematics;
  AccelerationAdjointScratch<Bar> acceleration;
  SoftConstraintsCotangent<Bar> constraints;
  TransmissionsCotangent<Bar> transmissions;
  MediumSlopeScratch<Bar> medium;
  Bar *w, *armature_bar, *scaled, *unused, *lift_bar;
  Motion<Bar>* W;
  Force<Bar>* F_v;

  SoftStageAdjointWorkspace(const Model& model, Arena& arena)
      : kinematics(model, arena),
        acceleration(model, arena),
        constraints(model, arena),
        transmissions(model, arena),
        medium(model, arena),
        w(arena.take<Bar>(model.nv)),
        armature_bar(arena.take<Bar>(model.nv)),
        scaled(arena.take<Bar>(model.nv)),
        unused(arena.take<Bar>(model.nv)),
        lift_bar(arena.take<Bar>(model.compensated ? model.nv : 0)),
        W(arena.take<Motion<Bar>>(model.nv)),
        F_v(arena.take<Force<Bar>>(model.nv)) {}
};

// The integrator's additions to the adjoint of a stage: -<p, M x> (null: nothing), the cotangent of its own diagonal,
// -h p . (dC/dv) a^ (null: nothing), and -p . E a^ for entries off the diagonal (p_E null: nothing).
template <class Real, class Bar>
struct IntegratorCotangent {
  const Bar* p;
  const Real* x;
  const Bar* implicit;
  const ImplicitVelocity<Real>* velocity;
  const Bar* p_E;
  const Real* a_next;
};

// Starts from a_bar; adds to the cotangents of qpos, qvel, ctrl and parameters.
template <class Real, class Bar>
REVOLUTE_HD void soft_stage_adjoint(const Model& model, const Parameters<Real>& parameters, const Real* qpos,
                                    const Real* qvel, const Real* ctrl, const SoftStage<Real>& at,
                                    const Bar* a_bar, const IntegratorCotangent<Real, Bar>& integrator,
                                    SoftStageAdjointWorkspace<Bar>& ws, Bar* qpos_bar, Bar* qvel_bar,
                                    Bar* ctrl_bar, Parameters<Bar>& parameters_bar,
                                    const SoftForceCotangent<Bar>* forces = nullptr) {
  const Real h(model.timestep);
  const Kinematics<Real>& kin = at.kinematics;
  const bool rows = at.constraints.count > 0;
  for (int k = 0; k < model.nv; ++k) {
    ws.w[k] = a_bar[k];
    ws.armature_bar[k] = Bar(0);
    ws.F_v[k] = zero_force<Bar>();
  }
  if (rows && forces) {
    for (int i = 0; i < at.constraints.count; ++i) {
      const SoftConstraint<Real>& c = at.constraints.list[i];
      const Real* const B = at.newton.curvature + c.block;
      Bar y_bar[most_rows];
      for (int r = 0; r < c.cost.rows; ++r) {
        y_bar[r] = Bar(0);
        for (int s = 0; s < c.cost.rows; ++s) y_bar[r] -= B[r * c.cost.rows + s] * forces->force[c.row + s];
      }
      add_constraint_transpose(at.constraints, c, y_bar, ws.w);
    }
  }
  if (rows)
    solve(model, at.newton.H, ws.w);  // (1)
  else
    solve(model, at.factors, ws.w);
  ws.kinematics.clear(model);
  if (rows || at.from_distance) link_velocities(model, kin.S, ws.w, ws.W);
  ws.transmissions.clear(model);
  if (rows) {
    const SoftAdjointInput<Real, Bar> in = {at.newton.a,         at.A, at.newton.y, at.newton.slope,
                                            at.newton.curvature, ws.w, ws.W,        forces};
    soft_constraints_adjoint(model, parameters, SoftContext<Real>{h, &kin, qpos, qvel, &at.transmissions},
                             at.contacts, at.constraints, in, ws.constraints, ws.transmissions, ws.F_v,
                             qpos_bar, qvel_bar, ws.kinematics, parameters_bar);
  }
  if (at.from_distance)
    contact_from_distance_adjoint(model, parameters, h, kin, *at.from_distance, ws.w, ws.W, ws.F_v, qvel_bar,
                                  ws.kinematics);
  medium_adjoint(model, parameters, kin, at.link_forces.medium, ws.w, ws.acceleration.Z, ws.F_v,
                 ws.kinematics, parameters_bar);
  if (integrator.p_E)
    medium_slopes_adjoint(model, parameters, kin, h, integrator.p_E, integrator.a_next, ws.medium, ws.F_v,
                          ws.kinematics, parameters_bar);
  applied_wrenches_adjoint(model, parameters, kin, at.link_forces.applied, ws.w, ws.acceleration.Z,
                           ws.kinematics, parameters_bar);
  if (any_bending_inertia(model))
    tendon_inertia_adjoint(model, kin, qvel, at.transmissions, at.tendons, ws.w, at.newton.a, integrator.p,
                           integrator.x, ws.acceleration.A_bar, ws.transmissions, ws.F_v, qvel_bar,
                           ws.kinematics);
  const AccelerationAdjointInput<Real, Bar> in = {ws.w, integrator.p, integrator.x, ws.F_v};
  acceleration_adjoint(model, kin, at.acceleration, qvel, in, ws.acceleration, ws.kinematics, qvel_bar,
                       ws.armature_bar, parameters_bar);
  if (integrator.velocity)
    implicit_velocity_adjoint(model, kin, *integrator.velocity, h, integrator.p, ws.scaled, ws.F_v,
                              ws.acceleration, ws.kinematics, qvel_bar, ws.unused, parameters_bar);
  actuation_adjoint(model, parameters, h, at.actuation_input(model, qpos, qvel, ctrl),
                    ActuationCotangent<Real, Bar>{ws.w, ws.armature_bar, integrator.implicit, integrator.p_E,
                                                  integrator.a_next},
                    ws.transmissions, model.compensated ? ws.lift_bar : nullptr, qpos_bar, qvel_bar, ctrl_bar,
                    parameters_bar);
  transmissions_adjoint(model, parameters, kin, qpos, qvel, at.transmissions, ws.transmissions, qpos_bar,
                        qvel_bar, ws.kinematics, parameters_bar);
  adhesion_adjoint(model, kin, at.contacts, ws.transmissions, ws.kinematics);
  compensation_adjoint(model, parameters, kin, at.link_forces, ws.lift_bar, ws.acceleration.Z, ws.kinematics,
                       parameters_bar);
  kinematics_adjoint(model, parameters, kin, ws.kinematics, qpos_bar, parameters_bar);
}

}  // namespace revolute
