// One step of the contact model "mujoco", and its reverse, by the file's integrator.
//
//   euler, implicitfast:  (M + E) a^ = M a,  qvel+ = qvel + h a^,  qpos+ = qpos (+) h qvel+      (1)
//     E = h damping, and with implicitfast the actuators' part (actuation.hpp); where E is zero, a^ = a
//   rk4:  a_i at (X_i, W_i),  X_1 = qpos, W_1 = qvel,  X_i = qpos (+) h c_i k_(i-1),  W_i = qvel + h c_i a_(i-1),      (2)
//     k_i = the rate of the exponential coordinates h c_i k_(i-1) at velocity W_i (rate.hpp),
//     qvel+ = qvel + h sum b_i a_i,  qpos+ = qpos (+) h sum b_i k_i,   c = (1/2, 1/2, 1), b = (1, 2, 2, 1)/6
// Adjoint of (1), with v_bar = qvel+_bar + h (d (+))' qpos+_bar:
//   p = (M + E)^-1 h v_bar,   a_bar = M p,   M_bar = p (a - a^)',   E_bar = -p a^                (3)
// Sources: MuJoCo, Computation, section Numerical integration; docs/adjoint.md, section 5.
#pragma once

#include "revolute/stages/integration.hpp"
#include "revolute/stages/soft_stage.hpp"

namespace revolute {

constexpr int runge_kutta_stages = 4;

// A model without anything, for workspaces that a model does not need.
REVOLUTE_HD inline const Model& empty_model() {
  static const Model nothing{};
  return nothing;
}
REVOLUTE_HD inline const Model& model_if(bool needed, const Model& model) {
  return needed ? model : empty_model();
}
REVOLUTE_HD inline bool is_soft(const Model& model) { return model.contact_model == ContactModel::mujoco; }
REVOLUTE_HD inline const Model& soft_model(const Model& model) { return model_if(is_soft(model), model); }

template <class Real>
struct SoftStep {
  SoftStage<Real> stage;  // the only one of (1), the first of (2)
  MassFactors<Real> implicit_factors;
  Real *implicit, *a_next, *x;  // [nv] E, a^, a^ - a
  MaskOf<Real> damped;          // where E is not zero
  bool any_damped;
  Real* qvel_next;

  SoftStep(const Model& model, Arena& arena) : stage(model, arena), implicit_factors(model, arena) {
    for (Real** array : {&implicit, &a_next, &x, &qvel_next}) *array = arena.take<Real>(model.nv);
  }
};

// (1): E, its factors and a^
template <class Real>
REVOLUTE_HD void implicit_acceleration(const Model& model, const Parameters<Real>& parameters, Real h,
                                       const Real* qpos, const Real* qvel, const Real* ctrl,
                                       SoftStep<Real>& ws) {
  const Newton<Real>& solution = ws.stage.newton;
  ws.damped = less(Real(1), Real(0));
  if (model.implicit_damping || model.integrator != Integrator::euler) {
    implicit_diagonal(model, parameters, h, qpos, qvel, ctrl, ws.implicit);
    for (int k = 0; k < model.nv; ++k) ws.damped = ws.damped | less(Real(0), abs(ws.implicit[k]));
  }
  ws.any_damped = any(ws.damped);
  for (int k = 0; k < model.nv; ++k) ws.a_next[k] = solution.Ma[k];
  if (ws.any_damped) {
    factorize(model, ws.stage.M, ws.implicit, ws.implicit_factors);
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
  implicit_acceleration(model, parameters, h, qpos, qvel, ctrl, ws);
  if (record) record_soft_stage(model, parameters, qvel, ws.any_damped ? ws.x : nullptr, ws.stage);
  for (int k = 0; k < model.nv; ++k) ws.qvel_next[k] = qvel[k] + h * ws.a_next[k];
  integration(model, h, qpos, ws.qvel_next, qpos_next);
  for (int k = 0; k < model.nv; ++k) qvel_next[k] = ws.qvel_next[k];
}

template <class Bar>
struct SoftStepAdjointWorkspace {
  SoftStageAdjointWorkspace<Bar> stage;
  Bar *qpos_bar, *qvel_bar, *p, *a_bar, *implicit_bar;

  SoftStepAdjointWorkspace(const Model& model, Arena& arena) : stage(model, arena) {
    for (Bar** array : {&qpos_bar, &qvel_bar, &p, &a_bar, &implicit_bar}) *array = arena.take<Bar>(model.nv);
  }
};

// Cotangents of qpos+ and qvel+ come in qpos_bar and qvel_bar, those of qpos and qvel are left there.
template <class Real, class Bar>
REVOLUTE_HD void soft_step_adjoint(const Model& model, const Parameters<Real>& parameters, const Real* qpos,
                                   const Real* qvel, const Real* ctrl, const SoftStep<Real>& at,
                                   SoftStepAdjointWorkspace<Bar>& ws, Bar* qpos_bar, Bar* qvel_bar,
                                   Bar* ctrl_bar, Parameters<Bar>& parameters_bar) {
  const Real h(model.timestep);
  for (int k = 0; k < model.nv; ++k) {
    ws.qpos_bar[k] = Bar(0);
    ws.qvel_bar[k] = qvel_bar[k];
  }
  integration_adjoint(model, h, at.qvel_next, qpos_bar, ws.qpos_bar, ws.qvel_bar);
  for (int k = 0; k < model.nv; ++k) ws.p[k] = h * ws.qvel_bar[k];
  // (3); where nothing is implicit, a_bar is h v_bar, and p counts for the damping that is not there yet
  if (at.any_damped)
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
                                                     at.any_damped ? at.x : nullptr, ws.implicit_bar};
  soft_stage_adjoint(model, parameters, qpos, qvel, ctrl, at.stage, ws.a_bar, integrator, ws.stage,
                     ws.qpos_bar, ws.qvel_bar, ctrl_bar, parameters_bar);
  for (int k = 0; k < model.nv; ++k) {
    qpos_bar[k] = ws.qpos_bar[k];
    qvel_bar[k] = ws.qvel_bar[k];
  }
}

}  // namespace revolute
