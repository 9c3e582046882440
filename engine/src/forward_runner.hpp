// One thread's workspace for forward steps, one pack at a time.
#pragma once

#include <algorithm>
#include <limits>
#include <memory>

#include "controller_runner.hpp"
#include "measured_probes.hpp"

namespace revolute {

// Workspace of one thread for forward steps of one pack at a time.
template <class Real>
struct ForwardRunner {
  Real *qpos, *qvel, *ctrl;
  InputArrays<Real> inputs;
  Parameters<Real> parameters;
  StepWorkspace<Real> workspace;

  ForwardRunner(const Model& model, Arena& arena)
      : qpos(arena.take<Real>(model.nq)),
        qvel(arena.take<Real>(velocities(model))),
        ctrl(arena.take<Real>(model.nu)),
        inputs(model, arena),
        parameters(model, arena),
        workspace(model, arena) {}

  void load(const ModelStorage& storage, const ParameterInputs& inputs, const Slice& slice,
            bool measured = false) {
    load_parameters_of(storage, inputs, slice, model_for(storage, inputs), measured, parameters);
  }

  bool run(const ModelStorage& storage, const RolloutArrays& arrays, const Slice& slice,
           const CancelToken* cancel) {
    const Model& model = model_for(storage, arrays.parameters);
    const std::int64_t count = KeptSteps(arrays.policy, arrays.shape.steps).count();
    return run(storage, arrays, slice, cancel, [&](std::int64_t place) {
      if (arrays.kept.qpos) scatter_state(model, arrays.kept, count, place, slice);
    });
  }

  // Calls keep(place) when the current state is the one to keep at this place.
  template <class Keep>
  bool run(const ModelStorage& storage, const RolloutArrays& arrays, const Slice& slice,
           const CancelToken* cancel, const Keep& keep) {
    const Model& model = model_for(storage, arrays.parameters);
    const std::int64_t steps = arrays.shape.steps;
    const KeptSteps kept(arrays.policy, steps);
    std::int64_t place = 0;
    Doubles sums(arrays.loss ? arrays.loss->terms.size() * slice.count : 0);
    load(storage, arrays.parameters, slice, measures(arrays.loss, arrays.controller));
    take_inputs(model, arrays.controller);
    gather(arrays.qpos0, model.nq, 0, model.nq, slice, qpos);
    gather(arrays.qvel0, velocities(model), 0, velocities(model), slice, qvel);
    std::fill_n(ctrl, model.nu, Real(0));  // for measurements at time T without steps
    if (arrays.held) load_inputs(model, arrays, {1, 1}, 0, slice);
    OptionalController<Real> controller(model, arrays.controller);
    if (controller) controller->start(slice);
    for (int lane = 0; lane < slice.count; ++lane) {
      arrays.status[slice.environment(lane)] = std::int32_t(Status::completed);
      arrays.diverged_step[slice.environment(lane)] = -1;
      if (arrays.unsettled_step) arrays.unsettled_step[slice.environment(lane)] = -1;
      if (arrays.residual) arrays.residual[slice.environment(lane)] = 0;
    }
    for (std::int64_t t = 0;; ++t) {
      if (arrays.states.qpos) scatter_state(model, arrays.states, steps + 1, t, slice);
      if (place < kept.count() && kept.step(place) == t) keep(place++);
      if (arrays.loss) add_state_values(arrays, slice, t, sums);
      if (t == steps) {
        if (arrays.loss) add_measured_values(model, arrays, slice, t, sums);
        break;
      }
      if (cancel && cancel->cancelled()) return false;
      if (!arrays.held && arrays.shape.starts_period(t))
        begin_period(model, arrays, slice, t, controller, sums);
      if (arrays.loss) add_measured_values(model, arrays, slice, t, sums);
      const MaskOf<Real> finite = advance(model);
      note_divergence(finite, arrays, slice, t);
      if (arrays.unsettled_step) note_report(solver_report(model, workspace), arrays, slice, t);
      if (arrays.held && !any(finite)) break;  // all NaN from here on, and the steps are not counted
    }
    if (arrays.last.qpos) scatter_state(model, arrays.last, 1, 0, slice);
    if (arrays.loss) write_values(arrays, slice, sums);
    return true;
  }

  // Loads the controls [B, C, nu] of step t.
  void load_ctrl(const Model& model, const double* values, const BatchShape& shape, std::int64_t t,
                 const Slice& slice) {
    gather(values, std::size_t(shape.periods()) * model.nu, std::size_t(shape.period(t)) * model.nu, model.nu,
           slice, ctrl);
  }
  // Loads controls and the other inputs of step t.
  template <class Arrays>
  void load_inputs(const Model& model, const Arrays& arrays, const BatchShape& shape, std::int64_t t,
                   const Slice& slice) {
    load_ctrl(model, arrays.ctrl, shape, t, slice);
    gather_inputs(model, arrays.controller, shape.period(t), slice, inputs);
  }
  // Makes steps read the other inputs that are given.
  void take_inputs(const Model& model, const ControllerInputs& given) {
    inputs.attach(model, [&](int i) { return given.inputs[i].values != nullptr; }, parameters);
  }
  void gather_state(const Model& model, const ConstStateArrays& from, std::int64_t count, std::int64_t index,
                    const Slice& slice) {
    gather(from.qpos, std::size_t(count) * model.nq, std::size_t(index) * model.nq, model.nq, slice, qpos);
    const std::size_t nv = velocities(model);
    gather(from.qvel, std::size_t(count) * nv, std::size_t(index) * nv, int(nv), slice, qvel);
  }
  void scatter_state(const Model& model, const StateArrays& to, std::int64_t count, std::int64_t index,
                     const Slice& slice) const {
    scatter(qpos, std::size_t(count) * model.nq, std::size_t(index) * model.nq, model.nq, slice, to.qpos);
    const std::size_t nv = velocities(model);
    scatter(qvel, std::size_t(count) * nv, std::size_t(index) * nv, int(nv), slice, to.qvel);
  }

  // Takes one step in place and returns the environments that stayed finite. An environment with a non-finite state becomes NaN
  // throughout, so no later number looks like a result.
  MaskOf<Real> advance(const Model& model) {
    step(model, parameters, qpos, qvel, ctrl, false, workspace, qpos, qvel);
    MaskOf<Real> finite = is_finite(qpos[0]);
    for (int i = 1; i < model.nq; ++i) finite = finite & is_finite(qpos[i]);
    for (int i = 0; i < velocities(model); ++i) finite = finite & is_finite(qvel[i]);
    if (all(finite)) return finite;
    const Real nan(std::numeric_limits<double>::quiet_NaN());
    for (int i = 0; i < model.nq; ++i) qpos[i] = select(finite, qpos[i], nan);
    for (int i = 0; i < velocities(model); ++i) qvel[i] = select(finite, qvel[i], nan);
    return finite;
  }

  // The workspace for a loss's measurements, made when first needed.
  MeasuredProbes<Real>& measured_loss(const Model& model, const Loss& loss) {
    if (!measured_) measured_ = std::make_unique<MeasuredRunner>(model, &loss.probes);
    return **measured_;
  }

 private:
  using MeasuredRunner = LazyRunner<MeasuredProbes<Real>, const Probes*>;
  std::unique_ptr<MeasuredRunner> measured_;

  // Finds the controls of the period that begins at step t.
  void begin_period(const Model& model, const RolloutArrays& arrays, const Slice& slice, std::int64_t t,
                    OptionalController<Real>& controller, Doubles& sums) {
    load_inputs(model, arrays, arrays.shape, t, slice);
    const std::int64_t c = arrays.shape.period(t), periods = arrays.shape.periods();
    if (controller) {
      controller->add({model, arrays.shape, slice, t, qpos, qvel, parameters}, ctrl);
      controller->remember(ctrl);
      scatter(ctrl, std::size_t(periods) * model.nu, std::size_t(c) * model.nu, model.nu, slice,
              arrays.applied);
    }
    if (arrays.loss) add_ctrl_values(arrays, slice, c, sums);
  }
  // Records the solver's report for environments that have not diverged.
  void note_report(const SolverReport<Real>& report, const RolloutArrays& arrays, const Slice& slice,
                   std::int64_t t) const {
    for (int lane = 0; lane < slice.count; ++lane) {
      const int environment = slice.environment(lane);
      if (arrays.diverged_step[environment] >= 0) continue;
      double& largest = arrays.residual[environment];
      largest = std::max(largest, get_lane(report.violation, lane));
      std::int64_t& first = arrays.unsettled_step[environment];
      if (!get_lane(report.settled, lane) && first < 0) first = t;
    }
  }
  void note_divergence(const MaskOf<Real>& finite, const RolloutArrays& arrays, const Slice& slice,
                       std::int64_t t) const {
    if (all(finite)) return;
    for (int lane = 0; lane < slice.count; ++lane) {
      const int environment = slice.environment(lane);
      if (get_lane(finite, lane) || arrays.diverged_step[environment] >= 0) continue;
      arrays.status[environment] = std::int32_t(Status::diverged);
      arrays.diverged_step[environment] = t;
    }
  }

  // sums: [terms, lanes]
  void add_state_values(const RolloutArrays& arrays, const Slice& slice, std::int64_t t,
                        Doubles& sums) const {
    add_values(arrays, slice, t, arrays.shape.steps, Quantity::qpos, qpos, sums);
    add_values(arrays, slice, t, arrays.shape.steps, Quantity::qvel, qvel, sums);
  }
  void add_ctrl_values(const RolloutArrays& arrays, const Slice& slice, std::int64_t c, Doubles& sums) const {
    add_values(arrays, slice, c, arrays.shape.periods() - 1, Quantity::ctrl, ctrl, sums);
  }
  void add_measured_values(const Model& model, const RolloutArrays& arrays, const Slice& slice,
                           std::int64_t t, Doubles& sums) {
    if (arrays.loss->probes.size == 0) return;
    if (!measures_at(*arrays.loss, t, arrays.shape.steps)) return;
    MeasuredProbes<Real>& measured = measured_loss(model, *arrays.loss);
    measured.measure(model, parameters, double(t) * model.timestep, qpos, qvel, ctrl);
    add_values(arrays, slice, t, arrays.shape.steps, Quantity::measured, measured.values(), sums);
  }
  // Adds the values of the loss's terms of one quantity x.
  void add_values(const RolloutArrays& arrays, const Slice& slice, std::int64_t t, std::int64_t last,
                  Quantity quantity, const Real* x, Doubles& sums) const {
    double* sum = sums.data();
    for (const LossTerm& term : arrays.loss->terms) {
      const std::int64_t row = term.quantity == quantity ? term.row(t, last) : -1;
      for (int lane = 0; lane < slice.count; ++lane, ++sum)
        if (row >= 0)
          term.add_value([&](int i) { return get_lane(x[i], lane); }, slice.environment(lane), row, *sum);
    }
  }
  void write_values(const RolloutArrays& arrays, const Slice& slice, const Doubles& sums) const {
    for (int lane = 0; lane < slice.count; ++lane) {
      const int environment = slice.environment(lane);
      double value = 0.0;
      for (std::size_t i = 0; i < arrays.loss->terms.size(); ++i) value += sums[i * slice.count + lane];
      arrays.value[environment] = arrays.status[environment] == std::int32_t(Status::completed)
                                      ? value
                                      : std::numeric_limits<double>::quiet_NaN();
    }
  }
};

}  // namespace revolute
