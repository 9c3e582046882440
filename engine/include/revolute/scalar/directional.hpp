// A value with its derivative along one direction. The two have different types: a step's number has the derivatives of
// several cotangents. It serves adjoints that come from a derivative in the forward direction (transmission.hpp).
//
// Comparisons look at values only, as in dual.hpp.
#pragma once

#include "revolute/scalar/math.hpp"

namespace revolute {

template <class Real, class Bar>
struct Directional {
  Real value;
  Bar tangent;

  Directional() = default;
  REVOLUTE_HD Directional(double constant) : value(constant), tangent(0.0) {}
  REVOLUTE_HD Directional(const Real& value, const Bar& tangent) : value(value), tangent(tangent) {}

  REVOLUTE_HD Directional& operator+=(const Directional& b) { return *this = *this + b; }
  REVOLUTE_HD Directional& operator-=(const Directional& b) { return *this = *this - b; }
  REVOLUTE_HD friend Directional operator+(const Directional& a, const Directional& b) {
    return {a.value + b.value, a.tangent + b.tangent};
  }
  REVOLUTE_HD friend Directional operator-(const Directional& a, const Directional& b) {
    return {a.value - b.value, a.tangent - b.tangent};
  }
  REVOLUTE_HD friend Directional operator-(const Directional& a) { return {-a.value, -a.tangent}; }
  REVOLUTE_HD friend Directional operator*(const Directional& a, const Directional& b) {
    return {a.value * b.value, a.value * b.tangent + b.value * a.tangent};
  }
  REVOLUTE_HD friend Directional operator/(const Directional& a, const Directional& b) {
    const Real inverse = Real(1) / b.value, quotient = a.value * inverse;
    return {quotient, inverse * a.tangent - (quotient * inverse) * b.tangent};
  }
};

template <class Real, class Bar>
struct Width<Directional<Real, Bar>> {
  static constexpr int value = Width<Real>::value;
};

template <class Real, class Bar>
REVOLUTE_HD inline MaskOf<Real> less(const Directional<Real, Bar>& a, const Directional<Real, Bar>& b) {
  return less(a.value, b.value);
}
template <class Real, class Bar>
REVOLUTE_HD inline MaskOf<Real> less_equal(const Directional<Real, Bar>& a, const Directional<Real, Bar>& b) {
  return less_equal(a.value, b.value);
}
template <class Real, class Bar>
REVOLUTE_HD inline Directional<Real, Bar> select(MaskOf<Real> mask, const Directional<Real, Bar>& a,
                                                 const Directional<Real, Bar>& b) {
  return {select(mask, a.value, b.value), select(mask, a.tangent, b.tangent)};
}
template <class Real, class Bar>
REVOLUTE_HD inline Directional<Real, Bar> abs(const Directional<Real, Bar>& a) {
  return select(less(a.value, Real(0)), -a, a);
}
// without a derivative at zero
template <class Real, class Bar>
REVOLUTE_HD inline Directional<Real, Bar> sqrt(const Directional<Real, Bar>& a) {
  const Real root = sqrt(a.value);
  const auto zero = less_equal(root, Real(0));
  return {root, select(zero, Real(0), Real(0.5) / select(zero, Real(1), root)) * a.tangent};
}
template <class Real, class Bar>
REVOLUTE_HD inline void sincos(const Directional<Real, Bar>& x, Directional<Real, Bar>& s,
                               Directional<Real, Bar>& c) {
  Real sine, cosine;
  sincos(x.value, sine, cosine);
  s = {sine, cosine * x.tangent};
  c = {cosine, -sine * x.tangent};
}
template <class Real, class Bar>
REVOLUTE_HD inline Directional<Real, Bar> twice_arctangent(const Directional<Real, Bar>& s,
                                                           const Directional<Real, Bar>& c) {
  const Real scale = Real(2) / (s.value * s.value + c.value * c.value);
  return {twice_arctangent(s.value, c.value), (scale * c.value) * s.tangent - (scale * s.value) * c.tangent};
}

}  // namespace revolute
