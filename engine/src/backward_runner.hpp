// One thread's workspace for backward passes, one pack at a time: each step is replayed from its state, then pulled back for
// all cotangents.
//
// A pack holds several environments and pulls back their cotangents one after the other. Or it holds several cotangents of one
// environment, whose step is replayed once, the same in all lanes. Both give the same bits as one cotangent at a time.
#pragma once

#include <cmath>

#include "measured_probes.hpp"
#include "seats.hpp"
#include "state_replay.hpp"
#include "widened_model.hpp"

namespace revolute {

// Workspace of one thread for the backward pass of one pack: a replayed forward step, then a pullback for each group.
template <class Real>
struct BackwardRunner {
  ForwardRunner<Real> forward;
  StepAdjointWorkspace<Real> workspace;
  Real *qpos_next, *qvel_next, *loss_by_ctrl, *ambient, *tangent;
  std::vector<Real*> ctrl_bars;  // of the current period
  std::vector<StateCotangent<Real>> states;
  std::vector<Parameters<Real>> parameter_bars;
  std::vector<InputArrays<Real>> input_bars;  // of the current period

  BackwardRunner(const Model& model, int cotangents, Arena& arena)
      : forward(model, arena), workspace(model, arena) {
    qpos_next = arena.take<Real>(model.nq);
    qvel_next = arena.take<Real>(velocities(model));
    loss_by_ctrl = arena.take<Real>(model.nu);
    ambient = arena.take<Real>(model.nq);
    tangent = arena.take<Real>(velocities(model));
    for (int k = 0; k < cotangents; ++k) {
      states.emplace_back(model, arena);
      ctrl_bars.push_back(arena.take<Real>(model.nu));
      parameter_bars.emplace_back(model, arena);
      input_bars.emplace_back(model, arena);
      input_bars.back().attach_bars(parameter_bars.back());
    }
  }

  bool run(const ModelStorage& storage, const BackwardArrays& arrays, const Slice& slice,
           const CancelToken* cancel) {
    StatesInArrays<Real> kept(model_for(storage, arrays.parameters), arrays, slice);
    return run(storage, arrays, slice, cancel, kept);
  }

  template <class Kept>
  bool run(const ModelStorage& storage, const BackwardArrays& arrays, const Slice& slice,
           const CancelToken* cancel, Kept& kept) {
    const Model& model = model_for(storage, arrays.parameters);
    const std::int64_t steps = arrays.shape.steps;
    const Seats<Real> seats = {slice, arrays.cotangents};
    forward.load(storage, arrays.parameters, slice, measures(arrays.loss, arrays.controller));
    const SeenFromDistance<Real> seen(model, arrays.contact_distance, forward.workspace.soft);
    forward.take_inputs(model, arrays.controller);
    StateReplay<Real, Kept> replay(model, arrays, slice, kept, forward);
    std::int64_t given = arrays.bars.steps ? arrays.bars.count : steps + 1;  // cotangents not yet taken
    OptionalController<Real> controller(model, arrays.controller, seats.groups());
    if (controller) controller->clear(arrays.controller_bars);
    for (int g = 0; g < seats.groups(); ++g) {
      parameter_bars[g].clear(model);
      std::fill_n(ctrl_bars[g], model.nu, Real(0));
      input_bars[g].clear(model);
      std::fill_n(states[g].qpos, model.nv, Real(0));
      std::fill_n(states[g].qvel, velocities(model), Real(0));
    }
    if (arrays.clip > 0) clear_clipped(arrays, seats);
    if (arrays.loss)
      for (int lane = 0; lane < slice.count; ++lane) arrays.cotangents_finite[slice.environment(lane)] = 1;
    for (std::int64_t t = steps; t-- > 0;) {
      if (!replay.find(t, cancel)) return false;
      forward.load_inputs(model, arrays, arrays.shape, t, slice);
      step(model, forward.parameters, forward.qpos, forward.qvel, forward.ctrl, true, forward.workspace,
           qpos_next, qvel_next);
      add_state_cotangents(model, arrays, seats, t + 1, qpos_next, qvel_next, given);
      const bool measures = arrays.loss && arrays.loss->probes.size > 0;
      const bool starts_period = arrays.shape.starts_period(t);
      const std::int64_t c = arrays.shape.period(t), periods = arrays.shape.periods();
      if (controller && starts_period)
        controller->evaluate_again(period_start(model, arrays, slice, t), periods, arrays.ctrl);
      for (int g = 0; g < seats.groups(); ++g) {
        // checked for each group: a thousand cotangents make a step take a thousand times as long
        if (cancel && cancel->cancelled()) return false;
        if (measures && t == steps - 1) add_measured(model, arrays, seats, g, steps, qpos_next, qvel_next);
        if (arrays.clip > 0) clip_cotangents(model, arrays, seats, g);
        Real* ctrl_bar = ctrl_bars[g];
        step_adjoint(model, forward.parameters, forward.qpos, forward.qvel, forward.ctrl, forward.workspace,
                     workspace, states[g], ctrl_bar, parameter_bars[g]);
        if (measures) add_measured(model, arrays, seats, g, t, forward.qpos, forward.qvel);
        if (!starts_period) continue;
        if (controller) controller->add_previous(g, ctrl_bar);
        if (arrays.loss) add_loss_by_ctrl(model, arrays, seats, g, c);
        if (arrays.bars.ctrl) add_ctrl_cotangents(model, arrays, seats, g, c);
        if (arrays.ctrl_bar)
          scatter_group(ctrl_bar, periods * model.nu, c * model.nu, model.nu, arrays, seats, g,
                        arrays.ctrl_bar);
        if (controller) pull_controller(model, arrays, seats, g, t, controller);
        write_inputs(model, arrays, seats, g, c);
        std::fill_n(ctrl_bar, model.nu, Real(0));
      }
    }
    if (!replay.find(0, cancel)) return false;
    add_state_cotangents(model, arrays, seats, 0, forward.qpos, forward.qvel, given);
    if (steps == 0 && arrays.loss && arrays.loss->probes.size > 0)
      for (int g = 0; g < seats.groups(); ++g)
        add_measured(model, arrays, seats, g, 0, forward.qpos, forward.qvel);
    for (int g = 0; g < seats.groups(); ++g) write_results(storage, arrays, seats, g);
    for (int lane = 0; lane < slice.count; ++lane)
      arrays.replayed_steps[slice.environment(lane)] = replay.replayed() + steps;
    return true;
  }

  // Reads each lane's row of an array [K, B, stride].
  void gather_group(const double* array, std::size_t stride, std::size_t offset, int size,
                    const BackwardArrays& arrays, const Seats<Real>& seats, int group, Real* out) const {
    for (int lane = 0; lane < Width<Real>::value; ++lane) {
      const double* row = array + seats.row(group, lane, arrays.shape.batch) * stride + offset;
      for (int i = 0; i < size; ++i) set_lane(out[i], lane, row[i]);
    }
  }
  void scatter_group(const Real* values, std::size_t stride, std::size_t offset, int size,
                     const BackwardArrays& arrays, const Seats<Real>& seats, int group, double* array) const {
    for (int lane = 0; lane < seats.used(group); ++lane) {
      double* row = array + seats.row(group, lane, arrays.shape.batch) * stride + offset;
      for (int i = 0; i < size; ++i) row[i] = get_lane(values[i], lane);
    }
  }

  // Adds the caller's and the loss's cotangents of the state (qpos, qvel) of step t. `given` counts the caller's cotangents
  // that have not been added yet.
  void add_state_cotangents(const Model& model, const BackwardArrays& arrays, const Seats<Real>& seats,
                            std::int64_t t, const Real* qpos, const Real* qvel, std::int64_t& given) {
    const StateCotangents& bars = arrays.bars;
    const std::int64_t rows = bars.steps ? bars.count : arrays.shape.steps + 1;
    const bool has_bar = given > 0 && (bars.steps ? bars.steps[given - 1] : given - 1) == t;
    if (has_bar) --given;
    if (!has_bar && !arrays.loss) return;
    const int nv = velocities(model);
    for (int g = 0; g < seats.groups(); ++g) {
      std::fill_n(ambient, model.nq, Real(0));
      std::fill_n(tangent, velocities(model), Real(0));
      if (has_bar && bars.qpos)
        gather_group(bars.qpos, rows * model.nq, given * model.nq, model.nq, arrays, seats, g, ambient);
      if (has_bar && bars.qvel) gather_group(bars.qvel, rows * nv, given * nv, nv, arrays, seats, g, tangent);
      if (arrays.loss) {
        add_loss(arrays, seats, g, Quantity::qpos, t, arrays.shape.steps, qpos, model.nq, ambient);
        add_loss(arrays, seats, g, Quantity::qvel, t, arrays.shape.steps, qvel, nv, tangent);
      }
      for (int i = 0; i < nv; ++i) states[g].qvel[i] += tangent[i];
      add_projected(model, qpos, t == 0, states[g].qpos);
    }
  }
  // Adds d loss / d ctrl at fixed states, summed over the terms first, to ctrl_bar.
  void add_loss_by_ctrl(const Model& model, const BackwardArrays& arrays, const Seats<Real>& seats, int group,
                        std::int64_t c) {
    std::fill_n(loss_by_ctrl, model.nu, Real(0));
    add_loss(arrays, seats, group, Quantity::ctrl, c, arrays.shape.periods() - 1, forward.ctrl, model.nu,
             loss_by_ctrl);
    for (int i = 0; i < model.nu; ++i) ctrl_bars[group][i] += loss_by_ctrl[i];
  }
  // Adds the caller's cotangents of the controls of period c.
  void add_ctrl_cotangents(const Model& model, const BackwardArrays& arrays, const Seats<Real>& seats,
                           int group, std::int64_t c) {
    gather_group(arrays.bars.ctrl, arrays.shape.periods() * model.nu, c * model.nu, model.nu, arrays, seats,
                 group, loss_by_ctrl);
    for (int i = 0; i < model.nu; ++i) ctrl_bars[group][i] += loss_by_ctrl[i];
  }
  void write_inputs(const Model& model, const BackwardArrays& arrays, const Seats<Real>& seats, int group,
                    std::int64_t c) {
    for (int i = 0; i < input_count; ++i) {
      if (!arrays.controller_bars.inputs[i]) continue;
      const PeriodRow place(arrays.controller.inputs[i], c, arrays.shape.periods());
      if (!place.complete) continue;
      const int size = input_size(model, i);
      scatter_group(input_bars[group].of[i], place.rows * size, place.row * size, size, arrays, seats, group,
                    arrays.controller_bars.inputs[i]);
      std::fill_n(input_bars[group].of[i], size, Real(0));
    }
  }
  PeriodStart<Real> period_start(const Model& model, const BackwardArrays& arrays, const Slice& slice,
                                 std::int64_t t) const {
    return {model, arrays.shape, slice, t, forward.qpos, forward.qvel, forward.parameters};
  }
  // Pulls back the controls' cotangents of the period from step t; adds to those of the controller's arrays and the state.
  void pull_controller(const Model& model, const BackwardArrays& arrays, const Seats<Real>& seats, int group,
                       std::int64_t t, OptionalController<Real>& controller) {
    StateCotangent<Real>& state = states[group];
    controller->adjoint(group, period_start(model, arrays, seats.slice, t), ctrl_bars[group], state.qpos,
                        state.qvel, parameter_bars[group]);
    controller->write(
        group, arrays.shape.period(t), arrays.shape.periods(), arrays.controller_bars,
        [&](const Real* values, std::size_t stride, std::size_t offset, int size, double* array) {
          scatter_group(values, stride, offset, size, arrays, seats, group, array);
        });
  }

  void clear_clipped(const BackwardArrays& arrays, const Seats<Real>& seats) const {
    for (int g = 0; g < seats.groups(); ++g)
      for (int lane = 0; lane < seats.used(g); ++lane)
        arrays.clipped[seats.row(g, lane, arrays.shape.batch)] = 0;
  }
  // Scales each lane's cotangent of the state down to norm `clip`, and counts the longer cotangents. With the largest number m,
  // the norm is m times that of x / m, so it does not overflow.
  void clip_cotangents(const Model& model, const BackwardArrays& arrays, const Seats<Real>& seats,
                       int group) {
    StateCotangent<Real>& state = states[group];
    Real largest(0), sum(0);
    const std::pair<Real*, int> parts[] = {{state.qpos, model.nv}, {state.qvel, velocities(model)}};
    for (const auto& [x, size] : parts)
      for (int i = 0; i < size; ++i) largest = maximum(abs(x[i]), largest);
    const Real unit = select(less(Real(0), largest), largest, Real(1));
    for (const auto& [x, size] : parts)
      for (int i = 0; i < size; ++i) sum += (x[i] / unit) * (x[i] / unit);
    const Real norm = unit * sqrt(sum), bound(arrays.clip);
    const MaskOf<Real> longer = less(bound, norm);
    if (!any(longer)) return;
    const Real scale = bound / norm;
    for (const auto& [x, size] : parts)
      for (int i = 0; i < size; ++i) x[i] = select(longer, scale * x[i], x[i]);
    for (int lane = 0; lane < seats.used(group); ++lane)
      if (get_lane(longer, lane)) ++arrays.clipped[seats.row(group, lane, arrays.shape.batch)];
  }
  // Adds the cotangents of numbers measured at time t: to those of the current state, the control and parameters.
  void add_measured(const Model& model, const BackwardArrays& arrays, const Seats<Real>& seats, int group,
                    std::int64_t t, const Real* qpos, const Real* qvel) {
    if (!measures_at(*arrays.loss, t, arrays.shape.steps)) return;
    MeasuredProbes<Real>& measured = forward.measured_loss(model, *arrays.loss);
    measured.measure(model, forward.parameters, double(t) * model.timestep, qpos, qvel, forward.ctrl);
    add_loss(arrays, seats, group, Quantity::measured, t, arrays.shape.steps, measured.values(),
             arrays.loss->probes.size, measured.cleared_bar());
    measured.pull_back(model, forward.parameters, qpos, qvel, forward.ctrl,
                       {states[group].qpos, states[group].qvel, ctrl_bars[group], &parameter_bars[group]});
  }
  // Adds the cotangents of the loss's terms of one quantity, x at time t; adds nothing where the rollout diverged.
  void add_loss(const BackwardArrays& arrays, const Seats<Real>& seats, int group, Quantity quantity,
                std::int64_t t, std::int64_t last, const Real* x, int size, Real* bar) const {
    for (const LossTerm& term : arrays.loss->terms) {
      const std::int64_t row = term.quantity == quantity ? term.row(t, last) : -1;
      if (row < 0) continue;
      for (int lane = 0; lane < seats.used(group); ++lane) {
        const int environment = seats.slice.environment(lane);
        if (arrays.status[environment] != std::int32_t(Status::completed)) continue;
        term.add_cotangents(
            [&](int i) { return get_lane(x[i], lane); }, environment, row,
            [&](int i, double value) { set_lane(bar[i], lane, get_lane(bar[i], lane) + value); });
      }
    }
    for (int lane = 0; lane < seats.used(group); ++lane)
      for (int i = 0; i < size; ++i)
        if (!std::isfinite(get_lane(bar[i], lane)))
          arrays.cotangents_finite[seats.slice.environment(lane)] = 0;
  }

  // Adds the cotangent in `ambient`, projected on the tangent space at qpos. The states of a rollout have unit quaternions, but
  // the start keeps the given length s: there a tangent moves the quaternion s times as far.
  void add_projected(const Model& model, const Real* qpos, bool is_start, Real* out) const {
    for (int j = 0; j < model.njnt; ++j) {
      const Joint& joint = model.joints[j];
      const int linear = linear_coordinates(joint.type);
      for (int i = 0; i < linear; ++i) out[joint.dof + i] += ambient[joint.qpos + i];
      if (joint.type > JointType::ball) continue;
      const Real* bar = ambient + joint.qpos + linear;
      const Real* q = qpos + joint.qpos + linear;
      const Vector3<Real> pulled =
          tangent_cotangent(load_quaternion(q), Quaternion<Real>{bar[0], bar[1], bar[2], bar[3]});
      add3(out + joint.dof + linear, is_start ? quaternion_length(q) * pulled : pulled);
    }
  }

  void write_results(const ModelStorage& storage, const BackwardArrays& arrays, const Seats<Real>& seats,
                     int group) {
    const Model& model = model_for(storage, arrays.parameters);
    if (arrays.qvel0_bar)
      scatter_group(states[group].qvel, velocities(model), 0, velocities(model), arrays, seats, group,
                    arrays.qvel0_bar);
    if (arrays.qpos0_bar) {
      ambient_cotangents(model, forward.qpos, states[group].qpos, ambient);
      scatter_group(ambient, model.nq, 0, model.nq, arrays, seats, group, arrays.qpos0_bar);
    }
    write_parameter_bars(storage, arrays, seats, group, model, parameter_bars[group]);
  }
};

}  // namespace revolute
