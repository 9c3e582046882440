// A controller turns the array `ctrl` into the controls of the steps. Each row of `ctrl` is one period of `hold` steps; at
// its start,
//   u_c = ctrl_c                                  without a controller
//   u_c = ctrl_c + K_c (x (-) x_ref_c)            feedback.hpp
//   u_c = ctrl_c + scale network(observations)    mlp.hpp
// and u_c acts until the next period, as do the inputs of step_inputs.hpp. These controls are kept, so that steps are replayed
// without the controller; its adjoint needs the states at the starts of the periods, which the backward pass visits anyway.
#pragma once

#include <array>

#include "revolute/controllers/feedback.hpp"
#include "revolute/controllers/mlp.hpp"
#include "revolute/loss.hpp"
#include "revolute/model/step_inputs.hpp"

namespace revolute {

enum class ControllerKind : int { none, feedback, policy };

struct ControllerInputs {
  ControllerKind kind = ControllerKind::none;
  BroadcastInput gain{}, qpos{}, qvel{};  // of feedback, [B, C, nu (nv + nqvel)], [B, C, nq], [B, C, nqvel]
  MlpShape mlp;                           // of a policy
  BroadcastInput goal{};                  // [B, C, goal_size]
  BroadcastInput previous_ctrl{};         // [B, 1, nu] controls before the first period; null: zero
  std::array<BroadcastInput, input_count> inputs{};  // [B, C, size], with any kind; null: none
};

// Tangents of the arrays of a controller, with the same shapes; qpos by its tangent, [B, C, nv]. Null: zero.
struct ControllerTangents {
  BroadcastInput gain{}, qpos{}, qvel{}, goal{};
  std::array<BroadcastInput, input_count> inputs{};
  const double* weights = nullptr;
};

// Gradients by the arrays of a controller: [K, B, C, n], or [K, B, 1, n] if an array is the same in all periods;
// weights [K, B, n]. Null: not wanted.
struct ControllerBars {
  double *gain = nullptr, *qpos = nullptr, *qvel = nullptr, *weights = nullptr, *goal = nullptr;
  std::array<double*, input_count> inputs{};
};

}  // namespace revolute
