// MuJoCo's contact frame: the normal n, a first tangent from an axis e that the pair gives, and their cross product.
//   t1 = (e - (n.e) n)/|...|,   t2 = n x t1                                                   (1)
// If the pair gives no axis, e is y, or z where |n_y| >= 1/2. Where n and e are parallel t1 is x.
#pragma once

#include "revolute/collision/contact_point.hpp"

namespace revolute::mujoco {

constexpr double shortest = 1e-15;  // MuJoCo's mjMINVAL: a vector that is shorter has no direction

// Selects between cotangents by a mask of the step. The mask is narrower when one step has several cotangents.
template <class M, class Bar>
REVOLUTE_HD inline Vector3<Bar> select_each(const M& mask, const Vector3<Bar>& a, const Vector3<Bar>& b) {
  return {select(mask, a.x, b.x), select(mask, a.y, b.y), select(mask, a.z, b.z)};
}

template <class Real>
REVOLUTE_HD inline Vector3<Real> default_axis(const Vector3<Real>& n) {
  const Real o(0), l(1);
  const Vector3<Real> y = {o, l, o}, z = {o, o, l};
  return select(less(abs(n.y), Real(0.5)), y, z);
}

// t1 of (1), and 1/|e - (n.e) n|, which is 0 where n and e are parallel.
template <class Real>
REVOLUTE_HD inline Vector3<Real> first_tangent(const Vector3<Real>& n, const Vector3<Real>& e,
                                               Real& inverse) {
  const Vector3<Real> across = e - dot(n, e) * n;
  const Real squared = dot(across, across);
  const auto parallel = less(squared, Real(shortest * shortest));
  inverse = select(parallel, Real(0), Real(1) / sqrt(select(parallel, Real(1), squared)));
  const Vector3<Real> x = {Real(1), Real(0), Real(0)};
  return select(parallel, x, inverse * across);
}
template <class Real>
REVOLUTE_HD inline void tangents(const Vector3<Real>& n, const Vector3<Real>& e, Vector3<Real>& t1,
                                 Vector3<Real>& t2) {
  Real inverse;
  t1 = first_tangent(n, e, inverse);
  t2 = cross(n, t1);
}
// adds to n_bar and e_bar
template <class Real, class Bar>
REVOLUTE_HD inline void tangents_adjoint(const Vector3<Real>& n, const Vector3<Real>& e, Vector3<Bar> t1_bar,
                                         const Vector3<Bar>& t2_bar, Vector3<Bar>& n_bar,
                                         Vector3<Bar>& e_bar) {
  Real inverse;
  const Vector3<Real> t1 = first_tangent(n, e, inverse);
  n_bar += cross(t1, t2_bar);
  t1_bar += cross(t2_bar, n);
  const Vector3<Bar> across_bar = direction_adjoint(t1, inverse, t1_bar);
  n_bar -= dot(e, n) * across_bar + dot(n, across_bar) * e;
  e_bar += across_bar - dot(n, across_bar) * n;
}

}  // namespace revolute::mujoco
