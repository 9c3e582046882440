// Foreign<T>: the engine's Real over the scalar T of an automatic-differentiation library.
//
// A library's adapter gives Reading<T>::value(T), the number behind a scalar; its sqrt, sin, cos and atan2 are found by
// argument-dependent lookup. Comparisons look at values, as those of revolute's own Dual do: what the library records is
// the branch that was taken.
#pragma once

#include <cmath>

#include "revolute/scalar/math.hpp"
#include "revolute/scalar/scalar.hpp"

namespace revolute {

template <class T>
struct Reading;

template <class T>
struct Foreign {
  T scalar;

  Foreign() = default;
  Foreign(double constant) : scalar(constant) {}
  static Foreign of(T value) {
    Foreign out;
    out.scalar = value;
    return out;
  }
  double value() const { return Reading<T>::value(scalar); }

  Foreign& operator+=(const Foreign& b) {
    scalar += b.scalar;
    return *this;
  }
  Foreign& operator-=(const Foreign& b) {
    scalar -= b.scalar;
    return *this;
  }
  Foreign& operator*=(const Foreign& b) {
    scalar *= b.scalar;
    return *this;
  }
  friend Foreign operator+(const Foreign& a, const Foreign& b) { return of(a.scalar + b.scalar); }
  friend Foreign operator-(const Foreign& a, const Foreign& b) { return of(a.scalar - b.scalar); }
  friend Foreign operator*(const Foreign& a, const Foreign& b) { return of(a.scalar * b.scalar); }
  friend Foreign operator/(const Foreign& a, const Foreign& b) { return of(a.scalar / b.scalar); }
  friend Foreign operator-(const Foreign& a) { return of(-a.scalar); }
};

template <class T>
struct HasTangents<Foreign<T>> {
  static constexpr bool value = true;
};
template <class T>
inline Mask<1> less(const Foreign<T>& a, const Foreign<T>& b) {
  return {a.value() < b.value()};
}
template <class T>
inline Mask<1> less_equal(const Foreign<T>& a, const Foreign<T>& b) {
  return {a.value() <= b.value()};
}
template <class T>
inline Foreign<T> select(Mask<1> mask, const Foreign<T>& a, const Foreign<T>& b) {
  return mask.bit ? a : b;
}
template <class T>
inline Foreign<T> abs(const Foreign<T>& a) {
  return a.value() < 0 ? -a : a;
}
template <class T>
inline Mask<1> is_negative(const Foreign<T>& a) {
  return {std::signbit(a.value())};
}
template <class T>
inline Mask<1> is_finite(const Foreign<T>& a) {
  return {std::isfinite(a.value())};
}
// The root of zero has no derivative; the engine multiplies it by zero, as Dual does.
template <class T>
inline Foreign<T> sqrt(const Foreign<T>& a) {
  if (!(a.value() > 0)) return Foreign<T>(std::sqrt(a.value()));
  using std::sqrt;
  return Foreign<T>::of(sqrt(a.scalar));
}
template <class T>
inline void sincos(const Foreign<T>& x, Foreign<T>& s, Foreign<T>& c) {
  using std::cos;
  using std::sin;
  s.scalar = sin(x.scalar);
  c.scalar = cos(x.scalar);
}
template <class T>
inline Foreign<T> twice_arctangent(const Foreign<T>& s, const Foreign<T>& c) {
  using std::atan2;
  return Foreign<T>(2) * Foreign<T>::of(atan2(s.scalar, c.scalar));
}
template <class T>
inline double get_lane(const Foreign<T>& a, int) {
  return a.value();
}
template <class T>
inline void set_lane(Foreign<T>& a, int, const Foreign<T>& value) {
  a = value;
}
template <class T>
inline void set_lane(Foreign<T>& a, int, double constant) {
  a = constant;
}

}  // namespace revolute
