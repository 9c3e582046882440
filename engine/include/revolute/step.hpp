// One step, and its reverse: the table of contents of the engine. Each stage is a file; its adjoint stands below it.
//
//   tau, diagonal  = actuation(qpos, qvel, ctrl, transmissions(links)), and the forces on links, including applied ones
//   S, V, I        = kinematics(qpos, qvel)
//   U, D           = articulated_inertia(I, S, diagonal)       factors of M + diagonal
//   a0, v*         = acceleration(tau, V, factors)
//   contacts       = collision_detection(links)
//   J, b           = constraint_rows(contacts, v*)             equality, dry friction, limits, contacts
//   A              = delassus(J, factors)                      J M^-1 J'
//   A, b           = soften_normals(A, b)                      of contacts that give back a depth
//   lambda         = projected_gauss_seidel(A, b)             or exact(A, b), by the option `solver`
//   qvel+          = v* + M^-1 J' lambda
//   qpos+          = integration(qpos, qvel+)
//
// That is the contact model "hard"; "mujoco" takes the steps of soft_step.hpp.
//
// When a contact is reached at speed within the step, find_impact() gives the configuration at that moment. The stages above
// run again from there, and qvel+ moves this configuration for the rest of the step.
//
// A step is a pure function of (qpos, qvel, ctrl, parameters and inputs): nothing is kept from one step to the next.
#pragma once

#include <initializer_list>
#include <utility>

#include "revolute/soft_step.hpp"
#include "revolute/solvers/exact.hpp"
#include "revolute/solvers/projected_gauss_seidel_adjoint.hpp"
#include "revolute/stages/acceleration.hpp"
#include "revolute/stages/actuation.hpp"
#include "revolute/stages/applied_wrenches.hpp"
#include "revolute/stages/articulated_inertia.hpp"
#include "revolute/stages/collision_detection.hpp"
#include "revolute/stages/constraint_rows.hpp"
#include "revolute/stages/delassus.hpp"
#include "revolute/stages/impact.hpp"
#include "revolute/stages/integration.hpp"
#include "revolute/stages/kinematics.hpp"
#include "revolute/stages/soft_normals.hpp"

namespace revolute {

inline const Model& hard_model(const Model& model) { return model_if(!is_soft(model), model); }

// The results of a forward step that its adjoint reads.
template <class Real>
struct StepWorkspace {
  Kinematics<Real> kinematics, start_kinematics;  // start: before an impact
  Transmissions<Real> transmissions;
  LinkForceSums<Real> link_forces;
  Factors<Real> factors;
  SolveScratch<Real> solve;
  Acceleration<Real> acceleration;
  Motion<Real>*V_free, *start_V_free;
  Contacts<Real> contacts, start_contacts;
  ConstraintRows<Real> rows;
  Impact<Real> impact;
  Delassus<Real> delassus;
  SolverWorkspace<Real> solver;  // its x is lambda, for either solver
  mutable ExactWorkspace exact;  // scratch
  SolverReport<Real> exact_report;
  GrowingArray<Real> scaled_memory;
  Real *start_v_free, *velocity_change, *qvel_next, *activation_rates;
  SoftStep<Real> soft;  // for the contact model "mujoco", which needs no other member

  StepWorkspace(const Model& model, Arena& arena)
      : StepWorkspace(hard_model(model), soft_model(model), arena) {}

 private:
  StepWorkspace(const Model& model, const Model& soft_model, Arena& arena)
      : kinematics(model, arena),
        start_kinematics(model, arena),
        transmissions(model, arena),
        link_forces(model, arena),
        factors(model, arena),
        solve(model, arena),
        acceleration(model, arena),
        V_free(arena.take<Motion<Real>>(model.nv)),
        start_V_free(arena.take<Motion<Real>>(model.nv)),
        contacts(model, arena),
        start_contacts(model, arena),
        rows(model, arena),
        impact(model, arena),
        delassus(model, arena),
        exact(model.solver == Solver::exact, ConstraintRows<Real>::capacity(model), arena),
        scaled_memory(square_of_rows<Real>(model), arena),
        soft(soft_model, arena) {
    solver.take(ConstraintRows<Real>::capacity(model), model.iterations, arena);
    for (Real** array : {&start_v_free, &velocity_change, &qvel_next}) *array = arena.take<Real>(model.nv);
    activation_rates = arena.take<Real>(model.na);
  }

 public:
  REVOLUTE_HD ActuationInput<Real> actuation_input(const Model& model, const Real* qpos, const Real* qvel,
                                                   const Real* ctrl) const {
    return {qpos, qvel, ctrl, &transmissions, model.compensated ? link_forces.lift : nullptr};
  }
  REVOLUTE_HD SolverProblem<Real> problem(const Model& model) const {
    return {rows.count, model.iterations, rows.solver, delassus.A, rows.b, rows.bound};
  }
  // The configuration at which the stages ran; `qpos` is that at the start of the step.
  REVOLUTE_HD const Real* configuration(const Real* qpos) const { return impact.any ? impact.qpos : qpos; }
  REVOLUTE_HD const Real* impact_time() const { return impact.any ? impact.time : nullptr; }
  // The time for which the end velocity moves each tree.
  REVOLUTE_HD Duration<Real> rest_of_step(Real h) const { return {h, impact_time(), -1}; }
  REVOLUTE_HD RowContext<Real> context(Real h, const Real* qpos, const Real* qvel) const {
    return {h, &kinematics, configuration(qpos), qvel, acceleration.v_free, V_free, impact_time()};
  }
  REVOLUTE_HD RowContext<Real> start_context(Real h, const Real* qpos, const Real* qvel) const {
    return {h, &start_kinematics, qpos, qvel, start_v_free, start_V_free, nullptr};
  }
  // Keeps what belongs to the start of the step, before the stages are run again.
  REVOLUTE_HD void keep_start() {
    exchange(kinematics, start_kinematics);
    exchange(contacts, start_contacts);
    exchange(V_free, start_V_free);
    exchange(acceleration.v_free, start_v_free);
  }
};

// The stages up to the constraint rows, at one configuration.
template <class Real>
REVOLUTE_HD void form_rows(const Model& model, const Parameters<Real>& parameters, Real h, const Real* qpos,
                           const Real* qvel, const Real* ctrl, StepWorkspace<Real>& ws) {
  kinematics(model, parameters, qpos, qvel, ws.kinematics);
  transmissions(model, parameters, ws.kinematics, qpos, qvel, ws.transmissions);
  if (any_link_forces(model)) link_forces(model, parameters, ws.kinematics, ws.link_forces);
  actuation(model, parameters, h, ws.actuation_input(model, qpos, qvel, ctrl), ws.transmissions,
            ws.acceleration.tau, ws.acceleration.diagonal);
  add_medium_forces(model, ws.kinematics, ws.link_forces, ws.acceleration.tau);
  add_applied_wrenches(model, parameters, ws.kinematics, ws.link_forces.applied, ws.acceleration.tau);
  articulated_inertia(model, ws.acceleration.diagonal, ws.kinematics, ws.factors);
  acceleration(model, parameters, h, ws.kinematics, ws.factors, qvel, ws.solve, ws.acceleration);
  link_velocities(model, ws.kinematics.S, ws.acceleration.v_free, ws.V_free);
  collision_detection(model, ws.kinematics, ws.V_free, h, ws.contacts);
  constraint_rows(model, parameters, ws.context(h, qpos, qvel), ws.contacts, ws.rows);
}

// Computes lambda with the model's solver. The exact solver takes memory as it needs it, so a device only has the sweeps.
template <class Real>
REVOLUTE_HD void solve_rows(const Model& model, bool record, StepWorkspace<Real>& ws) {
#if !defined(__CUDA_ARCH__)
  if (model.solver == Solver::exact) {
    ws.exact_report = exact(ws.problem(model), ws.exact, ws.solver.x);
    return;
  }
#endif
  ws.solver.scaled = ws.scaled_memory.at_least(ws.rows.matrix_entries());
  projected_gauss_seidel(ws.problem(model), ws.solver, record);
}

// How well the last forward step solved its constraints. Newton's method ends at rounding, or is unsettled.
template <class Real>
REVOLUTE_HD SolverReport<Real> solver_report(const Model& model, const StepWorkspace<Real>& ws) {
  if (is_soft(model)) return {Real(0), ws.soft.settled};
  if (ws.rows.count == 0) return {Real(0), less_equal(Real(0), Real(0))};
  return model.solver == Solver::exact ? ws.exact_report : sweeps_report(ws.problem(model), ws.solver);
}

template <class Real>
REVOLUTE_HD void step(const Model& model, const Parameters<Real>& parameters, const Real* qpos,
                      const Real* qvel, const Real* ctrl, bool record, StepWorkspace<Real>& ws,
                      Real* qpos_next, Real* qvel_next) {
  if (is_soft(model))
    return soft_step(model, parameters, qpos, qvel, ctrl, record, ws.soft, qpos_next, qvel_next);
  const Real h(model.timestep);
  ws.impact.any = false;
  form_rows(model, parameters, h, qpos, qvel, ctrl, ws);
  find_impact(model, parameters, ws.context(h, qpos, qvel), ws.contacts, ws.rows, ws.impact);
  if (ws.impact.any) {
    ws.keep_start();
    form_rows(model, parameters, h, ws.impact.qpos, qvel, ctrl, ws);
  }
  const Real* v_free = ws.acceleration.v_free;
  const bool rows = ws.rows.count > 0;
  if (rows) {
    delassus(model, ws.kinematics, ws.factors, ws.rows, ws.delassus);
    soften_normals(ws.rows, ws.delassus.A);
    solve_rows(model, record, ws);
    velocity_change(model, ws.kinematics, ws.factors, ws.rows, ws.delassus, ws.solver.x, ws.velocity_change,
                    ws.solve);
    for (int k = 0; k < model.nv; ++k) ws.qvel_next[k] = v_free[k] + ws.velocity_change[k];
  } else {
    for (int k = 0; k < model.nv; ++k) ws.qvel_next[k] = v_free[k];
  }
  integration(model, ws.rest_of_step(h), ws.configuration(qpos), ws.qvel_next, qpos_next);
  if (record) {
    if (rows) impulse_forces(model, ws.rows, ws.solver.x, ws.acceleration.W_bar);
    record_acceleration(model, parameters, ws.kinematics, qvel, rows ? ws.velocity_change : nullptr,
                        ws.acceleration);
  }
  for (int k = 0; k < model.nv; ++k) qvel_next[k] = ws.qvel_next[k];
  activation_rates(model, ctrl, qvel + model.nv, ws.activation_rates);
  advance_activations(model, qvel + model.nv, ws.activation_rates, qvel_next + model.nv);
}

// Cotangents of the state: of the configuration in tangent coordinates, [nv]; of qvel and the activations, [nv + na].
template <class Bar>
struct StateCotangent {
  Bar *qpos, *qvel;

  StateCotangent(const Model& model, Arena& arena)
      : qpos(arena.take<Bar>(model.nv)), qvel(arena.take<Bar>(velocities(model))) {}
};

template <class Bar>
struct StepAdjointWorkspace {
  KinematicsCotangent<Bar> kinematics;
  TransmissionsCotangent<Bar> transmissions;
  FactorsCotangent<Bar> factors;
  ConstraintRowsCotangent<Bar> rows;
  DelassusCotangent<Bar> delassus;
  AccelerationAdjointScratch<Bar> acceleration;
  SolveScratch<Bar> solve;
  SolverAdjointWorkspace<Bar> solver;
  Bar *qpos_bar, *start_bar, *qvel_bar, *diagonal_bar, *w, *w0, *lambda_bar, *v_free_bar, *time_bar;
  Bar *rates_bar, *lift_bar;
  Motion<Bar>* W;
  Force<Bar>*F_b, *F_v;
  SoftStepAdjointWorkspace<Bar> soft;

  StepAdjointWorkspace(const Model& model, Arena& arena)
      : StepAdjointWorkspace(hard_model(model), soft_model(model), arena) {}

 private:
  StepAdjointWorkspace(const Model& model, const Model& soft_model, Arena& arena)
      : kinematics(model, arena),
        transmissions(model, arena),
        factors(model, arena),
        rows(model, arena),
        delassus(model, arena),
        acceleration(model, arena),
        solve(model, arena),
        soft(soft_model, arena) {
    const std::size_t capacity = ConstraintRows<Bar>::capacity(model);
    for (Bar** array : {&qpos_bar, &start_bar, &diagonal_bar, &w, &w0, &v_free_bar})
      *array = arena.take<Bar>(model.nv);
    qvel_bar = arena.take<Bar>(velocities(model));
    rates_bar = arena.take<Bar>(model.na);
    lift_bar = arena.take<Bar>(model.compensated ? model.nv : 0);
    lambda_bar = arena.take<Bar>(capacity);
    time_bar = arena.take<Bar>(model.ntree);
    solver.take(capacity, model.iterations, arena);
    W = arena.take<Motion<Bar>>(model.nv);
    for (Force<Bar>** array : {&F_b, &F_v}) *array = arena.take<Force<Bar>>(model.nv);
  }
};

// Cotangents of the impulses, and of the wrenches of rows on their links under the motions on_a and on_b; for measurements.
template <class Bar>
struct ImpulseCotangent {
  const Bar* impulse;             // [rows]
  const Motion<Bar>*on_a, *on_b;  // [rows]
};

// Reverse of solver and rows: from qvel+_bar in ws.v_free_bar to v*_bar in the same place; adds to ws.time_bar.
template <class Real, class Bar>
REVOLUTE_HD void constraint_adjoint(const Model& model, const Parameters<Real>& parameters,
                                    const RowContext<Real>& context, const StepWorkspace<Real>& at,
                                    StepAdjointWorkspace<Bar>& ws, Parameters<Bar>& parameters_bar,
                                    const ImpulseCotangent<Bar>* measured) {
  const Kinematics<Real>& kin = at.kinematics;
  for (int k = 0; k < model.nv; ++k) ws.F_b[k] = ws.F_v[k] = zero_force<Bar>();
  ws.factors.clear(model);
  ws.rows.clear(at.rows, at.contacts);
  ws.delassus.clear(at.rows);
  // w = M^-1 qvel+_bar,  lambda_bar = J w
  solve(model, kin, at.factors, ws.v_free_bar, ws.w, ws.solve);
  link_velocities(model, kin.S, ws.w, ws.W);
  for (int r = 0; r < at.rows.count; ++r) {
    ws.lambda_bar[r] = row_times(at.rows.J[r], ws.w, ws.W);
    if (measured) ws.lambda_bar[r] += measured->impulse[r];
  }
  SolverCotangent<Bar> solver_bar = {ws.lambda_bar, ws.rows.b, ws.delassus.A, ws.rows.bound};
#if !defined(__CUDA_ARCH__)
  if (model.solver == Solver::exact)
    exact_adjoint(at.problem(model), at.exact, at.solver.x, solver_bar);
  else
#endif
    projected_gauss_seidel_adjoint(at.problem(model), at.solver, ws.solver, solver_bar);
  add_impulse_adjoint(at.rows, at.solver.x, ws.w, ws.W, ws.rows);
  for (int r = 0; measured && r < at.rows.count; ++r) {
    const Real lambda = at.solver.x[r];
    ws.rows.J[r].force_a += lambda * Force<Bar>{measured->on_a[r].w, measured->on_a[r].v};
    ws.rows.J[r].force_b += lambda * Force<Bar>{measured->on_b[r].w, measured->on_b[r].v};
  }
  soften_normals_adjoint(at.rows, at.delassus.A, ws.rows, ws.delassus.A);
  add_right_side_adjoint(context, at.rows, ws.v_free_bar, ws.F_b, ws.rows);
  delassus_adjoint(model, kin, at.factors, at.rows, at.delassus, ws.delassus, ws.rows, ws.factors,
                   ws.kinematics);
  constraint_rows_adjoint(model, parameters, context, at.contacts, at.rows, ws.qpos_bar, ws.F_v, ws.F_b,
                          ws.time_bar, ws.rows, ws.kinematics, parameters_bar);
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

// Reverse of  qpos_t = qpos (+) t qvel  and of t: from qpos_t_bar in ws.qpos_bar to qpos_bar in the same place.
template <class Real, class Bar>
REVOLUTE_HD void impact_adjoint(const Model& model, const Parameters<Real>& parameters, Real h,
                                const Real* qpos, const Real* qvel, const StepWorkspace<Real>& at,
                                StepAdjointWorkspace<Bar>& ws, Parameters<Bar>& parameters_bar) {
  for (int k = 0; k < model.nv; ++k) {
    ws.time_bar[model.dofs[k].tree] += qvel[k] * ws.qpos_bar[k];
    ws.start_bar[k] = Bar(0);
  }
  integration_adjoint(model, Duration<Real>{Real(0), at.impact.time, 1}, qvel, ws.qpos_bar, ws.start_bar,
                      ws.qvel_bar);
  find_impact_adjoint(model, parameters, at.start_context(h, qpos, qvel), at.start_contacts, at.impact,
                      ws.time_bar, ws.kinematics, ws.F_v, ws.start_bar, ws.qvel_bar, parameters_bar);
  for (int k = 0; k < model.nv; ++k) ws.qpos_bar[k] = ws.start_bar[k];
}

// Pulls the cotangents of (qpos+, qvel+) in `state_bar` back to those of (qpos, qvel) in the same place; adds to ctrl_bar and
// parameters_bar. `at` is the workspace of the step from this (qpos, qvel, ctrl), taken with record = true.
template <class Real, class Bar>
REVOLUTE_HD void step_adjoint(const Model& model, const Parameters<Real>& parameters, const Real* qpos,
                              const Real* qvel, const Real* ctrl, const StepWorkspace<Real>& at,
                              StepAdjointWorkspace<Bar>& ws, StateCotangent<Bar>& state_bar, Bar* ctrl_bar,
                              Parameters<Bar>& parameters_bar,
                              const ImpulseCotangent<Bar>* measured = nullptr) {
  if (is_soft(model))
    return soft_step_adjoint(model, parameters, qpos, qvel, ctrl, at.soft, ws.soft, state_bar.qpos,
                             state_bar.qvel, ctrl_bar, parameters_bar);
  const Real h(model.timestep);
  const bool rows = at.rows.count > 0;
  const Real* configuration = at.configuration(qpos);
  for (int t = 0; t < model.ntree; ++t) ws.time_bar[t] = Bar(0);
  for (int k = 0; k < model.nv; ++k) {
    ws.qpos_bar[k] = ws.diagonal_bar[k] = Bar(0);
    ws.v_free_bar[k] = state_bar.qvel[k];
    if (!rows) ws.F_v[k] = zero_force<Bar>();
    if (at.impact.any) ws.time_bar[model.dofs[k].tree] -= at.qvel_next[k] * state_bar.qpos[k];
  }
  ws.kinematics.clear(model);
  integration_adjoint(model, at.rest_of_step(h), at.qvel_next, state_bar.qpos, ws.qpos_bar, ws.v_free_bar);
  if (rows)
    constraint_adjoint(model, parameters, at.context(h, qpos, qvel), at, ws, parameters_bar, measured);
  // v* = qvel + h a0
  solve(model, at.kinematics, at.factors, ws.v_free_bar, ws.w0, ws.solve);
  for (int k = 0; k < model.nv; ++k) {
    ws.w0[k] = h * ws.w0[k];
    ws.qvel_bar[k] = ws.v_free_bar[k];
  }
  for (int k = model.nv; k < velocities(model); ++k) ws.qvel_bar[k] = Bar(0);
  advance_activations_adjoint(model, qvel + model.nv, at.activation_rates, state_bar.qvel + model.nv,
                              ws.rates_bar, ws.qvel_bar + model.nv);
  activation_rates_adjoint(model, ctrl, qvel + model.nv, ws.rates_bar, ctrl_bar, ws.qvel_bar + model.nv);
  medium_adjoint(model, parameters, at.kinematics, at.link_forces.medium, ws.w0, ws.acceleration.Z, ws.F_v,
                 ws.kinematics, parameters_bar);
  applied_wrenches_adjoint(model, parameters, at.kinematics, at.link_forces.applied, ws.w0, ws.acceleration.Z,
                           ws.kinematics, parameters_bar);
  const AccelerationAdjointInput<Real, Bar> in = {ws.w0, rows ? ws.w : nullptr,
                                                  rows ? at.velocity_change : nullptr, ws.F_v};
  acceleration_adjoint(model, at.kinematics, at.acceleration, qvel, in, ws.acceleration, ws.kinematics,
                       ws.qvel_bar, ws.diagonal_bar, parameters_bar);
  ws.transmissions.clear(model);
  actuation_adjoint(model, parameters, h, at.actuation_input(model, configuration, qvel, ctrl),
                    ActuationCotangent<Real, Bar>{ws.w0, ws.diagonal_bar, ws.diagonal_bar, nullptr, nullptr},
                    ws.transmissions, model.compensated ? ws.lift_bar : nullptr, ws.qpos_bar, ws.qvel_bar,
                    ctrl_bar, parameters_bar);
  transmissions_adjoint(model, parameters, at.kinematics, configuration, qvel, at.transmissions,
                        ws.transmissions, ws.qpos_bar, ws.qvel_bar, ws.kinematics, parameters_bar);
  compensation_adjoint(model, parameters, at.kinematics, at.link_forces, ws.lift_bar, ws.acceleration.Z,
                       ws.kinematics, parameters_bar);
  kinematics_adjoint(model, parameters, at.kinematics, ws.kinematics, ws.qpos_bar, parameters_bar);
  if (at.impact.any) impact_adjoint(model, parameters, h, qpos, qvel, at, ws, parameters_bar);
  for (int k = 0; k < model.nv; ++k) state_bar.qpos[k] = ws.qpos_bar[k];
  for (int k = 0; k < velocities(model); ++k) state_bar.qvel[k] = ws.qvel_bar[k];
}

}  // namespace revolute
