// Two capsules: the nearest points of their segments, with r = o_a - o_b, b = u_a.u_b, c = u_a.r, f = u_b.r
// (Ericson, Real-Time Collision Detection, 2005, section 5.1.9):
//   s_a = clamp((b f - c)/(1 - b^2)),  t_b = clamp(f + b s_a),  t_a = clamp(b t_b - c)        (1)
// Parallel segments touch along a stretch; s_a is then the middle of their overlap, so that the one contact balances.  (2)
#pragma once

#include "revolute/collision/segment.hpp"
#include "revolute/collision/sphere_sphere.hpp"

namespace revolute {

template <class Real>
struct SegmentPair {
  Real b, c, f, determinant;
  MaskOf<Real> parallel;
  Real s_free, s, tb_free, tb, ta_free, ta;
};

template <class Real>
REVOLUTE_HD inline SegmentPair<Real> nearest_points(const Segment<Real>& A, const Segment<Real>& B) {
  SegmentPair<Real> p;
  const Vector3<Real> r = A.centre - B.centre;
  p.b = dot(A.axis, B.axis);
  p.c = dot(A.axis, r);
  p.f = dot(B.axis, r);
  const Real determinant = Real(1) - p.b * p.b;
  p.parallel = less(determinant, Real(1e-10));
  p.determinant = select(p.parallel, Real(1), determinant);
  const Real lower = maximum(-A.half, -p.c - B.half), upper = minimum(A.half, B.half - p.c);  // (2)
  p.s_free = select(p.parallel, Real(0.5) * (lower + upper), (p.b * p.f - p.c) / p.determinant);
  p.s = clamp_to(A, p.s_free);  // (1)
  p.tb_free = p.f + p.b * p.s;
  p.tb = clamp_to(B, p.tb_free);
  p.ta_free = p.b * p.tb - p.c;
  p.ta = select(p.parallel & less(abs(p.tb_free), B.half), p.s, clamp_to(A, p.ta_free));
  return p;
}

template <class Real>
REVOLUTE_HD inline ContactPoint<Real> capsule_capsule(const Segment<Real>& A, Real radius_a,
                                                      const Segment<Real>& B, Real radius_b) {
  const SegmentPair<Real> p = nearest_points(A, B);
  return sphere_sphere(point_on(A, p.ta), radius_a, point_on(B, p.tb), radius_b);
}

template <class Real, class Bar>
REVOLUTE_HD inline PairMoments<Bar> capsule_capsule_adjoint(const Segment<Real>& A, Real radius_a,
                                                            const Segment<Real>& B,
                                                            const ContactPoint<Real>& at,
                                                            const ContactPoint<Bar>& bar) {
  const SegmentPair<Real> p = nearest_points(A, B);
  Vector3<Bar> a_bar, b_bar;
  const Vector3<Real> on_a = point_on(A, p.ta), on_b = point_on(B, p.tb);
  sphere_sphere_adjoint(on_a, radius_a, on_b, at, bar, a_bar, b_bar);
  // reverse of (1): parallel segments have t_a = s where t_b lies inside; of (2): each end of the overlap moves with c or not
  const auto along = p.parallel & less(abs(p.tb_free), B.half);
  const Bar point_bar = dot(a_bar, A.axis);
  const Bar ta_bar = select(along, Bar(0), inside(A, p.ta_free) * point_bar);
  const Bar tb_bar = inside(B, p.tb_free) * (dot(b_bar, B.axis) + p.b * ta_bar);
  const Bar s_bar = inside(A, p.s_free) * (p.b * tb_bar + select(along, point_bar, Bar(0)));
  const Bar numerator_bar = select(p.parallel, Bar(0), s_bar / p.determinant);
  const Real ends =
      indicator<Real>(less(-A.half, -p.c - B.half)) + indicator<Real>(less(B.half - p.c, A.half));
  const Bar c_bar = -ta_bar - select(p.parallel, Real(0.5) * ends * s_bar, numerator_bar);
  const Bar f_bar = tb_bar + p.b * numerator_bar;
  const Bar b_scalar_bar = p.tb * ta_bar + p.s * tb_bar + (p.f + Real(2) * p.b * p.s_free) * numerator_bar;
  const Vector3<Real> r = A.centre - B.centre;
  const Vector3<Bar> centre_bar = a_bar + c_bar * A.axis + f_bar * B.axis;
  const Vector3<Bar> axis_bar = p.ta * a_bar + c_bar * r + b_scalar_bar * B.axis;
  Force<Bar> moment = force_at(A.centre, centre_bar);
  moment.n += cross(A.axis, axis_bar);
  return with_other_round_side_b(moment, on_a, on_b, at, bar);
}

}  // namespace revolute
