// Two capsules: one point, or two where they are parallel. With A, B the half axes (length included), d = o_a - o_b:
//   aa = A.A,  ab = -A.B,  bb = B.B,  u = -A.d,  v = B.d,  det = aa bb - ab^2
//   x_a = (bb u - ab v)/det,  x_b = (aa v - ab u)/det                                         (1)
// beyond an end, in this order:
//   |x_a| > 1:  x_a = +-1,  x_b = (v - x_a ab)/bb;   |x_b| > 1:  x_b = +-1,  x_a = clamp((u - x_b ab)/aa)   (2)
// Parallel (det <= 1e-8 aa bb): each end of b against its nearest point of a; where that is an end of a, this end
// against its nearest point of b. The end that is lower along a's axis comes first.           (3)
#pragma once

#include "revolute/collision/mujoco/round_pair.hpp"
#include "revolute/collision/segment.hpp"
#include "revolute/collision/ties.hpp"

namespace revolute::mujoco {

constexpr double parallel_capsules = 1e-8;

template <class Real>
REVOLUTE_HD inline MaskOf<Real> are_parallel(const Segment<Real>& A, const Segment<Real>& B) {
  const Real aa = A.half * A.half, bb = B.half * B.half, ab = -((A.half * B.half) * dot(A.axis, B.axis));
  return less_equal(aa * bb - ab * ab, Real(parallel_capsules) * (aa * bb));
}

// The points at which the two touch, in parts of the half lengths.
template <class Real>
struct CapsulePoints {
  Real x_a, x_b;
};

// Of capsules that are not parallel: (1), (2), and the clamps that were taken.
template <class Real>
struct CrossedCapsules {
  Real aa, ab, bb, u, v, det;
  MaskOf<Real> a_first, b_then, a_last;  // |x_a| > 1; |x_b| > 1; x_a clamped in the second of (2)
  CapsulePoints<Real> x;
};
template <class Real>
REVOLUTE_HD inline CrossedCapsules<Real> crossed_capsules(const Segment<Real>& A, const Segment<Real>& B) {
  CrossedCapsules<Real> p;
  const Vector3<Real> d = A.centre - B.centre, a = A.half * A.axis, b = B.half * B.axis;
  const Real one(1);
  const auto square = [&](const Real& half) { return select(less(Real(0), half), half * half, one); };
  p.aa = square(A.half);
  p.ab = -dot(a, b);
  p.bb = square(B.half);
  p.u = -dot(a, d);
  p.v = dot(b, d);
  const Real det = p.aa * p.bb - p.ab * p.ab;
  p.det = select(less(Real(0), det), det, one);
  const auto sign = [&](const Real& x) { return select(is_negative(x), -one, one); };
  Real x_a = (p.bb * p.u - p.ab * p.v) / p.det, x_b = (p.aa * p.v - p.ab * p.u) / p.det;  // (1)
  p.a_first = less(one, abs(x_a));
  x_a = select(p.a_first, sign(x_a), x_a);
  x_b = select(p.a_first, (p.v - x_a * p.ab) / p.bb, x_b);  // (2)
  p.b_then = less(one, abs(x_b));
  x_b = select(p.b_then, sign(x_b), x_b);
  const Real again = (p.u - x_b * p.ab) / p.aa;
  p.a_last = less_equal(one, abs(again));
  x_a = select(p.b_then, select(p.a_last, sign(again), again), x_a);
  p.x = {x_a, x_b};
  return p;
}

// The end of b that point `slot` of parallel capsules belongs to, -1 or 1. (3)
template <class Real>
REVOLUTE_HD inline Real end_of_b(const Segment<Real>& A, const Segment<Real>& B, int slot) {
  const Real first = select(is_negative(dot(A.axis, B.axis)), Real(1), Real(-1));
  return slot == 0 ? first : -first;
}
// Whether a place t lies on the segment, to rounding.
template <class Real>
REVOLUTE_HD inline MaskOf<Real> reaches(const Segment<Real>& segment, const Real& t) {
  return less(abs(t), Real(1 + side_by_side) * segment.half);
}
// (3): x in lengths, and whether it is an end of a against b.
template <class Real>
struct ParallelCapsules {
  Vector3<Real> on_a, on_b;
  MaskOf<Real> from_a;  // an end of a against b
};
template <class Real>
REVOLUTE_HD inline ParallelCapsules<Real> parallel_capsule_points(const Segment<Real>& A,
                                                                  const Segment<Real>& B, int slot) {
  ParallelCapsules<Real> out;
  const Vector3<Real> end = point_on(B, end_of_b(A, B, slot) * B.half);
  const Real t = dot(A.axis, end - A.centre);
  // of ends side by side (ties.hpp) the first is b's and the second a's: so it is after a small displacement
  const double tie = slot == 0 ? 1 + side_by_side : 1 - side_by_side;
  out.from_a = less(Real(tie) * A.half, abs(t));
  out.on_a = point_on(A, select(out.from_a, clamp_to(A, t), t));
  const Real s = dot(B.axis, out.on_a - B.centre);
  out.on_b = select(out.from_a, point_on(B, select(reaches(B, s), s, clamp_to(B, s))), end);
  return out;
}

// Point `slot` of 0 and 1; `exists`: only parallel capsules have the second point.
template <class Real>
REVOLUTE_HD inline ContactPoint<Real> capsule_capsule(const Segment<Real>& A, Real radius_a,
                                                      const Segment<Real>& B, Real radius_b, int slot,
                                                      MaskOf<Real>& exists) {
  const auto parallel = are_parallel(A, B);
  exists = slot == 0 ? parallel | !parallel : parallel;
  const CrossedCapsules<Real> p = crossed_capsules(A, B);
  Vector3<Real> on_a = point_on(A, p.x.x_a * A.half), on_b = point_on(B, p.x.x_b * B.half);
  if (any(parallel)) {
    const ParallelCapsules<Real> q = parallel_capsule_points(A, B, slot);
    on_a = select(parallel, q.on_a, on_a);
    on_b = select(parallel, q.on_b, on_b);
  }
  return round_pair(on_a, radius_a, A.axis, on_b, radius_b, B.axis);
}

// Cotangents by the centre and the half axis of A, from those of the two points: reverse of (1) and (2).
template <class Real, class Bar>
struct SegmentCotangent {
  Vector3<Bar> centre, axis;
};
template <class Real, class Bar>
REVOLUTE_HD inline SegmentCotangent<Real, Bar> crossed_capsules_adjoint(const Segment<Real>& A,
                                                                        const Segment<Real>& B,
                                                                        const Vector3<Bar>& a_bar,
                                                                        const Vector3<Bar>& b_bar) {
  const CrossedCapsules<Real> p = crossed_capsules(A, B);
  const Vector3<Real> d = A.centre - B.centre, a = A.half * A.axis, b = B.half * B.axis;
  const Bar zero(0);
  const Bar x_a_out = dot(a, a_bar), x_b_out = dot(b, b_bar);
  // x_a = (u - x_b ab)/aa after a clamp of x_b, which then is constant
  const auto again = p.b_then & !p.a_last;
  const Bar again_bar = select(again, x_a_out, zero) / p.aa;
  Bar u_bar = again_bar, ab_bar = -(p.x.x_b * again_bar), v_bar = zero;
  // x_b = (v - x_a ab)/bb after a clamp of x_a
  const Bar x_a_bar = select(p.b_then, zero, x_a_out), x_b_bar = select(p.b_then, zero, x_b_out);
  const Bar first_bar = select(p.a_first, x_b_bar, zero) / p.bb;
  v_bar += first_bar;
  ab_bar -= p.x.x_a * first_bar;
  // (1); aa and bb are lengths, which do not change
  const Bar free_a = select(p.a_first, zero, x_a_bar) / p.det,
            free_b = select(p.a_first, zero, x_b_bar) / p.det;
  const Bar det_bar = -(p.x.x_a * free_a + p.x.x_b * free_b);
  u_bar += p.bb * free_a - p.ab * free_b;
  v_bar += p.aa * free_b - p.ab * free_a;
  ab_bar -= p.v * free_a + p.u * free_b + Real(2) * p.ab * det_bar;
  SegmentCotangent<Real, Bar> out;
  out.centre = a_bar - u_bar * a + v_bar * b;
  out.axis = p.x.x_a * a_bar - u_bar * d - ab_bar * b;
  return out;
}

template <class Real, class Bar>
REVOLUTE_HD inline PairMoments<Bar> capsule_capsule_adjoint(const Segment<Real>& A, Real radius_a,
                                                            const Segment<Real>& B, int slot,
                                                            const ContactPoint<Real>& at,
                                                            const ContactPoint<Bar>& bar) {
  const auto parallel = are_parallel(A, B);
  const CapsulePoints<Real> x = crossed_capsules(A, B).x;
  const ParallelCapsules<Real> q = parallel_capsule_points(A, B, slot);
  const Vector3<Real> on_a = select(parallel, q.on_a, point_on(A, x.x_a * A.half)),
                      on_b = select(parallel, q.on_b, point_on(B, x.x_b * B.half));
  Vector3<Bar> a_bar, b_bar;
  sphere_sphere_adjoint(on_a, radius_a, on_b, at, bar, a_bar, b_bar);
  const SegmentCotangent<Real, Bar> crossed = crossed_capsules_adjoint(A, B, a_bar, b_bar);
  Force<Bar> moment = force_at(A.centre, crossed.centre);
  moment.n += cross(A.half * A.axis, crossed.axis);
  if (any(parallel)) {
    // an end of a is carried along, and the point of b slides with it where it lies inside
    const Real s = dot(B.axis, on_a - B.centre);
    const Vector3<Bar> end_bar = a_bar + (indicator<Real>(reaches(B, s)) * dot(b_bar, B.axis)) * B.axis;
    // the point of a lies where the end of b projects to: t = z.(end - o), and slides when a is displaced
    const Vector3<Real> r = on_b - A.centre;
    const Real t = dot(A.axis, r);
    const Bar t_bar = dot(A.axis, a_bar);
    const Vector3<Bar> centre_bar = a_bar - t_bar * A.axis, axis_bar = t * a_bar + t_bar * r;
    Force<Bar> sliding = force_at(A.centre, centre_bar);
    sliding.n += cross(A.axis, axis_bar);
    const Force<Bar> carried = force_at(on_a, end_bar);
    moment = {select_each(parallel, select_each(q.from_a, carried.n, sliding.n), moment.n),
              select_each(parallel, select_each(q.from_a, carried.f, sliding.f), moment.f)};
  }
  return with_other_round_side_b(moment, on_a, on_b, at, bar);
}

}  // namespace revolute::mujoco
