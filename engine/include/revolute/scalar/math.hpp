// Sine, cosine and the small-angle functions of rotations, one formula for every width.
//
// sin and cos: Cody-Waite reduction by pi/2 in three parts and the minimax kernels of fdlibm (public domain constants,
// error below one unit in the last place for |x| < 1e6, float 8e3; beyond that each lane takes the C library's reduction).
// Angles enter the small-angle functions squared, so that they and their derivatives are smooth at zero.
#pragma once

#include "revolute/scalar/scalar.hpp"

namespace revolute {

namespace detail {

// x rounded to the nearest integer; exact for |x| < 2^51 (float: 2^22).
template <class Real>
REVOLUTE_HD inline Real round_to_integer(Real x) {
  const Real shift(Precision<Real>::to_integer);
  return (x + shift) - shift;
}

template <class Real>
REVOLUTE_HD inline Real sin_kernel(Real x) {
  const Real z = x * x;
  const Real r = Real(8.33333333332248946124e-03) +
                 z * (Real(-1.98412698298579493134e-04) +
                      z * (Real(2.75573137070700676789e-06) +
                           z * (Real(-2.50507602534068634195e-08) + z * Real(1.58969099521155010221e-10))));
  return x + z * x * (Real(-1.66666666666666324348e-01) + z * r);
}

template <class Real>
REVOLUTE_HD inline Real cos_kernel(Real x) {
  const Real z = x * x;
  const Real r =
      z * (Real(4.16666666666666019037e-02) +
           z * (Real(-1.38888888888741095749e-03) +
                z * (Real(2.48015872894767294178e-05) +
                     z * (Real(-2.75573143513906633035e-07) +
                          z * (Real(2.08757232129817482790e-09) + z * Real(-1.13596475577881948265e-11))))));
  const Real half = Real(0.5) * z;
  const Real w = Real(1) - half;
  return w + (((Real(1) - w) - half) + z * r);
}

}  // namespace detail

// s = sin(x), c = cos(x).
template <class Real>
REVOLUTE_HD inline void sincos(Real x, Real& s, Real& c) {
  const Real n = detail::round_to_integer(x * Real(0.63661977236758134308));
  Real r = x - n * Real(Precision<Real>::half_pi[0]);
  r = r - n * Real(Precision<Real>::half_pi[1]);
  r = r - n * Real(Precision<Real>::half_pi[2]);
  const Real sin_r = detail::sin_kernel(r), cos_r = detail::cos_kernel(r);
  // quadrant 0..3 of the reduced angle
  const Real quadrant = n - Real(4) * detail::round_to_integer(n * Real(0.25) - Real(0.375));
  const auto odd = (less(Real(0.5), quadrant) & less(quadrant, Real(1.5))) | less(Real(2.5), quadrant);
  const Real s_abs = select(odd, cos_r, sin_r), c_abs = select(odd, sin_r, cos_r);
  s = select(less(Real(1.5), quadrant), -s_abs, s_abs);
  c = select(less(Real(0.5), quadrant) & less(quadrant, Real(2.5)), -c_abs, c_abs);
  const auto large = less(Real(Precision<Real>::largest_angle), abs(x));
  if (any(large)) {
    for (int lane = 0; lane < Width<Real>::value; ++lane) {
      if (!get_lane(large, lane)) continue;
      set_lane(s, lane, std::sin(get_lane(x, lane)));
      set_lane(c, lane, std::cos(get_lane(x, lane)));
    }
  }
}

// sin(a)/a and cos(a) as functions of a^2.
template <class Real>
REVOLUTE_HD inline void sinc_cos(Real a_squared, Real& sinc, Real& c) {
  const auto small = less(a_squared, Real(1e-2));
  const Real a = sqrt(select(small, Real(1), a_squared));
  Real s, cosine;
  sincos(a, s, cosine);
  const Real z = a_squared;
  const Real sinc_series =
      Real(1) - z / Real(6) * (Real(1) - z / Real(20) * (Real(1) - z / Real(42) * (Real(1) - z / Real(72))));
  const Real cos_series =
      Real(1) -
      z / Real(2) *
          (Real(1) -
           z / Real(12) * (Real(1) - z / Real(30) * (Real(1) - z / Real(56) * (Real(1) - z / Real(90)))));
  sinc = select(small, sinc_series, s / a);
  c = select(small, cos_series, cosine);
}

// (1 - cos t)/t^2 and (t - sin t)/t^3 as functions of t^2: the coefficients of the rotation group's left Jacobian.
template <class Real>
REVOLUTE_HD inline void rotation_jacobian_coefficients(Real t_squared, Real& a, Real& b) {
  Real half_sinc, half_cos;
  sinc_cos(Real(0.25) * t_squared, half_sinc, half_cos);
  a = Real(0.5) * half_sinc * half_sinc;
  const auto small = less(t_squared, Real(0.25));
  const Real z = t_squared;
  const Real series =
      (Real(1) -
       z / Real(20) *
           (Real(1) - z / Real(42) *
                          (Real(1) - z / Real(72) * (Real(1) - z / Real(110) * (Real(1) - z / Real(156)))))) /
      Real(6);
  const Real full_sinc = half_sinc * half_cos;  // sin t / t
  b = select(small, series, (Real(1) - full_sinc) / select(small, Real(1), t_squared));
}

// The angle in [0, pi] whose half has sine `s` >= 0 and cosine `c` >= 0.
template <class Real>
REVOLUTE_HD inline Real twice_arctangent(Real s, Real c) {
  Real angle = s;
  for (int lane = 0; lane < Width<Real>::value; ++lane)
    set_lane(angle, lane, 2.0 * std::atan2(get_lane(s, lane), get_lane(c, lane)));
  return angle;
}

}  // namespace revolute
