// MuJoCo's muscle: force = gain(l, v) activation + bias(l), with normalized length L and velocity V:
//   L0 = (range of the length)/(r1 - r0),  L = r0 + (l - lowest)/L0,  V = v/(L0 vmax)         (1)
//   gain = -F FL(L) FV(V),   bias = -F FP(L)                                                  (2)
// FL rises and falls in four pieces of parabolas between lmin and lmax, FV in two; FP is a parabola, then a straight line.
// A negative F stands for scale/acc0; the model's builder puts it in.
// Source: MuJoCo, Modeling, section Muscles. Not differentiated: the parameters.
#pragma once

#include "revolute/model/model.hpp"

namespace revolute {

template <class Real>
struct MuscleForce {
  Real value, by_length, by_velocity, by_velocity_length, by_velocity_velocity;
};

namespace detail {

constexpr double least_muscle_value = 1e-15;

// A piece that grows (or falls) as half the square of the distance from its flat end.
template <class Real>
struct Curve {
  Real value, slope, curvature;
};
// start + sign ((x - from)/width)^2/2
template <class Real>
REVOLUTE_HD inline Curve<Real> parabola(const Real& x, double from, double width, double start, double sign) {
  const Real inverse(1.0 / (width > least_muscle_value ? width : least_muscle_value));
  const Real y = (x - Real(from)) * inverse, s(sign);
  return {Real(start) + s * Real(0.5) * y * y, s * y * inverse, s * inverse * inverse};
}
template <class Real>
REVOLUTE_HD inline Curve<Real> either(MaskOf<Real> mask, const Curve<Real>& a, const Curve<Real>& b) {
  return {select(mask, a.value, b.value), select(mask, a.slope, b.slope),
          select(mask, a.curvature, b.curvature)};
}

template <class Real>
REVOLUTE_HD Curve<Real> muscle_length_curve(const Muscle& muscle, const Real& L) {
  const double a = 0.5 * (muscle.lmin + 1), b = 0.5 * (1 + muscle.lmax);
  const Curve<Real> none = {Real(0), Real(0), Real(0)};
  const Curve<Real> rise = parabola(L, muscle.lmin, a - muscle.lmin, 0, 1),
                    near = parabola(L, 1, 1 - a, 1, -1), far = parabola(L, 1, b - 1, 1, -1),
                    fall = parabola(L, muscle.lmax, muscle.lmax - b, 0, 1);
  const Curve<Real> inside =
      either(less_equal(L, Real(a)), rise,
             either(less_equal(L, Real(1)), near, either(less_equal(L, Real(b)), far, fall)));
  return either(less(L, Real(muscle.lmin)) | less(Real(muscle.lmax), L), none, inside);
}

template <class Real>
REVOLUTE_HD Curve<Real> muscle_velocity_curve(const Muscle& muscle, const Real& V) {
  const double y = muscle.fvmax - 1, width = y > least_muscle_value ? y : least_muscle_value;
  const Real o(0), two(2), rest = V + Real(1), inverse(1.0 / width), gap = Real(y) - V;
  const Curve<Real> none = {o, o, o}, most = {Real(muscle.fvmax), o, o};
  const Curve<Real> shortens = {rest * rest, two * rest, two};
  const Curve<Real> stretches = {Real(muscle.fvmax) - gap * gap * inverse, two * gap * inverse,
                                 -two * inverse};
  return either(less_equal(V, Real(-1)), none,
                either(less_equal(V, o), shortens, either(less_equal(V, Real(y)), stretches, most)));
}

}  // namespace detail

template <class Real>
REVOLUTE_HD MuscleForce<Real> muscle_gain(const Muscle& muscle, const Real& length, const Real& velocity) {
  const Real per_length(1.0 / muscle.optimum), per_velocity(1.0 / muscle.fastest), force(-muscle.force);
  const detail::Curve<Real> FL = detail::muscle_length_curve(
      muscle, Real(muscle.range[0]) + (length - Real(muscle.lowest)) * per_length);
  const detail::Curve<Real> FV = detail::muscle_velocity_curve(muscle, velocity * per_velocity);
  const Real slope_v = per_velocity * FV.slope, slope_l = per_length * FL.slope;
  return {force * FL.value * FV.value, force * slope_l * FV.value, force * FL.value * slope_v,
          force * slope_l * slope_v, force * FL.value * per_velocity * per_velocity * FV.curvature};
}

template <class Real>
REVOLUTE_HD MuscleForce<Real> muscle_bias(const Muscle& muscle, const Real& length) {
  const double b = 0.5 * (1 + muscle.lmax),
               width = b - 1 > detail::least_muscle_value ? b - 1 : detail::least_muscle_value;
  const Real per_length(1.0 / muscle.optimum), o(0), scale(-muscle.force * muscle.fpmax);
  const Real L = Real(muscle.range[0]) + (length - Real(muscle.lowest)) * per_length;
  const detail::Curve<Real> none = {o, o, o}, bends = detail::parabola(L, 1, width, 0, 1);
  const detail::Curve<Real> straight = {Real(0.5) + (L - Real(b)) * Real(1.0 / width), Real(1.0 / width), o};
  const detail::Curve<Real> FP =
      detail::either(less_equal(L, Real(1)), none, detail::either(less_equal(L, Real(b)), bends, straight));
  return {scale * FP.value, scale * per_length * FP.slope, o, o, o};
}

}  // namespace revolute
