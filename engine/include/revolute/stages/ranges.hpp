// Numbers kept within a range of the model.
#pragma once

#include "revolute/model/model.hpp"

namespace revolute {

// Clamps a value. `cut` is 0 if the range cut the value off, else 1, also exactly on the bound.
template <class Real, class Bound>
REVOLUTE_HD inline Real within_range(bool limited, const Bound* range, Real value, Real& cut) {
  cut = Real(1);
  if (!limited) return value;
  const Real lower(range[0]), upper(range[1]);
  cut = select(less(value, lower) | less(upper, value), Real(0), Real(1));
  return clamp(value, lower, upper);
}

}  // namespace revolute
