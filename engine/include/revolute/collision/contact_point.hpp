// The answer of a pair of shapes: the signed gap, the point half-way between the surfaces, the normal from a to b.
//
// Adjoints of pairs use that the answer is carried along when both shapes are displaced together. So the moments on a and b
// add up to the moment of the answer; each pair derives one side and gets the other by difference.
#pragma once

#include "revolute/spatial/spatial_vector.hpp"

namespace revolute {

template <class Real>
struct ContactPoint {
  Real gap;
  Vector3<Real> point, normal;  // world
};

// Cotangents by rigid displacements of the two shapes, as moments about the world's origin.
template <class Real>
struct PairMoments {
  Force<Real> a, b;
};

template <class Real, class Bar>
REVOLUTE_HD inline Force<Bar> force_at(const Vector3<Real>& point, const Vector3<Bar>& force) {
  return {cross(point, force), force};
}
// Moment of the answer; the gap does not change when both shapes move together.
template <class Real, class Bar>
REVOLUTE_HD inline Force<Bar> answer_moment(const ContactPoint<Real>& at, const ContactPoint<Bar>& bar) {
  Force<Bar> moment = force_at(at.point, bar.point);
  moment.n += cross(at.normal, bar.normal);
  return moment;
}
template <class Real, class Bar>
REVOLUTE_HD inline PairMoments<Bar> with_other_side_b(const Force<Bar>& a, const ContactPoint<Real>& at,
                                                      const ContactPoint<Bar>& bar) {
  return {a, answer_moment(at, bar) + (-a)};
}

// a / |a| and |a|. If a is shorter than any length that matters, they are z and zero, and the length grows with a along z.
template <class Real>
REVOLUTE_HD inline Vector3<Real> direction(const Vector3<Real>& a, Real& length, Real& inverse_length) {
  const Real squared = dot(a, a);
  const auto degenerate = less(squared, Real(Precision<Real>::tiny_square));
  length = select(degenerate, tangents_of(a.z), sqrt(select(degenerate, Real(0), squared)));
  inverse_length = select(degenerate, Real(0), Real(1) / select(degenerate, Real(1), length));
  const Vector3<Real> z = {Real(0), Real(0), Real(1)};
  return select(degenerate, z, inverse_length * a);
}
// adjoint of a -> a/|a|
template <class Real, class Bar>
REVOLUTE_HD inline Vector3<Bar> direction_adjoint(const Vector3<Real>& unit, Real inverse_length,
                                                  const Vector3<Bar>& unit_bar) {
  return inverse_length * (unit_bar - dot(unit, unit_bar) * unit);
}

// Two friction directions of a normal. They follow the normal only, never the slip, so that they and their derivative
// stay bounded at rest. The auxiliary axis is y, or z where the normal is near y.
template <class Real>
REVOLUTE_HD inline Vector3<Real> auxiliary_axis(const Vector3<Real>& n) {
  const Real o(0), l(1);
  const Vector3<Real> y = {o, l, o}, z = {o, o, l};
  return select(less(abs(n.y), Real(0.8)), y, z);
}
template <class Real>
REVOLUTE_HD inline void tangents(const Vector3<Real>& n, Vector3<Real>& t1, Vector3<Real>& t2) {
  const Vector3<Real> e = auxiliary_axis(n);
  Real length, inverse_length;
  t1 = direction(e - dot(e, n) * n, length, inverse_length);
  t2 = cross(n, t1);
}
// adds to n_bar
template <class Real, class Bar>
REVOLUTE_HD inline void tangents_adjoint(const Vector3<Real>& n, Vector3<Bar> t1_bar,
                                         const Vector3<Bar>& t2_bar, Vector3<Bar>& n_bar) {
  const Vector3<Real> e = auxiliary_axis(n);
  Real length, inverse_length;
  const Vector3<Real> t1 = direction(e - dot(e, n) * n, length, inverse_length);
  n_bar += cross(t1, t2_bar);
  t1_bar += cross(t2_bar, n);
  const Vector3<Bar> d_bar = direction_adjoint(t1, inverse_length, t1_bar);
  n_bar -= dot(e, n) * d_bar + dot(n, d_bar) * e;
}

}  // namespace revolute
