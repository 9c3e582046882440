// Checks whether all numbers of a call are valid. The caller reports which one is wrong.
#pragma once

#include <cstddef>

#include "revolute/model/model.hpp"

namespace revolute {

// Whether no value is NaN or infinite.
bool all_finite(const double* values, std::size_t size);

// Whether |q|^2 of every quaternion in qpos [rows, nq] lies between `least` and `most`, so that q has a direction.
bool quaternions_within(const Model& model, const double* qpos, std::size_t rows, double least, double most);

}  // namespace revolute
