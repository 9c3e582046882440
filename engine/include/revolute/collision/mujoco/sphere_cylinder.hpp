// A sphere a and a cylinder b of axis z, radius r and half length h. With the sphere's centre c = o + x z + q, q across z:
//   side:  |x| < h, the sphere against a sphere of radius r about o + x z                     (1)
//   cap:   |q| < r, the sphere against the cap's plane                                        (2)
//   rim:   else, the sphere against the point o + r q/|q| +- h z                              (3)
// A centre inside of the cylinder takes the nearer of side and cap.
#pragma once

#include "revolute/collision/mujoco/plane_cylinder.hpp"
#include "revolute/collision/mujoco/round_pair.hpp"

namespace revolute::mujoco {

template <class Real>
struct SphereCylinder {
  Vector3<Real> z, up;    // up: z towards the cap that is nearer
  Vector3<Real> nearest;  // (1), (3): the other sphere's centre
  Vector3<Real> outward;  // q/|q|
  Real radius, inverse;   // of that sphere; 1/|q|, 0 on the axis
  MaskOf<Real> side, cap;
};
template <class Real>
REVOLUTE_HD inline SphereCylinder<Real> sphere_cylinder_nearest(const Vector3<Real>& c,
                                                                const Cylinder<Real>& b) {
  SphereCylinder<Real> out;
  out.z = b.R.column(2);
  const Vector3<Real> v = c - b.centre;
  const Real x = dot(out.z, v);
  const Vector3<Real> q = v - x * out.z;
  const Real squared = dot(q, q), l = sqrt(squared);
  const auto on_axis = less(l, Real(shortest));
  out.inverse = select(on_axis, Real(0), Real(1) / select(on_axis, Real(1), l));
  out.outward = out.inverse * q;
  const auto beside = less(abs(x), b.half), over = less(l, b.radius);
  const auto cap_nearer = less(b.half - abs(x), b.radius - l);
  out.side = beside & ((!over) | (!cap_nearer));
  out.cap = over & ((!beside) | cap_nearer);
  out.up = select(less(Real(0), x), out.z, -out.z);
  out.nearest = b.centre + select(out.side, x * out.z, b.radius * out.outward + b.half * out.up);
  out.radius = select(out.side, b.radius, Real(0));
  return out;
}

template <class Real>
REVOLUTE_HD inline ContactPoint<Real> sphere_cylinder(const Vector3<Real>& c, Real radius_a,
                                                      const Vector3<Real>& z_a, const Cylinder<Real>& b) {
  const SphereCylinder<Real> at = sphere_cylinder_nearest(c, b);
  const ContactPoint<Real> round = round_pair(c, radius_a, z_a, at.nearest, at.radius, at.z);
  const Real height = dot(at.up, c - b.centre) - b.half - radius_a;
  const Vector3<Real> on_cap = c - (radius_a + Real(0.5) * height) * at.up;
  return {select(at.cap, height, round.gap), select(at.cap, on_cap, round.point),
          select(at.cap, -at.up, round.normal)};
}

template <class Real, class Bar>
REVOLUTE_HD inline PairMoments<Bar> sphere_cylinder_adjoint(const Vector3<Real>& c, Real radius_a,
                                                            const Cylinder<Real>& b,
                                                            const ContactPoint<Real>& at,
                                                            const ContactPoint<Bar>& bar) {
  const SphereCylinder<Real> near = sphere_cylinder_nearest(c, b);
  Vector3<Bar> c_bar, nearest_bar;
  sphere_sphere_adjoint(c, radius_a, near.nearest, at, bar, c_bar, nearest_bar);
  // (1): the nearest point slides along z with c;  (3): around the rim
  const Vector3<Bar> slides = dot(near.z, nearest_bar) * near.z;
  const Vector3<Bar> turns = b.radius * direction_adjoint(near.outward, near.inverse, nearest_bar - slides);
  c_bar += select_each(near.side, slides, turns);
  // (2)
  const Vector3<Bar> cap_bar = bar.point + (bar.gap - Real(0.5) * dot(near.up, bar.point)) * near.up;
  const Vector3<Bar> centre_bar = select_each(near.cap, cap_bar, c_bar);
  return with_other_side_b(force_at(c, centre_bar), at, bar);
}

}  // namespace revolute::mujoco
