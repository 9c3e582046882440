// Finds whether two round shapes meet within the step on their paths without contact.
//
// The plane between the points that are nearest now would deflect a body that flies past an edge. So the two shapes are moved
// with the velocities v*, and Newton's method on the gap finds the time at which they meet,
//   t += gap(t)/|speed(t)|,   speed = n . (v_b - v_a) at time t                                (1)
// The gap of convex shapes on straight paths is convex in t, so (1) comes from the left and never passes the first meeting. It
// ends when they meet, when they part again (speed >= 0) or beyond the step. Rotations are taken to first order.
// Not differentiated, like activity.
#pragma once

#include "revolute/collision/capsule_capsule.hpp"
#include "revolute/collision/sphere_box.hpp"
#include "revolute/collision/sphere_capsule.hpp"
#include "revolute/collision/sphere_sphere.hpp"
#include "revolute/stages/contact_list.hpp"

namespace revolute {

constexpr int meeting_steps = 12;

template <class Real>
REVOLUTE_HD inline Vector3<Real> velocity_at(const Model& model, const Kinematics<Real>& kin,
                                             const Motion<Real>* V, int link, const Vector3<Real>& point) {
  const Motion<Real> motion = at_link(V, link);
  return motion.v + cross(motion.w, point - tree_origin(model, kin, link));
}
template <class Real>
REVOLUTE_HD inline Vector3<Real> moved_centre(const Model& model, const Kinematics<Real>& kin,
                                              const Motion<Real>* V, const Geom& geom, Real t) {
  const Vector3<Real> centre = world_point(model, kin, geom.link, geom.position);
  return centre + t * velocity_at(model, kin, V, geom.link, centre);
}
template <class Real>
REVOLUTE_HD inline Segment<Real> moved_segment(const Model& model, const Kinematics<Real>& kin,
                                               const Motion<Real>* V, const Geom& geom, Real t) {
  Segment<Real> out = segment(model, kin, geom);
  out.centre = moved_centre(model, kin, V, geom, t);
  out.axis += t * cross(at_link(V, geom.link).w, out.axis);
  return out;
}
// For a sphere and a turning box, the box keeps its axes and the sphere circles it instead.
template <class Real>
REVOLUTE_HD inline ContactPoint<Real> moved_sphere_box(const Model& model, const Kinematics<Real>& kin,
                                                       const Motion<Real>* V, const Geom& a, const Geom& b,
                                                       Real t) {
  Box<Real> out = box(model, kin, b);
  out.centre = moved_centre(model, kin, V, b, t);
  const Vector3<Real> arm = moved_centre(model, kin, V, a, t) - out.centre;
  return sphere_box(out.centre + (arm - t * cross(at_link(V, b.link).w, arm)), Real(a.radius), out);
}
template <class Real>
REVOLUTE_HD inline ContactPoint<Real> moved_touch(const Model& model, const Kinematics<Real>& kin,
                                                  const Motion<Real>* V, const Candidate& candidate, Real t) {
  const Geom &a = model.geoms[candidate.geom_a], &b = model.geoms[candidate.geom_b];
  const Real radius_a(a.radius), radius_b(b.radius);
  switch (candidate.pair) {
    case Pair::sphere_sphere:
      return sphere_sphere(moved_centre(model, kin, V, a, t), radius_a, moved_centre(model, kin, V, b, t),
                           radius_b);
    case Pair::sphere_capsule:
      return sphere_capsule(moved_centre(model, kin, V, a, t), radius_a, moved_segment(model, kin, V, b, t),
                            radius_b);
    case Pair::capsule_capsule:
      return capsule_capsule(moved_segment(model, kin, V, a, t), radius_a, moved_segment(model, kin, V, b, t),
                             radius_b);
    default:
      return moved_sphere_box(model, kin, V, a, b, t);
  }
}

// The pairs that need this test; planes have no edges.
REVOLUTE_HD inline bool is_round(Pair pair) {
  return pair == Pair::sphere_sphere || pair == Pair::sphere_capsule || pair == Pair::capsule_capsule ||
         pair == Pair::sphere_box;
}

// Tests the environments in `asked`; returns true for the others.
template <class Real>
REVOLUTE_HD MaskOf<Real> paths_meet(const Model& model, const Kinematics<Real>& kin, const Motion<Real>* V,
                                    Real h, const Candidate& candidate, MaskOf<Real> asked) {
  Real t(0);
  MaskOf<Real> flying = asked, passes = asked & (!asked);
  for (int i = 0; i < meeting_steps && any(flying); ++i) {
    const ContactPoint<Real> at = moved_touch(model, kin, V, candidate, without_tangents(t));
    const Vector3<Real> on_a = at.point -
                               without_tangents(t) * velocity_at(model, kin, V, candidate.link_a, at.point),
                        on_b = at.point -
                               without_tangents(t) * velocity_at(model, kin, V, candidate.link_b, at.point);
    const Real speed = dot(at.normal, velocity_at(model, kin, V, candidate.link_b, on_b) -
                                          velocity_at(model, kin, V, candidate.link_a, on_a));
    // a gap as small as rounding counts as met
    const auto apart = less(Real(1e-12), at.gap);
    flying = flying & apart;
    const auto parts = less_equal(Real(0), speed);
    const Real next = t + at.gap / select(parts, Real(1), -speed);
    const auto gone = flying & (parts | less(h, next));
    passes = passes | gone;
    flying = flying & (!gone);
    t = select(flying, next, t);
  }
  return !passes;
}

}  // namespace revolute
