// Rollouts of many environments, and the backward pass over them: the engine's public C++ interface.
//
// Arrays are C-order [batch, time, dof]. Environments run in packs of `lanes`, and packs run on several threads; neither
// changes a bit of the result. When an environment's state is not finite, only this environment stops: its status is
// `diverged`, its step index is kept and its later states are NaN.
#pragma once

#include <atomic>
#include <cstdint>

#include "revolute/checkpoints.hpp"
#include "revolute/controllers/controller.hpp"
#include "revolute/loss.hpp"
#include "revolute/model/model_storage.hpp"

namespace revolute {

enum class Status : std::int32_t { completed = 0, diverged = 1 };

// Any thread may set it; it is polled before every step.
class CancelToken {
 public:
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> cancelled_{false};
};

// Values of each parameter, [rows, size]: one row for all environments, or one per environment. Null: the model's values.
struct ParameterRows {
  const double* values = nullptr;
  int rows = 0;
};
using ParameterInputs = std::array<ParameterRows, parameter_count>;

// Cotangents of the states of some steps, and of all controls.
struct StateCotangents {
  const double *qpos = nullptr, *qvel = nullptr;  // [K, B, count, nq], [K, B, count, nv]
  const double* ctrl = nullptr;                   // [K, B, C, nu] of the controls as applied
  const std::int64_t* steps = nullptr;            // [count] ascending; null: all steps 0 .. T
  std::int64_t count = 0;
};

struct BatchShape {
  int batch;
  std::int64_t steps;     // T
  std::int64_t hold = 1;  // steps per control; T is a multiple of it

  std::int64_t periods() const { return steps / hold; }  // C
  std::int64_t period(std::int64_t t) const { return hold == 1 ? t : t / hold; }
  bool starts_period(std::int64_t t) const { return hold == 1 || t % hold == 0; }
};

// States of some steps, [B, count, nq] and [B, count, nv].
struct StateArrays {
  double *qpos = nullptr, *qvel = nullptr;
};
struct ConstStateArrays {
  const double *qpos = nullptr, *qvel = nullptr;
};

struct RolloutArrays {
  BatchShape shape;
  const double *qpos0, *qvel0, *ctrl;  // [B, nq], [B, nv], [B, C, nu]
  ParameterInputs parameters;
  CheckpointPolicy policy;
  StateArrays kept;             // at KeptSteps(policy, T); null: not wanted
  StateArrays states;           // at all steps 0 .. T; null: not wanted
  StateArrays last;             // at step T
  std::int32_t* status;         // [B]
  std::int64_t* diverged_step;  // [B], -1 where completed
  const Loss* loss = nullptr;   // null: not wanted
  double* value = nullptr;      // [B] the loss of each environment
  bool held = false;            // ctrl is [B, nu], the same in every step; only the last states are wanted
  // [B] first step whose constraints the solver did not settle, or -1; null: not wanted
  std::int64_t* unsettled_step = nullptr;
  double* residual = nullptr;  // [B] largest violation that the solver left; wanted with unsettled_step
  ControllerInputs controller{};
  double* applied = nullptr;  // [B, C, nu] controls including the controller's part; only with a controller
};

// The backward pass of K cotangents at once. Results are overwritten; a null result is not wanted.
struct BackwardArrays {
  BatchShape shape;
  int cotangents;
  CheckpointPolicy policy;
  ConstStateArrays kept;  // from a rollout with this policy
  const double* ctrl;     // [B, C, nu] as applied
  ParameterInputs parameters;
  const std::int32_t* status;                 // [B] of the rollout; diverged environments have no cotangents
  double *qpos0_bar, *qvel0_bar;              // [K, B, nq], [K, B, nv]
  double* ctrl_bar;                           // [K, B, C, nu], by `ctrl` before the controller adds its part
  std::int64_t* replayed_steps;               // [B] number of forward steps that were repeated
  StateCotangents bars;                       // null arrays are zero
  const Loss* loss = nullptr;                 // a further source of cotangents of states and controls
  std::uint8_t* cotangents_finite = nullptr;  // [B] 1: cotangents of `loss` are finite; only with `loss`
  std::array<double*, parameter_count> parameter_bars{};  // [K, B, size]
  double contact_distance = 0.0;  // mujoco: how far contact_from_distance.hpp acts, m; 0: exact
  ControllerInputs controller{};  // of the rollout
  ControllerBars controller_bars{};
  // Largest norm of a state's cotangent. A larger one is scaled down before it is pulled back through a step; 0: no limit.
  double clip = 0.0;
  std::int64_t* clipped = nullptr;  // [K, B] number of cotangents scaled down; needed only with `clip`
};

// A rollout with a loss, and the backward pass of this loss's one cotangent. Both have the same shape, policy, controls,
// parameters, loss and status. The call holds the kept states itself: both `kept` are null.
struct ValueAndGradientArrays {
  RolloutArrays rollout;
  BackwardArrays backward;
};

// The forward derivative along one direction per environment, at the states of a rollout. State tangents use the tangent of
// the configuration (nv).
struct JvpArrays {
  BatchShape shape;
  const double *qpos, *qvel, *ctrl;  // the rollout; ctrl as applied
  ParameterInputs parameters;
  const double *qpos0_tan, *qvel0_tan, *ctrl_tan;  // [B, nv], [B, nv], [B, C, nu]; null is zero
  ParameterInputs parameter_tangents;              // rows as in `parameters`, or one row; null is zero
  double *qpos_tan, *qvel_tan;                     // [B, T + 1, nv] each
  ControllerInputs controller{};                   // of the rollout
  ControllerTangents controller_tangents{};
  double* applied_tan = nullptr;  // [B, C, nu] of the controls with the controller's part; null: not wanted
};

// The Jacobian of one step, in the tangent convention of MuJoCo's mjd_transitionFD: state (dq, v), 2 nv coordinates.
struct JacobianArrays {
  int batch;
  const double *qpos, *qvel, *ctrl;  // [B, nq], [B, nv], [B, nu]
  ParameterInputs parameters;
  double *A, *B;         // [batch, 2 nv, 2 nv], [batch, 2 nv, nu]; all NaN if one of them is not finite
  std::uint8_t* finite;  // [batch] whether both A and B are finite
  InputRows inputs{};    // [B, size]
};

// Measurements at states, `count` of each environment, and the pullback of their cotangents. Results are overwritten; a null
// result is not wanted.
struct MeasureArrays {
  BatchShape shape;  // .steps: count
  const Probes* probes;
  const double *qpos, *qvel,
      *ctrl;           // [B, count, nq], [B, count, nv + na], [B, count, nu] (null: not needed)
  const double* time;  // [count] time of the clock, in s
  ParameterInputs parameters;
  InputRows inputs{};        // [B, count, size]
  double* values = nullptr;  // [B, count, size]
  int cotangents = 0;
  const double* values_bar = nullptr;                     // [K, B, count, size]
  double* tangent_bar = nullptr;                          // [K, B, count, nv] by the tangent of qpos
  double* qpos_bar = nullptr;                             // [K, B, count, nq]
  double *qvel_bar = nullptr, *ctrl_bar = nullptr;        // [K, B, count, nv], [K, B, count, nu]
  std::array<double*, parameter_count> parameter_bars{};  // [K, B, size], summed over the states
  std::array<double*, input_count> input_bars{};          // [K, B, count, size]
};

struct Execution {
  int threads = 1;
  const CancelToken* cancel = nullptr;
};

// All these functions return false when they were cancelled; the results are then incomplete.
bool rollout(const ModelStorage& storage, const RolloutArrays& arrays, const Execution& execution);
bool backward(const ModelStorage& storage, const BackwardArrays& arrays, const Execution& execution);
bool value_and_gradient(const ModelStorage& storage, const ValueAndGradientArrays& arrays,
                        const Execution& execution);
bool jvp(const ModelStorage& storage, const JvpArrays& arrays, const Execution& execution);
bool jacobian(const ModelStorage& storage, const JacobianArrays& arrays, const Execution& execution);
bool measure(const ModelStorage& storage, const MeasureArrays& arrays, const Execution& execution);

}  // namespace revolute
