// Two spheres, and the core of every pair of round shapes: two centres with radii.
//   d = c_b - c_a,  n = d/|d|,  gap = |d| - r_a - r_b,  point = c_a + n (r_a + gap/2)
#pragma once

#include "revolute/collision/contact_point.hpp"

namespace revolute {

template <class Real>
REVOLUTE_HD inline ContactPoint<Real> sphere_sphere(const Vector3<Real>& a, Real radius_a,
                                                    const Vector3<Real>& b, Real radius_b) {
  Real distance, inverse;
  const Vector3<Real> n = direction(b - a, distance, inverse);
  const Real gap = distance - radius_a - radius_b;
  return {gap, a + (radius_a + Real(0.5) * gap) * n, n};
}
// cotangents by the two centres
template <class Real, class Bar>
REVOLUTE_HD inline void sphere_sphere_adjoint(const Vector3<Real>& a, Real radius_a, const Vector3<Real>& b,
                                              const ContactPoint<Real>& at, const ContactPoint<Bar>& bar,
                                              Vector3<Bar>& a_bar, Vector3<Bar>& b_bar) {
  Real distance, inverse;
  const Vector3<Real> n = direction(b - a, distance, inverse);
  const Vector3<Bar> n_bar = bar.normal + (radius_a + Real(0.5) * at.gap) * bar.point;
  const Bar gap_bar = bar.gap + Real(0.5) * dot(n, bar.point);
  b_bar = gap_bar * n + direction_adjoint(n, inverse, n_bar);
  a_bar = bar.point - b_bar;
}

// Returns moment_a and the moment on b, for two shapes with points a and b as centres. If the centres coincide, the normal is
// the world's z: it does not turn with the shapes, and the answer's point moves as a does.
template <class Real, class Bar>
REVOLUTE_HD inline PairMoments<Bar> with_other_round_side_b(const Force<Bar>& moment_a,
                                                            const Vector3<Real>& a, const Vector3<Real>& b,
                                                            const ContactPoint<Real>& at,
                                                            const ContactPoint<Bar>& bar) {
  Real distance, inverse;
  direction(b - a, distance, inverse);
  const auto apart = less(Real(0), inverse);
  const ContactPoint<Real> carried = {at.gap, select(apart, at.point, a), at.normal};
  const ContactPoint<Bar> carried_bar = {bar.gap, bar.point, indicator<Real>(apart) * bar.normal};
  return with_other_side_b(moment_a, carried, carried_bar);
}

}  // namespace revolute
