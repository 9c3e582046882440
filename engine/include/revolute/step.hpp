// One step, and its reverse: the table of contents of the engine. Each stage is a file; its adjoint stands below it.
//
//   tau, diagonal  = actuation(qpos, qvel, ctrl)
//   S, V, I        = kinematics(qpos, qvel)
//   U, D           = articulated_inertia(I, S, diagonal)       factors of M + diagonal
//   a0, v*         = acceleration(tau, V, factors)
//   contacts       = collision_detection(links)
//   J, b           = constraint_rows(contacts, v*)             equality, dry friction, limits, contacts
//   A              = delassus(J, factors)                      J M^-1 J'
//   lambda         = projected_gauss_seidel(A, b)
//   qvel+          = v* + M^-1 J' lambda
//   qpos+          = integration(qpos, qvel+ + M^-1 J' of the displacements of contacts that bounce)
//
// A step is a pure function of (qpos, qvel, ctrl, parameters): nothing is kept from one step to the next.
#pragma once

#include "revolute/stages/acceleration.hpp"
#include "revolute/stages/actuation.hpp"
#include "revolute/stages/articulated_inertia.hpp"
#include "revolute/stages/collision_detection.hpp"
#include "revolute/stages/constraint_rows.hpp"
#include "revolute/stages/delassus.hpp"
#include "revolute/stages/integration.hpp"
#include "revolute/stages/kinematics.hpp"

namespace revolute {

// What a forward step leaves behind for its adjoint.
template <class Real>
struct StepWorkspace {
  Kinematics<Real> kinematics;
  Factors<Real> factors;
  Acceleration<Real> acceleration;
  Motion<Real>* V_free;
  Contacts<Real> contacts;
  ConstraintRows<Real> rows;
  Delassus<Real> delassus;
  SolverWorkspace<Real> solver, shift_solver;  // their x: lambda, and that of the displacements
  Real *velocity_change, *shift, *qvel_next, *qvel_moved;

  StepWorkspace(const Model& model, Arena& arena)
      : kinematics(model, arena),
        factors(model, arena),
        acceleration(model, arena),
        V_free(arena.take<Motion<Real>>(model.nv)),
        contacts(model, arena),
        rows(model, arena),
        delassus(model, arena) {
    const std::size_t capacity = ConstraintRows<Real>::capacity(model);
    for (SolverWorkspace<Real>* each : {&solver, &shift_solver}) {
      for (Real** array : {&each->x, &each->y, &each->inverse_diagonal}) *array = arena.take<Real>(capacity);
      each->scaled = arena.take<Real>(capacity * capacity);
      each->tape = arena.take<Real>(capacity * model.iterations);
    }
    for (Real** array : {&velocity_change, &shift, &qvel_next, &qvel_moved}) *array = arena.take<Real>(model.nv);
  }
  SolverProblem<Real> problem(const Model& model) const {
    return {rows.count, model.iterations, rows.solver, delassus.A, rows.b, rows.bound};
  }
  // displacements: the same A, two-sided rows where a contact bounces
  SolverProblem<Real> shift_problem(const Model& model) const {
    return {rows.count, model.iterations, rows.shift_solver, delassus.A, rows.shift_b, rows.bounced};
  }
  RowContext<Real> context(Real h, const Real* qpos, const Real* qvel) const {
    return {h, &kinematics, qpos, qvel, acceleration.v_free, V_free};
  }
};

template <class Real>
REVOLUTE_HD void step(const Model& model, const Parameters<Real>& parameters, const Real* qpos, const Real* qvel, const Real* ctrl,
                      bool record, StepWorkspace<Real>& ws, Real* qpos_next, Real* qvel_next) {
  const Real h(model.timestep);
  actuation(model, parameters, h, qpos, qvel, ctrl, ws.acceleration.tau, ws.acceleration.diagonal);
  kinematics(model, parameters, qpos, qvel, ws.kinematics);
  articulated_inertia(model, ws.acceleration.diagonal, ws.kinematics, ws.factors);
  acceleration(model, parameters, h, ws.kinematics, ws.factors, qvel, ws.acceleration);
  const Real* v_free = ws.acceleration.v_free;
  link_velocities(model, ws.kinematics.S, v_free, ws.V_free);
  collision_detection(model, ws.kinematics, ws.V_free, h, ws.contacts);
  constraint_rows(model, parameters, ws.context(h, qpos, qvel), ws.contacts, ws.rows);
  if (ws.rows.count > 0) {
    delassus(model, ws.kinematics, ws.factors, ws.rows, ws.delassus);
    projected_gauss_seidel(ws.problem(model), ws.solver, record);
    velocity_change(model, ws.kinematics, ws.factors, ws.rows, ws.delassus, ws.solver.x, ws.velocity_change);
    for (int k = 0; k < model.nv; ++k) ws.qvel_next[k] = v_free[k] + ws.velocity_change[k];
  } else {
    for (int k = 0; k < model.nv; ++k) ws.qvel_next[k] = v_free[k];
  }
  for (int k = 0; k < model.nv; ++k) ws.qvel_moved[k] = ws.qvel_next[k];
  if (ws.rows.count > 0 && ws.rows.any_bounce) {
    projected_gauss_seidel(ws.shift_problem(model), ws.shift_solver, record);
    velocity_change(model, ws.kinematics, ws.factors, ws.rows, ws.delassus, ws.shift_solver.x, ws.shift);
    for (int k = 0; k < model.nv; ++k) ws.qvel_moved[k] += ws.shift[k];
  }
  integration(model, h, qpos, ws.qvel_moved, qpos_next);
  for (int k = 0; k < model.nv; ++k) qvel_next[k] = ws.qvel_next[k];
}

// Cotangents of the state, in tangent coordinates: [nv] each.
template <class Real>
struct StateCotangent {
  Real *qpos, *qvel;

  StateCotangent(const Model& model, Arena& arena) : qpos(arena.take<Real>(model.nv)), qvel(arena.take<Real>(model.nv)) {}
};

template <class Real>
struct StepAdjointWorkspace {
  KinematicsCotangent<Real> kinematics;
  FactorsCotangent<Real> factors;
  ConstraintRowsCotangent<Real> rows;
  DelassusCotangent<Real> delassus;
  AccelerationAdjointScratch<Real> acceleration;
  SolverAdjointWorkspace<Real> solver;
  Real *qpos_bar, *qvel_bar, *diagonal_bar, *w, *w_shift, *w0, *lambda_bar, *v_free_bar, *moved_bar;
  MassPair<Real> velocity_pair, shift_pair;
  Force<Real>*F_b, *F_v;

  StepAdjointWorkspace(const Model& model, Arena& arena)
      : kinematics(model, arena), factors(model, arena), rows(model, arena), delassus(model, arena), acceleration(model, arena) {
    const std::size_t capacity = ConstraintRows<Real>::capacity(model);
    for (Real** array : {&qpos_bar, &qvel_bar, &diagonal_bar, &w, &w_shift, &w0, &v_free_bar, &moved_bar}) *array = arena.take<Real>(model.nv);
    for (Real** array : {&lambda_bar, &solver.x, &solver.from_friction}) *array = arena.take<Real>(capacity);
    solver.steps = arena.take<Real>(capacity * model.iterations);
    for (MassPair<Real>* pair : {&velocity_pair, &shift_pair}) {
      for (Force<Real>** array : {&pair->F_w, &pair->X_bar}) *array = arena.take<Force<Real>>(model.nv);
      for (Motion<Real>** array : {&pair->W, &pair->X}) *array = arena.take<Motion<Real>>(model.nv);
    }
    for (Force<Real>** array : {&F_b, &F_v}) *array = arena.take<Force<Real>>(model.nv);
  }
};

// Reverse of  change = M^-1 J' x,  x = the solver's: from change_bar to w = M^-1 change_bar, and to the solver's cotangents.
template <class Real>
REVOLUTE_HD void impulse_adjoint(const Model& model, const StepWorkspace<Real>& at, const SolverProblem<Real>& problem,
                                 const SolverWorkspace<Real>& solver, const Real* change_bar, Real* w, const MassPair<Real>& pair, Real* b_bar,
                                 Real* bound_bar, StepAdjointWorkspace<Real>& ws) {
  const Kinematics<Real>& kin = at.kinematics;
  for (int k = 0; k < model.nv; ++k) pair.F_w[k] = zero_force<Real>();
  solve(model, kin, at.factors, change_bar, w);
  link_velocities(model, kin.S, w, pair.W);
  for (int r = 0; r < at.rows.count; ++r) ws.lambda_bar[r] = row_times(at.rows.J[r], w, pair.W);
  SolverCotangent<Real> solver_bar = {ws.lambda_bar, b_bar, ws.delassus.A, bound_bar};
  projected_gauss_seidel_adjoint(problem, solver, ws.solver, solver_bar);
  add_impulse_adjoint(at.rows, ImpulsePair<Real>{solver.x, w, pair.W, pair.F_w}, ws.rows);
}

// Reverse of solver and rows: from qvel+_bar in ws.v_free_bar (and ws.moved_bar) to v*_bar in the same place.
template <class Real>
REVOLUTE_HD void constraint_adjoint(const Model& model, const Parameters<Real>& parameters, const RowContext<Real>& context,
                                    const StepWorkspace<Real>& at, StepAdjointWorkspace<Real>& ws, Parameters<Real>& parameters_bar) {
  const Kinematics<Real>& kin = at.kinematics;
  for (int k = 0; k < model.nv; ++k) ws.F_b[k] = ws.F_v[k] = zero_force<Real>();
  ws.factors.clear(model);
  ws.rows.clear(at.rows, at.contacts);
  ws.delassus.clear(at.rows);
  impulse_adjoint(model, at, at.problem(model), at.solver, ws.v_free_bar, ws.w, ws.velocity_pair, ws.rows.b, ws.rows.bound, ws);
  if (at.rows.any_bounce) {
    // two-sided rows have no bound that could take a cotangent
    impulse_adjoint(model, at, at.shift_problem(model), at.shift_solver, ws.moved_bar, ws.w_shift, ws.shift_pair, ws.rows.shift_b,
                    static_cast<Real*>(nullptr), ws);
  }
  add_right_side_adjoint(context, at.rows, ws.v_free_bar, ws.F_b, ws.rows);
  delassus_adjoint(model, kin, at.factors, at.rows, at.delassus, ws.delassus, ws.rows, ws.factors, ws.kinematics);
  constraint_rows_adjoint(model, parameters, context, at.contacts, at.rows, ws.qpos_bar, ws.F_v, ws.F_b, ws.rows, ws.kinematics, parameters_bar);
  for (int c = 0; c < at.contacts.count; ++c)
    collision_detection_adjoint(model, kin, at.contacts.list[c], ws.rows.contacts[c], ws.kinematics);
  articulated_inertia_adjoint(model, kin, at.factors, ws.factors, ws.kinematics, ws.diagonal_bar);
  // v*_bar = qvel+_bar + J' b_bar
  sum_towards_root(model, ws.F_b);
  for (int k = 0; k < model.nv; ++k) {
    ws.v_free_bar[k] += dot(kin.S[k], ws.F_b[k]);
    ws.kinematics.S[k] += at.acceleration.v_free[k] * ws.F_b[k];
  }
}

template <class Real>
REVOLUTE_HD inline MassPair<Real> mass_pair(MassPair<Real> pair, const Real* w, const Real* x) {
  pair.w = w;
  pair.x = x;
  return pair;
}

// Pulls (qpos+, qvel+) cotangents in `state_bar` back to (qpos, qvel) cotangents in the same place; adds to ctrl_bar and
// parameters_bar. `at` is the workspace of the step at this (qpos, qvel, ctrl), taken with record = true.
template <class Real>
REVOLUTE_HD void step_adjoint(const Model& model, const Parameters<Real>& parameters, const Real* qpos, const Real* qvel,
                              const Real* ctrl, StepWorkspace<Real>& at, StepAdjointWorkspace<Real>& ws,
                              StateCotangent<Real>& state_bar, Real* ctrl_bar, Parameters<Real>& parameters_bar) {
  const Real h(model.timestep);
  const bool rows = at.rows.count > 0;
  for (int k = 0; k < model.nv; ++k) {
    ws.qpos_bar[k] = ws.diagonal_bar[k] = ws.moved_bar[k] = Real(0);
    if (!rows) ws.F_v[k] = zero_force<Real>();
  }
  ws.kinematics.clear(model);
  integration_adjoint(model, h, at.qvel_moved, state_bar.qpos, ws.qpos_bar, ws.moved_bar);
  for (int k = 0; k < model.nv; ++k) ws.v_free_bar[k] = state_bar.qvel[k] + ws.moved_bar[k];
  if (rows) constraint_adjoint(model, parameters, at.context(h, qpos, qvel), at, ws, parameters_bar);
  // v* = qvel + h a0
  solve(model, at.kinematics, at.factors, ws.v_free_bar, ws.w0);
  for (int k = 0; k < model.nv; ++k) {
    ws.w0[k] = h * ws.w0[k];
    ws.qvel_bar[k] = ws.v_free_bar[k];
  }
  AccelerationAdjointInput<Real> in = {ws.w0, ws.F_v, 0, {}};
  if (rows) in.pair[in.pairs++] = mass_pair(ws.velocity_pair, ws.w, at.velocity_change);
  if (rows && at.rows.any_bounce) in.pair[in.pairs++] = mass_pair(ws.shift_pair, ws.w_shift, at.shift);
  acceleration_adjoint(model, parameters, at.kinematics, at.acceleration, qvel, in, ws.acceleration, ws.kinematics, ws.qvel_bar,
                       ws.diagonal_bar, parameters_bar);
  kinematics_adjoint(model, at.kinematics, ws.kinematics, ws.qpos_bar, parameters_bar);
  actuation_adjoint(model, parameters, h, qpos, qvel, ctrl, ws.w0, ws.diagonal_bar, ws.qpos_bar, ws.qvel_bar, ctrl_bar, parameters_bar);
  for (int k = 0; k < model.nv; ++k) {
    state_bar.qpos[k] = ws.qpos_bar[k];
    state_bar.qvel[k] = ws.qvel_bar[k];
  }
}

}  // namespace revolute
