// A fixed plane and a point with a radius: a sphere, the end of a capsule, the corner of a box, the vertex of a mesh.
//   gap = n.(c - o) - r,   point = c - n (r + gap/2)
#pragma once

#include "revolute/collision/contact_point.hpp"

namespace revolute {

template <class Real>
REVOLUTE_HD inline ContactPoint<Real> plane_point(const Vector3<Real>& normal, const Vector3<Real>& origin,
                                                  const Vector3<Real>& centre, Real radius) {
  const Real gap = dot(normal, centre - origin) - radius;
  return {gap, centre - (radius + Real(0.5) * gap) * normal, normal};
}
// The plane does not move: only the point's side is returned, as the force on its centre.
template <class Real, class Bar>
REVOLUTE_HD inline Vector3<Bar> plane_point_adjoint(const ContactPoint<Real>& at,
                                                    const ContactPoint<Bar>& bar) {
  return bar.point + (bar.gap - Real(0.5) * dot(at.normal, bar.point)) * at.normal;
}

}  // namespace revolute
