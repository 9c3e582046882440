// A sphere a and a capsule b: the sphere against the nearest point of the capsule's segment.
//   t = clamp((c - o).u, -L, L),   c_b = o + t u
#pragma once

#include "revolute/collision/segment.hpp"
#include "revolute/collision/sphere_sphere.hpp"

namespace revolute {

template <class Real>
REVOLUTE_HD inline ContactPoint<Real> sphere_capsule(const Vector3<Real>& c, Real radius_a,
                                                     const Segment<Real>& b, Real radius_b) {
  const Real t = clamp_to(b, dot(c - b.centre, b.axis));
  return sphere_sphere(c, radius_a, point_on(b, t), radius_b);
}
template <class Real, class Bar>
REVOLUTE_HD inline PairMoments<Bar> sphere_capsule_adjoint(const Vector3<Real>& c, Real radius_a,
                                                           const Segment<Real>& b,
                                                           const ContactPoint<Real>& at,
                                                           const ContactPoint<Bar>& bar) {
  const Real t_free = dot(c - b.centre, b.axis);
  Vector3<Bar> a_bar, b_bar;
  const Vector3<Real> nearest = point_on(b, clamp_to(b, t_free));
  sphere_sphere_adjoint(c, radius_a, nearest, at, bar, a_bar, b_bar);
  // the nearest point slides along the segment with c
  a_bar += (inside(b, t_free) * dot(b_bar, b.axis)) * b.axis;
  return with_other_round_side_b(force_at(c, a_bar), c, nearest, at, bar);
}

}  // namespace revolute
