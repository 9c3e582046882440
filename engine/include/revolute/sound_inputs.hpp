// Whether a call's numbers can be computed with; the caller says what is wrong with those that cannot.
#pragma once

#include <cstddef>

#include "revolute/model/model.hpp"

namespace revolute {

// Neither NaN nor infinite.
bool all_finite(const double* values, std::size_t size);

// Whether |q|^2 of every quaternion in qpos [rows, nq] lies between `least` and `most`, so that q has a direction.
bool quaternions_within(const Model& model, const double* qpos, std::size_t rows, double least, double most);

}  // namespace revolute
