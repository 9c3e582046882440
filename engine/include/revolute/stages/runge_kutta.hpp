// MuJoCo's Runge-Kutta integrator of order four, on the stages of soft_stage.hpp:
//   a_i at (X_i, W_i),  X_1 = qpos, W_1 = qvel,  X_i = qpos (+) h c_i k_(i-1),  W_i = qvel + h c_i a_(i-1),      (1)
//   k_i = rate of the coordinates u_i = h c_i k_(i-1) at velocity W_i (rate.hpp),  k_1 = qvel           (2)
//   activations like qvel, with their rates (activation.hpp) in place of a_i
//   qvel+ = qvel + h sum b_i a_i,  qpos+ = qpos (+) h sum b_i k_i,   c = (1/2, 1/2, 1), b = (1, 2, 2, 1)/6      (3)
// The adjoint walks through the stages backwards.
#pragma once

#include "revolute/stages/integration.hpp"
#include "revolute/stages/rate.hpp"
#include "revolute/stages/soft_stage.hpp"

namespace revolute {

constexpr int runge_kutta_stages = 4;

REVOLUTE_HD inline double runge_kutta_node(int i) { return i == 3 ? 1.0 : 0.5; }  // c_i, i > 0
REVOLUTE_HD inline double runge_kutta_weight(int i) { return i == 0 || i == 3 ? 1.0 / 6 : 1.0 / 3; }  // b_i

// The stages after the first; the caller has the first stage.
template <class Real>
struct RungeKutta {
  SoftStage<Real> second, third, fourth;
  Real *X[runge_kutta_stages], *W[runge_kutta_stages], *k[runge_kutta_stages];  // the first ones are not used
  Real *turn[runge_kutta_stages], *mean_rate, *mean_acceleration, *scaled;
  Real *activation_rate[runge_kutta_stages], *mean_activation_rate;  // [na]

  RungeKutta(const Model& model, Arena& arena)
      : second(model, arena), third(model, arena), fourth(model, arena) {
    for (int i = 0; i < runge_kutta_stages; ++i) {
      X[i] = arena.take<Real>(model.nq);
      for (Real** array : {&k[i], &turn[i]}) *array = arena.take<Real>(model.nv);
      W[i] = arena.take<Real>(model.nv + model.na);
      activation_rate[i] = arena.take<Real>(model.na);
    }
    mean_activation_rate = arena.take<Real>(model.na);
    for (Real** array : {&mean_rate, &mean_acceleration, &scaled}) *array = arena.take<Real>(model.nv);
  }
  REVOLUTE_HD SoftStage<Real>& stage(int i) { return i == 1 ? second : i == 2 ? third : fourth; }
  REVOLUTE_HD const SoftStage<Real>& stage(int i) const { return i == 1 ? second : i == 2 ? third : fourth; }
};

// The stage `first` must have been run at (qpos, qvel).
template <class Real>
REVOLUTE_HD void runge_kutta(const Model& model, const Parameters<Real>& parameters, const Real* qpos,
                             const Real* qvel, const Real* ctrl, bool record, const SoftStage<Real>& first,
                             RungeKutta<Real>& ws, Real* qpos_next, Real* qvel_next) {
  const Real h(model.timestep);
  for (int k = 0; k < model.nv; ++k) {
    ws.k[0][k] = qvel[k];
    ws.mean_rate[k] = Real(runge_kutta_weight(0)) * qvel[k];
    ws.mean_acceleration[k] = Real(runge_kutta_weight(0)) * first.newton.a[k];
  }
  activation_rates(model, ctrl, qvel + model.nv, ws.activation_rate[0]);
  for (int k = 0; k < model.na; ++k)
    ws.mean_activation_rate[k] = Real(runge_kutta_weight(0)) * ws.activation_rate[0][k];
  for (int i = 1; i < runge_kutta_stages; ++i) {
    const Real c(runge_kutta_node(i)), b(runge_kutta_weight(i));
    const Real* const before = (i == 1 ? first : ws.stage(i - 1)).newton.a;
    for (int k = 0; k < model.nv; ++k) {
      ws.scaled[k] = c * ws.k[i - 1][k];
      ws.turn[i][k] = h * ws.scaled[k];
      ws.W[i][k] = qvel[k] + h * (c * before[k]);
    }
    for (int k = 0; k < model.na; ++k)
      ws.W[i][model.nv + k] = qvel[model.nv + k] + h * (c * ws.activation_rate[i - 1][k]);
    activation_rates(model, ctrl, ws.W[i] + model.nv, ws.activation_rate[i]);
    for (int k = 0; k < model.na; ++k) ws.mean_activation_rate[k] += b * ws.activation_rate[i][k];
    integration(model, h, qpos, ws.scaled, ws.X[i]);  // (1)
    coordinate_rates(model, ws.W[i], ws.turn[i], ws.k[i]);
    SoftStage<Real>& stage = ws.stage(i);
    soft_stage(model, parameters, ws.X[i], ws.W[i], ctrl, record, stage);
    if (record) record_soft_stage(model, parameters, ws.W[i], static_cast<const Real*>(nullptr), stage);
    for (int k = 0; k < model.nv; ++k) {
      ws.mean_rate[k] += b * ws.k[i][k];
      ws.mean_acceleration[k] += b * stage.newton.a[k];
    }
  }
  integration(model, h, qpos, ws.mean_rate, qpos_next);  // (3)
  for (int k = 0; k < model.nv; ++k) qvel_next[k] = qvel[k] + h * ws.mean_acceleration[k];
  advance_activations(model, qvel + model.nv, ws.mean_activation_rate, qvel_next + model.nv);
}

template <class Bar>
struct RungeKuttaAdjointWorkspace {
  Bar *a_bar[runge_kutta_stages], *k_bar[runge_kutta_stages];
  Bar *mean_bar, *X_bar, *W_bar, *turn_bar, *velocity_bar, *zero;
  Bar *rate_bar[runge_kutta_stages], *mean_rate_bar;  // [na]

  RungeKuttaAdjointWorkspace(const Model& model, Arena& arena) {
    for (int i = 0; i < runge_kutta_stages; ++i)
      for (Bar** array : {&a_bar[i], &k_bar[i]}) *array = arena.take<Bar>(model.nv);
    for (Bar** array : {&mean_bar, &X_bar, &turn_bar, &velocity_bar, &zero})
      *array = arena.take<Bar>(model.nv);
    W_bar = arena.take<Bar>(model.nv + model.na);
    for (Bar*& array : rate_bar) array = arena.take<Bar>(model.na);
    mean_rate_bar = arena.take<Bar>(model.na);
  }
};

// From the cotangents of qpos+ and qvel+; adds to those of qpos and qvel.
template <class Real, class Bar>
REVOLUTE_HD void runge_kutta_adjoint(const Model& model, const Parameters<Real>& parameters, const Real* qpos,
                                     const Real* qvel, const Real* ctrl, const SoftStage<Real>& first,
                                     const RungeKutta<Real>& at, const Bar* qpos_next_bar,
                                     const Bar* qvel_next_bar, SoftStageAdjointWorkspace<Bar>& stage_ws,
                                     RungeKuttaAdjointWorkspace<Bar>& ws, Bar* qpos_bar, Bar* qvel_bar,
                                     Bar* ctrl_bar, Parameters<Bar>& parameters_bar) {
  const Real h(model.timestep);
  for (int k = 0; k < model.nv; ++k) ws.mean_bar[k] = ws.zero[k] = Bar(0);
  integration_adjoint(model, h, at.mean_rate, qpos_next_bar, qpos_bar, ws.mean_bar);
  for (int k = 0; k < model.nv; ++k) {
    qvel_bar[k] += qvel_next_bar[k];
    for (int i = 0; i < runge_kutta_stages; ++i) {
      ws.k_bar[i][k] = Real(runge_kutta_weight(i)) * ws.mean_bar[k];
      ws.a_bar[i][k] = (Real(runge_kutta_weight(i)) * h) * qvel_next_bar[k];
    }
  }
  const int nv = model.nv;
  advance_activations_adjoint(model, qvel + nv, at.mean_activation_rate, qvel_next_bar + nv, ws.mean_rate_bar,
                              qvel_bar + nv);
  for (int i = 0; i < runge_kutta_stages; ++i)
    for (int k = 0; k < model.na; ++k) ws.rate_bar[i][k] = Real(runge_kutta_weight(i)) * ws.mean_rate_bar[k];
  const IntegratorCotangent<Real, Bar> nothing = {nullptr, nullptr, ws.zero, nullptr, nullptr, nullptr};
  for (int i = runge_kutta_stages - 1; i > 0; --i) {
    const Real c(runge_kutta_node(i));
    for (int k = 0; k < model.nv; ++k) ws.X_bar[k] = ws.W_bar[k] = ws.velocity_bar[k] = Bar(0);
    for (int k = 0; k < model.na; ++k) ws.W_bar[nv + k] = Bar(0);
    activation_rates_adjoint(model, ctrl, at.W[i] + nv, ws.rate_bar[i], ctrl_bar, ws.W_bar + nv);
    soft_stage_adjoint(model, parameters, at.X[i], at.W[i], ctrl, at.stage(i), ws.a_bar[i], nothing, stage_ws,
                       ws.X_bar, ws.W_bar, ctrl_bar, parameters_bar);
    coordinate_rates_adjoint(model, at.W[i], at.turn[i], ws.k_bar[i], ws.W_bar, ws.turn_bar);  // (2)
    // the displacement of (1) is h times c k_(i-1)
    for (int k = 0; k < model.nv; ++k) at.scaled[k] = c * at.k[i - 1][k];
    integration_adjoint(model, h, at.scaled, ws.X_bar, qpos_bar, ws.velocity_bar);
    for (int k = 0; k < model.nv; ++k) {
      qvel_bar[k] += ws.W_bar[k];
      ws.k_bar[i - 1][k] += c * (ws.velocity_bar[k] + h * ws.turn_bar[k]);
      ws.a_bar[i - 1][k] += (h * c) * ws.W_bar[k];
    }
    for (int k = 0; k < model.na; ++k) {
      qvel_bar[nv + k] += ws.W_bar[nv + k];
      ws.rate_bar[i - 1][k] += (h * c) * ws.W_bar[nv + k];
    }
  }
  activation_rates_adjoint(model, ctrl, qvel + nv, ws.rate_bar[0], ctrl_bar, qvel_bar + nv);
  soft_stage_adjoint(model, parameters, qpos, qvel, ctrl, first, ws.a_bar[0], nothing, stage_ws, qpos_bar,
                     qvel_bar, ctrl_bar, parameters_bar);
  for (int k = 0; k < model.nv; ++k) qvel_bar[k] += ws.k_bar[0][k];
}

}  // namespace revolute
