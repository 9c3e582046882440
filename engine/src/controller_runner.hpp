// A controller for one pack at a time: its arrays gathered for each period, its gradients scattered.
#pragma once

#include <optional>

#include "ambient_cotangents.hpp"
#include "measured_probes.hpp"
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

// One period's row of each given input.
template <class Real>
void gather_inputs(const Model& model, const ControllerInputs& inputs, std::int64_t c, const Slice& slice,
                   InputArrays<Real>& out) {
  for (int i = 0; i < input_count; ++i)
    if (inputs.inputs[i].values) gather_period(inputs.inputs[i], c, input_size(model, i), slice, out.of[i]);
}
// Tangents of one period's row for one environment; does nothing without values.
template <class Real>
void seed_period(const BroadcastInput& tangents, std::int64_t c, int size, const Slice& slice, Real* out) {
  for (int i = 0; tangents.values && i < size; ++i) out[i].tangent[0] = tangents.at(slice.first, c, i);
}
// A tangent d of a configuration: dq = q (0, d)/2 for a quaternion.
template <class Real, class Tangent>
void seed_configuration(const Model& model, const Tangent& d, Real* qpos) {
  for (int j = 0; j < model.njnt; ++j) {
    const Joint& joint = model.joints[j];
    const int linear = linear_coordinates(joint.type);
    for (int i = 0; i < linear; ++i) qpos[joint.qpos + i].tangent[0] = d(joint.dof + i);
    if (joint.type > JointType::ball) continue;
    Real* q = qpos + joint.qpos + linear;
    const int turn = joint.dof + linear;
    const Quaternion<double> value = {q[0].value, q[1].value, q[2].value, q[3].value};
    const Quaternion<double> rate =
        value * Quaternion<double>{0.0, 0.5 * d(turn), 0.5 * d(turn + 1), 0.5 * d(turn + 2)};
    const double rates[4] = {rate.w, rate.x, rate.y, rate.z};
    for (int i = 0; i < 4; ++i) q[i].tangent[0] = rates[i];
  }
}

// The row of an array [K, B, rows, n] for the cotangents of period c. Periods come last to first. Cotangents of an array that
// is the same in all periods are complete after the first period.
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

// The controller's view of the period that begins at step t: the state there, and the forces applied in this period.
template <class Real>
struct PeriodStart {
  const Slice& slice;
  std::int64_t c;
  double time;  // s
  const Real *qpos, *qvel;
  const Parameters<Real>& parameters;

  PeriodStart(const Model& model, const BatchShape& shape, const Slice& slice, std::int64_t t,
              const Real* qpos, const Real* qvel, const Parameters<Real>& parameters)
      : slice(slice),
        c(shape.period(t)),
        time(double(t) * model.timestep),
        qpos(qpos),
        qvel(qvel),
        parameters(parameters) {}
};

template <class Real>
class ControllerRunner {
 public:
  // `groups` is the number of groups of cotangents to pull back; 0 for a forward pass.
  ControllerRunner(const Model& model, const ControllerInputs* inputs, int groups, Arena& arena)
      : model_(model), inputs_(*inputs) {
    if (inputs_.kind == ControllerKind::feedback) feedback_.emplace(model, arena);
    if (inputs_.kind == ControllerKind::policy) mlp_.emplace(model, inputs_.mlp, arena);
    if (inputs_.mlp.probes.size > 0) measured_.emplace(model, &inputs_.mlp.probes, arena);
    for (int g = 0; g < groups; ++g) bars_.push_back(cotangent(arena));
    error_bar_ = arena.take<Real>(error_size(model));
    ambient_ = arena.take<Real>(model.nq);
  }

  // Sets the tangents of the arrays; only for a Real with tangents.
  void take_tangents(const ControllerTangents& tangents) {
    tangents_ = &tangents;
    if (!mlp_) return;
    const std::size_t count = inputs_.mlp.weight_count(model_);
    weights_.assign(inputs_.mlp.weights, inputs_.mlp.weights + count);
    for (std::size_t i = 0; tangents.weights && i < count; ++i) weights_[i].tangent[0] = tangents.weights[i];
  }
  // Must be called before the first period.
  void start(const Slice& slice) {
    if (!mlp_) return;
    std::fill_n(mlp_->previous_ctrl, model_.nu, Real(0));
    if (inputs_.previous_ctrl.values)
      gather_period(inputs_.previous_ctrl, 0, model_.nu, slice, mlp_->previous_ctrl);
  }
  // Adds the controller's part to the controls of a period; periods must come in order.
  void add(const PeriodStart<Real>& at, Real* ctrl) {
    evaluate(at);
    if (feedback_) add_feedback(model_, *feedback_, ctrl);
    if (mlp_) add_policy(model_, inputs_.mlp, *mlp_, ctrl);
  }
  // Keeps a period's controls for the observations of the next one.
  void remember(const Real* ctrl) {
    if (mlp_) std::copy_n(ctrl, model_.nu, mlp_->previous_ctrl);
  }

  // Clears the cotangents before a backward pass.
  void clear(const ControllerBars& wanted) {
    for (Cotangent& bar : bars_) {
      bar.weights_wanted = wanted.weights != nullptr;
      for (const auto& [array, size] : bar.arrays(*this)) std::fill_n(array, size, Real(0));
    }
  }
  // Computes the data for the adjoint of a period; `applied` are the controls [B, C, nu].
  void evaluate_again(const PeriodStart<Real>& at, std::int64_t periods, const double* applied) {
    if (mlp_ && at.c > 0)
      gather(applied, std::size_t(periods) * model_.nu, std::size_t(at.c - 1) * model_.nu, model_.nu,
             at.slice, mlp_->previous_ctrl);
    else
      start(at.slice);
    evaluate(at);
  }
  // Adds the cotangents that later periods' observations give to this period's control.
  void add_previous(int group, Real* ctrl_bar) {
    if (!mlp_) return;
    Real* bar = bars_[group].previous_ctrl;
    for (int a = 0; a < model_.nu; ++a) {
      ctrl_bar[a] += bar[a];
      bar[a] = Real(0);
    }
  }
  // Adds to the cotangents of the state at the start of a period, and of the parameters that its observations depend on.
  void adjoint(int group, const PeriodStart<Real>& at, const Real* ctrl_bar, Real* qpos_bar, Real* qvel_bar,
               Parameters<Real>& parameters_bar) {
    Cotangent& bar = bars_[group];
    if (feedback_)
      feedback_adjoint(model_, *feedback_, ctrl_bar, error_bar_, qpos_bar, qvel_bar, bar.feedback);
    if (!mlp_) return;
    Real* const measured_bar = measured_ ? measured_->cleared_bar() : nullptr;
    mlp_adjoint(model_, inputs_.mlp, observable(at), *mlp_, ctrl_bar,
                bar.weights_wanted ? bar.weights : nullptr,
                {qpos_bar, qvel_bar, bar.previous_ctrl, bar.goal, measured_bar});
    if (measured_)
      measured_->pull_back(model_, at.parameters, at.qpos, at.qvel, mlp_->previous_ctrl,
                           {qpos_bar, qvel_bar, bar.previous_ctrl, &parameters_bar});
  }
  // Writes the gradients after each period for arrays with a row per period, and after the first period, which comes last, for
  // the others. write(values, stride, offset, size, array) scatters one group's rows.
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
    row(inputs_.goal, out.goal, bar.goal, goals, goals, bar.goal);
    if (c == 0 && out.weights) {
      const int count = int(inputs_.mlp.weight_count(model_));
      write(bar.weights, std::size_t(count), std::size_t(0), count, out.weights);
    }
  }

 private:
  struct Cotangent {
    FeedbackCotangent<Real> feedback;
    Real *weights, *goal, *previous_ctrl;
    bool weights_wanted;

    std::vector<std::pair<Real*, std::size_t>> arrays(const ControllerRunner& of) const {
      const Model& model = of.model_;
      if (of.feedback_)
        return {{feedback.gain, model.nu * error_size(model)},
                {feedback.qpos, model.nv},
                {feedback.qvel, velocities(model)}};
      return {{goal, of.inputs_.mlp.goal_size},
              {previous_ctrl, model.nu},
              {weights, weights_wanted ? of.inputs_.mlp.weight_count(model) : 0}};
    }
  };

  Cotangent cotangent(Arena& arena) const {
    Cotangent out{};
    if (feedback_)
      out.feedback = {arena.take<Real>(model_.nu * error_size(model_)), arena.take<Real>(model_.nv),
                      arena.take<Real>(velocities(model_))};
    if (!mlp_) return out;
    out.weights = arena.take<Real>(inputs_.mlp.weight_count(model_));
    out.goal = arena.take<Real>(inputs_.mlp.goal_size);
    out.previous_ctrl = arena.take<Real>(model_.nu);
    return out;
  }

  void evaluate(const PeriodStart<Real>& at) {
    if (feedback_) {
      gather_period(inputs_.gain, at.c, model_.nu * error_size(model_), at.slice, feedback_->gain);
      gather_period(inputs_.qpos, at.c, model_.nq, at.slice, feedback_->qpos);
      gather_period(inputs_.qvel, at.c, velocities(model_), at.slice, feedback_->qvel);
      if constexpr (HasTangents<Real>::value) seed_feedback(at);
      feedback_error(model_, at.qpos, at.qvel, *feedback_);
    }
    if (!mlp_) return;
    gather_period(inputs_.goal, at.c, inputs_.mlp.goal_size, at.slice, mlp_->goal);
    if constexpr (HasTangents<Real>::value)
      seed_period(tangents_->goal, at.c, inputs_.mlp.goal_size, at.slice, mlp_->goal);
    if (measured_) measured_->measure(model_, at.parameters, at.time, at.qpos, at.qvel, mlp_->previous_ctrl);
    if constexpr (HasTangents<Real>::value)
      evaluate_mlp(model_, inputs_.mlp, weights_.data(), observable(at), *mlp_);
    else
      evaluate_mlp(model_, inputs_.mlp, inputs_.mlp.weights, observable(at), *mlp_);
  }
  void seed_feedback(const PeriodStart<Real>& at) {
    seed_period(tangents_->gain, at.c, model_.nu * error_size(model_), at.slice, feedback_->gain);
    seed_period(tangents_->qvel, at.c, velocities(model_), at.slice, feedback_->qvel);
    if (tangents_->qpos.values)
      seed_configuration(
          model_, [&](int i) { return tangents_->qpos.at(at.slice.first, at.c, i); }, feedback_->qpos);
  }
  Observable<Real> observable(const PeriodStart<Real>& at) const {
    return {at.qpos, at.qvel, mlp_->previous_ctrl, mlp_->goal, measured_ ? measured_->values() : nullptr};
  }

  const Model& model_;
  const ControllerInputs& inputs_;
  std::optional<Feedback<Real>> feedback_;
  std::optional<Mlp<Real>> mlp_;
  std::optional<MeasuredProbes<Real>> measured_;
  std::vector<Cotangent> bars_;
  const ControllerTangents* tangents_ = nullptr;
  std::vector<Real> weights_;  // with tangents
  Real *error_bar_, *ambient_;
};

// The controller of a call, made with its memory; empty if the call has no controller.
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
