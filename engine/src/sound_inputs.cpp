#include "revolute/sound_inputs.hpp"

#include <cstring>

#include "packs.hpp"

namespace revolute {

bool all_finite(const double* values, std::size_t size) {
  Pack worst(0);  // 0, or NaN once a number is not finite
  std::size_t i = 0;
  for (; i + lanes <= size; i += lanes) {
    Pack pack;
    std::memcpy(&pack, values + i, sizeof pack);
    worst += pack - pack;
  }
  for (; i < size; ++i) worst += Pack(values[i] - values[i]);
  return all(is_finite(worst));
}

bool quaternions_within(const Model& model, const double* qpos, std::size_t rows, double least, double most) {
  for (int j = 0; j < model.njnt; ++j) {
    const Joint& joint = model.joints[j];
    if (joint.type > JointType::ball) continue;
    const double* q = qpos + joint.qpos + linear_coordinates(joint.type);
    for (std::size_t row = 0; row < rows; ++row, q += model.nq) {
      const double square = q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3];
      if (!(least < square && square < most)) return false;
    }
  }
  return true;
}

}  // namespace revolute
