// The core of a capsule: a segment from o - L u to o + L u.
#pragma once

#include "revolute/collision/contact_point.hpp"

namespace revolute {

template <class Real>
struct Segment {
  Vector3<Real> centre, axis;  // world; the axis has unit length
  Real half;
};

// t, or the end of the segment if t lies beyond it. Exactly at an end it is the end, which does not move with t.
template <class Real>
REVOLUTE_HD inline Real clamp_to(const Segment<Real>& segment, Real t) {
  return clamp_magnitude(t, segment.half);
}
// 1 where t lies inside of the segment, 0 where it was cut
template <class Real>
REVOLUTE_HD inline Real inside(const Segment<Real>& segment, Real t) {
  return indicator<Real>(less(abs(t), segment.half));
}
template <class Real>
REVOLUTE_HD inline Vector3<Real> point_on(const Segment<Real>& segment, Real t) {
  return segment.centre + t * segment.axis;
}

}  // namespace revolute
