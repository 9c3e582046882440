// Unit quaternions (w, x, y, z) and their tangent space: q(d) = q * exp(d), d in body axes.
#pragma once

#include "revolute/scalar/math.hpp"
#include "revolute/spatial/vector3.hpp"

namespace revolute {

template <class Real>
struct Quaternion {
  Real w, x, y, z;
};

template <class Real>
REVOLUTE_HD inline Quaternion<Real> normalized(const Quaternion<Real>& q) {
  const Real s = Real(1) / sqrt(q.w * q.w + q.x * q.x + q.y * q.y + q.z * q.z);
  return {s * q.w, s * q.x, s * q.y, s * q.z};
}
template <class Real>
REVOLUTE_HD inline Quaternion<Real> operator*(const Quaternion<Real>& a, const Quaternion<Real>& b) {
  return {a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z, a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y,
          a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x, a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w};
}
template <class Real>
REVOLUTE_HD inline Quaternion<Real> conjugate(const Quaternion<Real>& q) {
  return {q.w, -q.x, -q.y, -q.z};
}
template <class Real>
REVOLUTE_HD inline Matrix3<Real> rotation_matrix(const Quaternion<Real>& q) {
  const Real two(2), one(1);
  return {{one - two * (q.y * q.y + q.z * q.z), two * (q.x * q.y - q.w * q.z), two * (q.x * q.z + q.w * q.y),
           two * (q.x * q.y + q.w * q.z), one - two * (q.x * q.x + q.z * q.z), two * (q.y * q.z - q.w * q.x),
           two * (q.x * q.z - q.w * q.y), two * (q.y * q.z + q.w * q.x),
           one - two * (q.x * q.x + q.y * q.y)}};
}
// exp(d): the rotation by |d| about d
template <class Real>
REVOLUTE_HD inline Quaternion<Real> exponential(const Vector3<Real>& d) {
  Real sinc, c;
  sinc_cos(Real(0.25) * dot(d, d), sinc, c);
  const Vector3<Real> s = (Real(0.5) * sinc) * d;
  return {c, s.x, s.y, s.z};
}
// log(q): rotation vector of the shorter way, in body axes
template <class Real>
REVOLUTE_HD inline Vector3<Real> logarithm(const Quaternion<Real>& q) {
  const Real sign = select(less(q.w, Real(0)), Real(-1), Real(1));
  const Vector3<Real> s = {sign * q.x, sign * q.y, sign * q.z};
  const Real s_squared = dot(s, s);
  const auto small = less(s_squared, Real(1e-24));
  const Real length = sqrt(select(small, Real(1), s_squared));
  const Real ratio = select(small, Real(2), twice_arctangent(length, abs(q.w)) / length);
  return ratio * s;
}
// J_l(d) a = a + alpha d x a + beta d x (d x a): left Jacobian of the rotation group; J_r(d)' = J_l(d)
template <class Real, class Bar>
REVOLUTE_HD inline Vector3<Bar> left_jacobian_times(const Vector3<Real>& d, const Vector3<Bar>& a) {
  Real alpha, beta;
  rotation_jacobian_coefficients(dot(d, d), alpha, beta);
  const Vector3<Bar> da = cross(d, a);
  return a + alpha * da + beta * cross(d, da);
}
// J_l(d)^-1 a = a - d x a / 2 + gamma d x (d x a),  gamma = 1/t^2 - (1 + cos t)/(2 t sin t) = (1 - (t/2)cot(t/2))/t^2
template <class Real, class Bar>
REVOLUTE_HD inline Vector3<Bar> left_jacobian_inverse_times(const Vector3<Real>& d, const Vector3<Bar>& a) {
  Real sinc, c;
  const Real t_squared = dot(d, d);
  sinc_cos(Real(0.25) * t_squared, sinc, c);
  const auto small = less(t_squared, Real(1e-2));
  const Real z = t_squared;
  const Real series =
      Real(1.0 / 12) + z * (Real(1.0 / 720) + z * (Real(1.0 / 30240) + z * Real(1.0 / 1209600)));
  const Real gamma = select(small, series, (Real(1) - c / sinc) / select(small, Real(1), t_squared));
  const Vector3<Bar> da = cross(d, a);
  return a - Real(0.5) * da + gamma * cross(d, da);
}

// Cotangent by the four components -> by the tangent d (three), at unit q: t = E(q)' q_bar / 2.
template <class Real>
REVOLUTE_HD inline Vector3<Real> tangent_cotangent(const Quaternion<Real>& q, const Quaternion<Real>& q_bar) {
  const Real half(0.5);
  return {half * (-q.x * q_bar.w + q.w * q_bar.x + q.z * q_bar.y - q.y * q_bar.z),
          half * (-q.y * q_bar.w - q.z * q_bar.x + q.w * q_bar.y + q.x * q_bar.z),
          half * (-q.z * q_bar.w + q.y * q_bar.x - q.x * q_bar.y + q.w * q_bar.z)};
}
// The cotangent of smallest norm by the four components that has tangent part t: q_bar = 2 E(q) t.
template <class Real, class Bar>
REVOLUTE_HD inline Quaternion<Bar> ambient_cotangent(const Quaternion<Real>& q, const Vector3<Bar>& t) {
  const Real two(2);
  return {two * (-q.x * t.x - q.y * t.y - q.z * t.z), two * (q.w * t.x - q.z * t.y + q.y * t.z),
          two * (q.z * t.x + q.w * t.y - q.x * t.z), two * (-q.y * t.x + q.x * t.y + q.w * t.z)};
}

}  // namespace revolute
