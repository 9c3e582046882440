// One step of the contact model "mujoco", and its reverse, with the integrator that the file names.
//
//   euler, implicitfast:  (M + E) a^ = M a,  qvel+ = qvel + h a^,  qpos+ = qpos (+) h qvel+      (1)
//     E = h damping. With implicitfast, E includes the part of actuators, tendons (actuation.hpp) and a medium (medium.hpp).
//     Where E is zero, a^ = a.
//     Where forces depend on velocity in other ways too, N of implicit_velocity.hpp replaces M + E.
//   rk4:  runge_kutta.hpp
// Adjoint of (1), with v_bar = qvel+_bar + h (d (+))' qpos+_bar:
//   p = (M + E)^-T h v_bar,   a_bar = M p,   M_bar = p (a - a^)',   E_bar = -p a^                (2)
// Sources: MuJoCo, Computation, section Numerical integration; docs/adjoint.md, section 11.
#pragma once

#include "revolute/stages/implicit_velocity.hpp"
#include "revolute/stages/integration.hpp"
#include "revolute/stages/runge_kutta.hpp"
#include "revolute/stages/soft_stage.hpp"

namespace revolute {

// An empty model, for workspaces that a model does not need.
inline const Model& empty_model() {
  static const Model nothing{};
  return nothing;
}
inline const Model& model_if(bool needed, const Model& model) { return needed ? model : empty_model(); }
REVOLUTE_HD inline bool is_soft(const Model& model) { return model.contact_model == ContactModel::mujoco; }
inline const Model& soft_model(const Model& model) { return model_if(is_soft(model), model); }

REVOLUTE_HD inline bool is_runge_kutta(const Model& model) {
  return is_soft(model) && model.integrator == Integrator::rk4;
}

template <class Real>
struct SoftStep {
  SoftStage<Real> stage;  // the only stage, or the first of rk4
  RungeKutta<Real> runge_kutta;
  ImplicitVelocity<Real> implicit_velocity;
  MassFactors<Real> implicit_factors;
  Real *implicit, *a_next, *x;  // [nv] diagonal of E, a^, a^ - a
  Real *coupling, *rates;       // the rest of E, if there can be any; [na] rates of activations
  MaskOf<Real> damped;          // where E is not zero
  bool any_damped;
  MaskOf<Real> settled;  // whether the solver finished
  Real* qvel_next;

  SoftStep(const Model& model, Arena& arena)
      : stage(model, arena),
        runge_kutta(model_if(is_runge_kutta(model), model), arena),
        implicit_velocity(model_if(is_soft(model) && any_gyroscopic(model), model), arena),
        implicit_factors(model, arena) {
    for (Real** array : {&implicit, &a_next, &x, &qvel_next}) *array = arena.take<Real>(model.nv);
    coupling = arena.take<Real>(is_soft(model) && has_coupling(model) ? model.mass_rows[model.nv] : 0);
    rates = arena.take<Real>(model.na);
  }
  REVOLUTE_HD Real* coupling_of(const Model& model) const { return has_coupling(model) ? coupling : nullptr; }
};

// Makes the adjoints of the step's stages see contacts from a distance.
template <class Real>
void see_from_distance(const Model& model, const ContactFromDistance<Real>* from_distance,
                       SoftStep<Real>& ws) {
  ws.stage.from_distance = from_distance;
  for (int i = 1; is_runge_kutta(model) && i < runge_kutta_stages; ++i)
    ws.runge_kutta.stage(i).from_distance = from_distance;
}

// (1): E, its factors and a^
template <class Real>
REVOLUTE_HD void implicit_acceleration(const Model& model, const Parameters<Real>& parameters, Real h,
                                       const Real* qpos, const Real* qvel, const Real* ctrl,
                                       SoftStep<Real>& ws) {
  const Newton<Real>& solution = ws.stage.newton;
  ws.damped = less(Real(1), Real(0));
  if (model.implicit_damping || model.integrator != Integrator::euler) {
    implicit_matrix(model, parameters, h, ws.stage.actuation_input(model, qpos, qvel, ctrl), ws.implicit,
                    ws.coupling_of(model));
    if (model.integrator == Integrator::implicitfast)
      add_medium_slopes(model, parameters, ws.stage.kinematics, h, ws.coupling_of(model),
                        static_cast<Real*>(nullptr));
    // an E that is zero has a derivative too, which (2) has in any case
    if constexpr (HasTangents<Real>::value) ws.damped = less(Real(0), Real(1));
    for (int k = 0; k < model.nv; ++k) ws.damped = ws.damped | less(Real(0), abs(ws.implicit[k]));
    for (int k = 0; has_coupling(model) && k < model.nv; ++k)
      ws.damped = ws.damped | less(Real(0), abs(ws.coupling[model.mass_rows[k]]));
  }
  const bool gyroscopic = any_gyroscopic(model);
  if (gyroscopic || implicit_medium(model)) ws.damped = less(Real(0), Real(1));
  ws.any_damped = any(ws.damped);
  for (int k = 0; k < model.nv; ++k) ws.a_next[k] = solution.Ma[k];
  if (gyroscopic) {
    implicit_velocity(model, parameters, ws.stage.kinematics, ws.stage.M, ws.implicit, ws.coupling_of(model),
                      h, qvel, ws.implicit_velocity);
    solve(model, ws.implicit_velocity, ws.a_next);
  } else if (ws.any_damped) {
    factorize(model, ws.stage.M, ws.implicit, ws.coupling_of(model), ws.implicit_factors);
    solve(model, ws.implicit_factors, ws.a_next);
  }
  for (int k = 0; k < model.nv; ++k) {
    ws.a_next[k] = select(ws.damped, ws.a_next[k], solution.a[k]);
    ws.x[k] = ws.a_next[k] - solution.a[k];
  }
}

template <class Real>
REVOLUTE_HD void soft_step(const Model& model, const Parameters<Real>& parameters, const Real* qpos,
                           const Real* qvel, const Real* ctrl, bool record, SoftStep<Real>& ws,
                           Real* qpos_next, Real* qvel_next) {
  const Real h(model.timestep);
  soft_stage(model, parameters, qpos, qvel, ctrl, record, ws.stage);
  ws.settled = ws.stage.newton.settled;
  if (is_runge_kutta(model)) {
    if (record) record_soft_stage(model, parameters, qvel, static_cast<const Real*>(nullptr), ws.stage);
    runge_kutta(model, parameters, qpos, qvel, ctrl, record, ws.stage, ws.runge_kutta, qpos_next, qvel_next);
    for (int i = 1; i < runge_kutta_stages; ++i)
      ws.settled = ws.settled & ws.runge_kutta.stage(i).newton.settled;
    return;
  }
  implicit_acceleration(model, parameters, h, qpos, qvel, ctrl, ws);
  activation_rates(model, ctrl, qvel + model.nv, ws.rates);
  if (record) record_soft_stage(model, parameters, qvel, ws.any_damped ? ws.x : nullptr, ws.stage);
  if (record && any_gyroscopic(model))
    record_implicit_velocity(model, parameters, ws.stage.kinematics, qvel, ws.a_next, ws.implicit_velocity);
  for (int k = 0; k < model.nv; ++k) ws.qvel_next[k] = qvel[k] + h * ws.a_next[k];
  integration(model, h, qpos, ws.qvel_next, qpos_next);
  for (int k = 0; k < model.nv; ++k) qvel_next[k] = ws.qvel_next[k];
  advance_activations(model, qvel + model.nv, ws.rates, qvel_next + model.nv);
}

template <class Bar>
struct SoftStepAdjointWorkspace {
  SoftStageAdjointWorkspace<Bar> stage;
  RungeKuttaAdjointWorkspace<Bar> runge_kutta;
  Bar *qpos_bar, *qvel_bar, *p, *a_bar, *implicit_bar, *rates_bar;

  SoftStepAdjointWorkspace(const Model& model, Arena& arena)
      : stage(model, arena), runge_kutta(model_if(is_runge_kutta(model), model), arena) {
    for (Bar** array : {&qpos_bar, &p, &a_bar, &implicit_bar}) *array = arena.take<Bar>(model.nv);
    qvel_bar = arena.take<Bar>(model.nv + model.na);
    rates_bar = arena.take<Bar>(model.na);
  }
};

// The reverse of (1); cotangents of qpos and qvel are added to those in ws.
template <class Real, class Bar>
REVOLUTE_HD void one_stage_adjoint(const Model& model, const Parameters<Real>& parameters, const Real* qpos,
                                   const Real* qvel, const Real* ctrl, const SoftStep<Real>& at,
                                   const Bar* qpos_next_bar, const Bar* qvel_next_bar,
                                   SoftStepAdjointWorkspace<Bar>& ws, Bar* ctrl_bar,
                                   Parameters<Bar>& parameters_bar) {
  const Real h(model.timestep);
  const bool gyroscopic = any_gyroscopic(model);
  for (int k = 0; k < model.nv; ++k) ws.qvel_bar[k] = qvel_next_bar[k];
  integration_adjoint(model, h, at.qvel_next, qpos_next_bar, ws.qpos_bar, ws.qvel_bar);
  for (int k = 0; k < model.nv; ++k) ws.p[k] = h * ws.qvel_bar[k];
  // (2); where nothing is implicit, a_bar is h v_bar, and p gives the derivative by a damping that is zero
  if (gyroscopic)
    solve_transposed(model, at.implicit_velocity, ws.p);
  else if (at.any_damped)
    solve(model, at.implicit_factors, ws.p);
  else
    solve(model, at.stage.factors, ws.p);
  multiply(model, at.stage.M, ws.p, ws.a_bar);
  const bool implicit = model.implicit_damping || model.integrator != Integrator::euler;
  for (int k = 0; k < model.nv; ++k) {
    ws.a_bar[k] = select(at.damped, ws.a_bar[k], Bar(h * ws.qvel_bar[k]));
    ws.implicit_bar[k] = implicit ? -(at.a_next[k] * ws.p[k]) : Bar(0);
  }
  const IntegratorCotangent<Real, Bar> integrator = {at.any_damped ? ws.p : nullptr,
                                                     at.any_damped ? at.x : nullptr,
                                                     ws.implicit_bar,
                                                     gyroscopic ? &at.implicit_velocity : nullptr,
                                                     implicit ? ws.p : nullptr,
                                                     at.a_next};
  advance_activations_adjoint(model, qvel + model.nv, at.rates, qvel_next_bar + model.nv, ws.rates_bar,
                              ws.qvel_bar + model.nv);
  activation_rates_adjoint(model, ctrl, qvel + model.nv, ws.rates_bar, ctrl_bar, ws.qvel_bar + model.nv);
  soft_stage_adjoint(model, parameters, qpos, qvel, ctrl, at.stage, ws.a_bar, integrator, ws.stage,
                     ws.qpos_bar, ws.qvel_bar, ctrl_bar, parameters_bar);
}

// On entry qpos_bar and qvel_bar hold the cotangents of qpos+ and qvel+, on return those of qpos and qvel.
template <class Real, class Bar>
REVOLUTE_HD void soft_step_adjoint(const Model& model, const Parameters<Real>& parameters, const Real* qpos,
                                   const Real* qvel, const Real* ctrl, const SoftStep<Real>& at,
                                   SoftStepAdjointWorkspace<Bar>& ws, Bar* qpos_bar, Bar* qvel_bar,
                                   Bar* ctrl_bar, Parameters<Bar>& parameters_bar) {
  for (int k = 0; k < model.nv; ++k) ws.qpos_bar[k] = Bar(0);
  for (int k = 0; k < model.nv + model.na; ++k) ws.qvel_bar[k] = Bar(0);
  if (is_runge_kutta(model))
    runge_kutta_adjoint(model, parameters, qpos, qvel, ctrl, at.stage, at.runge_kutta, qpos_bar, qvel_bar,
                        ws.stage, ws.runge_kutta, ws.qpos_bar, ws.qvel_bar, ctrl_bar, parameters_bar);
  else
    one_stage_adjoint(model, parameters, qpos, qvel, ctrl, at, qpos_bar, qvel_bar, ws, ctrl_bar,
                      parameters_bar);
  for (int k = 0; k < model.nv; ++k) qpos_bar[k] = ws.qpos_bar[k];
  for (int k = 0; k < model.nv + model.na; ++k) qvel_bar[k] = ws.qvel_bar[k];
}

}  // namespace revolute
