// A controller for one pack at a time: its arrays gathered for each period, its gradients scattered.
#pragma once

#include <optional>

#include "ambient_cotangents.hpp"
#include "packs.hpp"
#include "revolute/controllers/controller.hpp"

namespace revolute {

// One period's row of an array [B, C, size] for each lane.
template <class Real>
void gather_period(const BroadcastInput& input, std::int64_t c, int size, const Slice& slice, Real* out) {
  if (input.environment_stride == 0) {
    for (int i = 0; i < size; ++i) out[i] = Real(input.at(0, c, i));
    return;
  }
  for (int lane = 0; lane < Width<Real>::value; ++lane)
    for (int i = 0; i < size; ++i) set_lane(out[i], lane, input.at(slice.environment(lane), c, i));
}

// One period's row of each of the inputs that are given.
template <class Real>
void gather_inputs(const Model& model, const ControllerInputs& inputs, std::int64_t c, const Slice& slice,
                   InputArrays<Real>& out) {
  for (int i = 0; i < input_count; ++i)
    if (inputs.inputs[i].values) gather_period(inputs.inputs[i], c, input_size(model, i), slice, out.of[i]);
}

// Where the cotangents of period c go in an array [K, B, rows, n], as periods come last to first. Those of an array that is
// the same in all periods are complete after the first period.
struct PeriodRow {
  bool complete;
  std::size_t rows, row;

  PeriodRow(const BroadcastInput& input, std::int64_t c, std::int64_t periods) {
    const bool constant = input.time_stride == 0 || periods == 1;
    complete = !constant || c == 0;
    rows = constant ? 1 : std::size_t(periods);
    row = constant ? 0 : std::size_t(c);
  }
};

template <class Real>
class ControllerRunner {
 public:
  // `groups` of cotangents are pulled back; 0 forward.
  ControllerRunner(const Model& model, const ControllerInputs* inputs, int groups, Arena& arena)
      : model_(model), inputs_(*inputs) {
    if (inputs_.kind == ControllerKind::feedback) feedback_.emplace(model, arena);
    if (inputs_.kind == ControllerKind::policy) mlp_.emplace(model, inputs_.mlp, arena);
    for (int g = 0; g < groups; ++g) bars_.push_back(cotangent(arena));
    error_bar_ = arena.take<Real>(error_size(model));
    ambient_ = arena.take<Real>(model.nq);
  }

  // Before the first period.
  void start(const Slice& slice) {
    if (!mlp_) return;
    std::fill_n(mlp_->previous_ctrl, model_.nu, Real(0));
    if (inputs_.previous_ctrl.values)
      gather_period(inputs_.previous_ctrl, 0, model_.nu, slice, mlp_->previous_ctrl);
  }
  // Adds the controller's part to the controls of period c, at the state of its start; periods come in turn.
  void add(const Slice& slice, std::int64_t c, const Real* qpos, const Real* qvel, Real* ctrl) {
    evaluate(slice, c, qpos, qvel);
    if (feedback_) add_feedback(model_, *feedback_, ctrl);
    if (mlp_) add_policy(model_, inputs_.mlp, *mlp_, ctrl);
  }
  // Keeps a period's controls for the observations of the next one.
  void remember(const Real* ctrl) {
    if (mlp_) std::copy_n(ctrl, model_.nu, mlp_->previous_ctrl);
  }

  // Before a backward pass: no cotangents yet.
  void clear(const ControllerBars& wanted) {
    for (Cotangent& bar : bars_) {
      bar.mlp.weights = wanted.weights ? bar.weights : nullptr;
      for (const auto& [array, size] : bar.arrays(*this)) std::fill_n(array, size, Real(0));
    }
  }
  // What the adjoint of period c needs; `applied` are the controls [B, C, nu].
  void evaluate_again(const Slice& slice, std::int64_t c, std::int64_t periods, const double* applied,
                      const Real* qpos, const Real* qvel) {
    if (mlp_ && c > 0)
      gather(applied, std::size_t(periods) * model_.nu, std::size_t(c - 1) * model_.nu, model_.nu, slice,
             mlp_->previous_ctrl);
    else
      start(slice);
    evaluate(slice, c, qpos, qvel);
  }
  // Adds what later periods' observations of this period's control contribute.
  void add_previous(int group, Real* ctrl_bar) {
    if (!mlp_) return;
    Real* bar = bars_[group].mlp.previous_ctrl;
    for (int a = 0; a < model_.nu; ++a) {
      ctrl_bar[a] += bar[a];
      bar[a] = Real(0);
    }
  }
  void adjoint(int group, const Real* qpos, const Real* qvel, const Real* ctrl_bar, Real* qpos_bar,
               Real* qvel_bar) {
    Cotangent& bar = bars_[group];
    if (feedback_)
      feedback_adjoint(model_, *feedback_, ctrl_bar, error_bar_, qpos_bar, qvel_bar, bar.feedback);
    if (mlp_) mlp_adjoint(model_, inputs_.mlp, qpos, qvel, *mlp_, ctrl_bar, qpos_bar, qvel_bar, bar.mlp);
  }
  // Writes the gradients by the arrays that have a row for each period after each, and the others after the first period,
  // which comes last. write(values, stride, offset, size, array) scatters one group's rows.
  template <class Write>
  void write(int group, std::int64_t c, std::int64_t periods, const ControllerBars& out, const Write& write) {
    Cotangent& bar = bars_[group];
    const auto row = [&](const BroadcastInput& input, double* array, Real* values, int size, int written_size,
                         const Real* written) {
      const PeriodRow place(input, c, periods);
      if (!array || !place.complete) return;
      write(written, place.rows * written_size, place.row * written_size, written_size, array);
      std::fill_n(values, size, Real(0));
    };
    if (feedback_) {
      const int gains = model_.nu * error_size(model_), speeds = velocities(model_);
      ambient_cotangents(model_, feedback_->qpos, bar.feedback.qpos, ambient_);
      row(inputs_.gain, out.gain, bar.feedback.gain, gains, gains, bar.feedback.gain);
      row(inputs_.qpos, out.qpos, bar.feedback.qpos, model_.nv, model_.nq, ambient_);
      row(inputs_.qvel, out.qvel, bar.feedback.qvel, speeds, speeds, bar.feedback.qvel);
    }
    if (!mlp_) return;
    const int goals = inputs_.mlp.goal_size;
    row(inputs_.goal, out.goal, bar.mlp.goal, goals, goals, bar.mlp.goal);
    if (c == 0 && out.weights) {
      const int count = int(inputs_.mlp.weight_count(model_));
      write(bar.weights, std::size_t(count), std::size_t(0), count, out.weights);
    }
  }

 private:
  struct Cotangent {
    FeedbackCotangent<Real> feedback;
    MlpCotangent<Real> mlp;
    Real* weights;

    std::vector<std::pair<Real*, std::size_t>> arrays(const ControllerRunner& of) const {
      const Model& model = of.model_;
      if (of.feedback_)
        return {{feedback.gain, model.nu * error_size(model)},
                {feedback.qpos, model.nv},
                {feedback.qvel, velocities(model)}};
      return {{mlp.goal, of.inputs_.mlp.goal_size},
              {mlp.previous_ctrl, model.nu},
              {weights, mlp.weights ? of.inputs_.mlp.weight_count(model) : 0}};
    }
  };

  Cotangent cotangent(Arena& arena) const {
    Cotangent out{};
    if (feedback_)
      out.feedback = {arena.take<Real>(model_.nu * error_size(model_)), arena.take<Real>(model_.nv),
                      arena.take<Real>(velocities(model_))};
    if (!mlp_) return out;
    out.weights = arena.take<Real>(inputs_.mlp.weight_count(model_));
    out.mlp = {nullptr, arena.take<Real>(inputs_.mlp.goal_size), arena.take<Real>(model_.nu)};
    return out;
  }

  void evaluate(const Slice& slice, std::int64_t c, const Real* qpos, const Real* qvel) {
    if (feedback_) {
      gather_period(inputs_.gain, c, model_.nu * error_size(model_), slice, feedback_->gain);
      gather_period(inputs_.qpos, c, model_.nq, slice, feedback_->qpos);
      gather_period(inputs_.qvel, c, velocities(model_), slice, feedback_->qvel);
      feedback_error(model_, qpos, qvel, *feedback_);
    }
    if (!mlp_) return;
    gather_period(inputs_.goal, c, inputs_.mlp.goal_size, slice, mlp_->goal);
    evaluate_mlp(model_, inputs_.mlp, qpos, qvel, *mlp_);
  }

  const Model& model_;
  const ControllerInputs& inputs_;
  std::optional<Feedback<Real>> feedback_;
  std::optional<Mlp<Real>> mlp_;
  std::vector<Cotangent> bars_;
  Real *error_bar_, *ambient_;
};

// The controller of a call, made with the memory that it needs; empty without one.
template <class Real>
class OptionalController {
 public:
  OptionalController(const Model& model, const ControllerInputs& inputs, int groups = 0) {
    if (inputs.kind != ControllerKind::none) runner_ = std::make_unique<Runner>(model, &inputs, groups);
  }
  explicit operator bool() const { return bool(runner_); }
  ControllerRunner<Real>* operator->() { return &**runner_; }

 private:
  using Runner = LazyRunner<ControllerRunner<Real>, const ControllerInputs*, int>;
  std::unique_ptr<Runner> runner_;
};

}  // namespace revolute
