// Powers and logarithms, one environment at a time by the C library.
#pragma once

#include <cmath>

#include "revolute/scalar/scalar.hpp"

namespace revolute {

// x^p for x > 0
template <class Real>
REVOLUTE_HD inline Real general_power(const Real& x, const Real& p) {
  Real out(0);
  for (int lane = 0; lane < Width<Real>::value; ++lane)
    set_lane(out, lane, std::pow(get_lane(x, lane), get_lane(p, lane)));
  return out;
}
template <class Real>
REVOLUTE_HD inline Real natural_logarithm(const Real& x) {
  Real out(0);
  for (int lane = 0; lane < Width<Real>::value; ++lane) set_lane(out, lane, std::log(get_lane(x, lane)));
  return out;
}
// x^p for x > 0; p = 1 and 2 need no library.
template <class Real>
REVOLUTE_HD inline Real power(const Real& x, const Real& p) {
  const auto one = less_equal(p, Real(1)) & less_equal(Real(1), p);
  const auto two = less_equal(p, Real(2)) & less_equal(Real(2), p);
  const Real plain = select(two, x * x, x);
  if (!HasTangents<Real>::value && all(one | two)) return plain;
  return HasTangents<Real>::value ? general_power(x, p) : select(one | two, plain, general_power(x, p));
}

}  // namespace revolute
