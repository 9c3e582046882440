// The core of pairs of round shapes: two centres with radii, as in sphere_sphere.hpp. Where the centres coincide the normal is
// z_a x z_b of the two shapes' axes, or x where these are parallel.
#pragma once

#include "revolute/collision/mujoco/frame.hpp"
#include "revolute/collision/sphere_sphere.hpp"

namespace revolute::mujoco {

template <class Real>
REVOLUTE_HD inline ContactPoint<Real> round_pair(const Vector3<Real>& a, Real radius_a,
                                                 const Vector3<Real>& z_a, const Vector3<Real>& b,
                                                 Real radius_b, const Vector3<Real>& z_b) {
  const ContactPoint<Real> apart = sphere_sphere(a, radius_a, b, radius_b);
  const Vector3<Real> between = b - a;
  const auto coincident = less(dot(between, between), Real(shortest * shortest));
  if (!any(coincident)) return apart;
  Real inverse;
  const Vector3<Real> n = first_tangent(zero3<Real>(), cross(z_a, z_b), inverse);
  const Vector3<Real> middle = a + (radius_a + Real(0.5) * apart.gap) * n;
  return {apart.gap, select(coincident, middle, apart.point), select(coincident, n, apart.normal)};
}

}  // namespace revolute::mujoco
