// Dual<N>: a value with N directional derivatives, for forward-mode differentiation of the very stages that run.
//
// Comparisons look at values only: a switch is differentiated along the branch that is taken, as the adjoints do.
#pragma once

#include "revolute/scalar/math.hpp"
#include "revolute/scalar/power.hpp"
#include "revolute/scalar/scalar.hpp"

namespace revolute {

template <int N>
struct Dual {
  double value;
  double tangent[N];

  Dual() = default;
  REVOLUTE_HD Dual(double constant) : value(constant), tangent{} {}

  REVOLUTE_HD Dual& operator+=(const Dual& b) { return *this = *this + b; }
  REVOLUTE_HD Dual& operator-=(const Dual& b) { return *this = *this - b; }
  REVOLUTE_HD Dual& operator*=(const Dual& b) { return *this = *this * b; }

  REVOLUTE_HD friend Dual operator+(const Dual& a, const Dual& b) {
    return chain(a.value + b.value, 1.0, a, 1.0, b);
  }
  REVOLUTE_HD friend Dual operator-(const Dual& a, const Dual& b) {
    return chain(a.value - b.value, 1.0, a, -1.0, b);
  }
  REVOLUTE_HD friend Dual operator*(const Dual& a, const Dual& b) {
    return chain(a.value * b.value, b.value, a, a.value, b);
  }
  REVOLUTE_HD friend Dual operator/(const Dual& a, const Dual& b) {
    const double quotient = a.value / b.value;
    return chain(quotient, 1.0 / b.value, a, -quotient / b.value, b);
  }
  REVOLUTE_HD friend Dual operator-(const Dual& a) { return chain(-a.value, -1.0, a); }

  // value, with tangent  da * a' (+ db * b')
  REVOLUTE_HD static Dual chain(double value, double da, const Dual& a) {
    Dual out(value);
    for (int i = 0; i < N; ++i) out.tangent[i] = da * a.tangent[i];
    return out;
  }
  REVOLUTE_HD static Dual chain(double value, double da, const Dual& a, double db, const Dual& b) {
    Dual out(value);
    for (int i = 0; i < N; ++i) out.tangent[i] = da * a.tangent[i] + db * b.tangent[i];
    return out;
  }
};

// rounded as in every other width: values, and so branches, equal those of the trajectory
template <int N>
REVOLUTE_HD inline Dual<N> multiply_add(const Dual<N>& a, const Dual<N>& b, const Dual<N>& c) {
  Dual<N> out = Dual<N>::chain(multiply_add(a.value, b.value, c.value), b.value, a, a.value, b);
  for (int i = 0; i < N; ++i) out.tangent[i] += c.tangent[i];
  return out;
}

template <int N>
struct HasTangents<Dual<N>> {
  static constexpr bool value = true;
};
template <int N>
struct TangentCount<Dual<N>> {
  static constexpr int value = N;
};
template <int N>
REVOLUTE_HD inline Mask<1> less(const Dual<N>& a, const Dual<N>& b) {
  return {a.value < b.value};
}
template <int N>
REVOLUTE_HD inline Mask<1> less_equal(const Dual<N>& a, const Dual<N>& b) {
  return {a.value <= b.value};
}
template <int N>
REVOLUTE_HD inline Dual<N> select(Mask<1> mask, const Dual<N>& a, const Dual<N>& b) {
  return mask.bit ? a : b;
}
template <int N>
REVOLUTE_HD inline Dual<N> sqrt(const Dual<N>& a) {
  const double root = std::sqrt(a.value);
  return Dual<N>::chain(root, root > 0 ? 0.5 / root : 0.0, a);
}
template <int N>
REVOLUTE_HD inline Dual<N> abs(const Dual<N>& a) {
  return a.value < 0 ? -a : a;
}
template <int N>
REVOLUTE_HD inline Mask<1> is_negative(const Dual<N>& a) {
  return {std::signbit(a.value)};
}
template <int N>
REVOLUTE_HD inline Mask<1> is_finite(const Dual<N>& a) {
  bool finite = std::isfinite(a.value);
  for (int i = 0; i < N; ++i) finite = finite && std::isfinite(a.tangent[i]);
  return {finite};
}
template <int N>
REVOLUTE_HD inline void sincos(const Dual<N>& x, Dual<N>& s, Dual<N>& c) {
  double sine, cosine;
  sincos(x.value, sine, cosine);
  s = Dual<N>::chain(sine, cosine, x);
  c = Dual<N>::chain(cosine, -sine, x);
}
// 2 atan2(s, c), with d = 2 (c s' - s c')/(s^2 + c^2)
template <int N>
REVOLUTE_HD inline Dual<N> twice_arctangent(const Dual<N>& s, const Dual<N>& c) {
  const double scale = 2.0 / (s.value * s.value + c.value * c.value);
  return Dual<N>::chain(2.0 * std::atan2(s.value, c.value), scale * c.value, s, -scale * s.value, c);
}
// with (x^p)' = p x^(p-1) x' + x^p log(x) p'
template <int N>
REVOLUTE_HD inline Dual<N> general_power(const Dual<N>& x, const Dual<N>& p) {
  const double value = p.value == 1 ? x.value : p.value == 2 ? x.value * x.value : std::pow(x.value, p.value);
  return Dual<N>::chain(value, p.value * (value / x.value), x, value * std::log(x.value), p);
}
template <int N>
REVOLUTE_HD inline Dual<N> natural_logarithm(const Dual<N>& x) {
  return Dual<N>::chain(std::log(x.value), 1.0 / x.value, x);
}
template <int N>
struct AllPositiveZero<Dual<N>> {
  AllPositiveZero<double> numbers;
  REVOLUTE_HD void add(const Dual<N>& a) {
    numbers.add(a.value);
    for (int i = 0; i < N; ++i) numbers.add(a.tangent[i]);
  }
  REVOLUTE_HD bool holds() const { return numbers.holds(); }
};
template <int N>
REVOLUTE_HD inline double get_lane(const Dual<N>& a, int) {
  return a.value;
}
template <int N>
REVOLUTE_HD inline void set_lane(Dual<N>& a, int, const Dual<N>& value) {
  a = value;
}
template <int N>
REVOLUTE_HD inline void set_lane(Dual<N>& a, int, double constant) {
  a = constant;
}

}  // namespace revolute
