// Ceres Jets: forward mode. All partial derivatives of one step travel with each number; the steps' Jacobians are chained.
#pragma once

#include <ceres/jet.h>

#include "foreign.hpp"

namespace revolute {

template <int N>
using Jet = ceres::Jet<double, N>;

template <int N>
struct Reading<Jet<N>> {
  static double value(const Jet<N>& a) { return a.a; }
};

}  // namespace revolute
