// exp and tanh, one formula for every width, so that a lane's bits do not depend on its neighbours.
//
// exp: x = n ln 2 + r with |r| <= ln 2 / 2, and fdlibm's minimax kernel for exp(r) (public domain constants, error below one
// unit in the last place). Beyond |x| = 708 it stays at its last value. tanh: Cephes's rational function near 0, exp elsewhere.
#pragma once

#include "revolute/scalar/dual.hpp"
#include "revolute/scalar/lanes.hpp"
#include "revolute/scalar/math.hpp"

namespace revolute {

namespace detail {

// The low bits of n + power_shift hold the exponent field of 2^n.
constexpr double power_shift = Precision<double>::to_integer + 1023.0;

// 2^n of a whole number n, |n| < 1023
REVOLUTE_HD inline double power_of_two(double n) {
  const double shifted = n + power_shift;
  std::uint64_t bits;
  memcpy(&bits, &shifted, sizeof bits);
  bits <<= 52;
  double power;
  memcpy(&power, &bits, sizeof power);
  return power;
}
template <int W>
inline Lanes<W> power_of_two(const Lanes<W>& n) {
  using Bits = typename Mask<W>::Bits;
  return Lanes<W>(typename Lanes<W>::Values(Bits((n + Lanes<W>(power_shift)).values) << 52));
}

}  // namespace detail

template <class Real>
REVOLUTE_HD inline Real natural_exponential(const Real& x) {
  const Real bounded = clamp(x, Real(-708), Real(708));
  const Real n = detail::round_to_integer(bounded * Real(1.44269504088896338700));
  const Real high = bounded - n * Real(6.93147180369123816490e-01);
  const Real low = n * Real(1.90821492927058770002e-10);
  const Real r = high - low;
  const Real z = r * r;
  const Real c =
      r - z * (Real(1.66666666666666019037e-01) +
               z * (Real(-2.77777777770155933842e-03) +
                    z * (Real(6.61375632143793436117e-05) +
                         z * (Real(-1.65339022054652515390e-06) + z * Real(4.13813679705723846039e-08)))));
  return (Real(1) - ((low - (r * c) / (Real(2) - c)) - high)) * detail::power_of_two(n);
}

template <class Real>
REVOLUTE_HD inline Real hyperbolic_tangent(const Real& x) {
  const Real z = x * x;
  const Real numerator = (Real(-9.64399179425052238628e-1) * z + Real(-9.92877231001918586564e1)) * z +
                         Real(-1.61468768441708447952e3);
  const Real denominator = ((z + Real(1.12811678491632931402e2)) * z + Real(2.23548839060100448583e3)) * z +
                           Real(4.84406305325125486048e3);
  const auto small = less(z, Real(0.390625));  // |x| < 0.625
  const Real near_zero = x + x * (z * (numerator / denominator));
  const Real far = Real(1) - Real(2) / (natural_exponential(Real(2) * abs(x)) + Real(1));
  return select(small, near_zero, flip_sign(far, x));
}

// for dual numbers, by the values
template <int N>
REVOLUTE_HD inline Dual<N> natural_exponential(const Dual<N>& x) {
  const double e = natural_exponential(x.value);
  return Dual<N>::chain(e, e, x);
}
template <int N>
REVOLUTE_HD inline Dual<N> hyperbolic_tangent(const Dual<N>& x) {
  const double t = hyperbolic_tangent(x.value);
  return Dual<N>::chain(t, 1.0 - t * t, x);
}

}  // namespace revolute
