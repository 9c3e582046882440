// Inputs of a step besides state, control and parameters, by MuJoCo's names (mjData). They change with time.
#pragma once

#include <array>

#include "revolute/model/model.hpp"

namespace revolute {

// X(name, number of values in model m)
//   qfrc_applied  generalized forces
//   xfrc_applied  a force and a torque on each body in world axes, at its mass centre
//   mocap_pos, mocap_quat  the pose of each mocap body in the world; the quaternion may have any length
#define REVOLUTE_INPUTS(X)     \
  X(qfrc_applied, m.nv)        \
  X(xfrc_applied, 6 * m.nbody) \
  X(mocap_pos, 3 * m.nmocap)   \
  X(mocap_quat, 4 * m.nmocap)

#define REVOLUTE_INPUT_KIND(name, size) name,
enum class Input : int { REVOLUTE_INPUTS(REVOLUTE_INPUT_KIND) };
#undef REVOLUTE_INPUT_KIND
#define REVOLUTE_INPUT_NAME(name, size) #name,
constexpr const char* input_names[] = {REVOLUTE_INPUTS(REVOLUTE_INPUT_NAME)};
#undef REVOLUTE_INPUT_NAME
constexpr int input_count = int(sizeof input_names / sizeof *input_names);

REVOLUTE_HD inline int input_size(const Model& m, int input) {
#define REVOLUTE_INPUT_SIZE(name, size) size,
  const int sizes[] = {REVOLUTE_INPUTS(REVOLUTE_INPUT_SIZE)};
#undef REVOLUTE_INPUT_SIZE
  return sizes[input];
}
// The model's values for an input that is not given; null: zeros.
REVOLUTE_HD inline const double* input_default(const Model& model, int input) {
  if (Input(input) == Input::mocap_pos) return model.mocap_pos;
  return Input(input) == Input::mocap_quat ? model.mocap_quat : nullptr;
}

// Values of each input, one row per state. Null: none, and for mocap bodies the poses of the file.
using InputRows = std::array<const double*, input_count>;

}  // namespace revolute
