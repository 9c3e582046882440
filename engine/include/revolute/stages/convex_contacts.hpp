// Contacts of general convex shapes, one environment at a time: the shapes in the world, the points that the narrow phase
// finds, and their derivatives backward and forward.
//
// The narrow phase works in double about an origin near the two shapes; the moments returned are about the world's origin.
// Reads links. Not differentiated: the choice of points of a contact area, the choice of the nearest feature.
#pragma once

#include "revolute/collision/height_field.hpp"
#include "revolute/collision/plane_convex.hpp"
#include "revolute/stages/link_points.hpp"

namespace revolute {

// A shape in world axes about `origin`; near the origin no digits are lost.
template <class Real>
REVOLUTE_HD ConvexShape convex_shape(const Model& model, const Kinematics<Real>& kin, const Geom& geom,
                                     int lane, const Vector& origin) {
  ConvexShape out;
  out.hulls = &model;
  out.geom = &geom;
  out.radius = out.is_hull() ? geom.radius : 0;  // radius about the core
  out.size = geom.bound;
  Matrix3<double> R = identity_matrix<double>();
  Vector p = -origin;
  if (!is_world(geom.link)) {
    const Placement<Real>& frame = placement(kin, geom.link);
    for (int i = 0; i < 9; ++i) R.m[i] = get_lane(frame.R.m[i], lane);
    p = (get_lane(tree_origin(model, kin, geom.link), lane) - origin) + get_lane(frame.p, lane);
  }
  out.centre = p + R * vector3<double>(geom.position);
  out.R = out.is_hull() ? R : R * matrix3<double>(geom.rotation);
  out.p = out.is_hull() ? p : out.centre;
  return out;
}
// Whether the points of a pair are searched for and kept as touches.
REVOLUTE_HD inline bool is_searched(Pair pair) {
  return pair == Pair::convex_convex || pair == Pair::field_convex || pair == Pair::plane_convex;
}
// The origin for a pair: the centre of the shape that is not the ground.
template <class Real>
REVOLUTE_HD Vector pair_origin(const Model& model, const Kinematics<Real>& kin, const Candidate& candidate,
                               int lane) {
  const Geom& geom = model.geoms[candidate.pair == Pair::convex_convex ? candidate.geom_a : candidate.geom_b];
  return get_lane(world_point(model, kin, geom.link, geom.position), lane);
}

template <class Real>
REVOLUTE_HD void find_manifold(const Model& model, const Kinematics<Real>& kin, const Motion<Real>* V_free,
                               double h, const Candidate& candidate, int lane, double limit,
                               ContactManifold& out) {
  const Geom &a = model.geoms[candidate.geom_a], &b = model.geoms[candidate.geom_b];
  const Vector origin = pair_origin(model, kin, candidate, lane);
  const ConvexShape shape_b = convex_shape(model, kin, b, lane, origin);
  if (candidate.pair == Pair::convex_convex)
    return convex_pair(convex_shape(model, kin, a, lane, origin), shape_b, limit, out);
  const Vector normal = get_lane(world_direction(kin, a.link, matrix3<Real>(a.rotation).column(2)), lane);
  const Motion<Real> V = V_free ? at_link(V_free, b.link) : zero_motion<Real>();
  const Vector w = get_lane(V.w, lane), to_origin = origin - get_lane(tree_origin(model, kin, b.link), lane);
  const Vector v = get_lane(V.v, lane) + cross(w, to_origin);
  const Vector plane = get_lane(world_point(model, kin, a.link, a.position), lane);
  plane_convex(normal, plane - origin, shape_b, h, v, w, limit, out);
}

// Finds the points of a height field and a convex shape; calls give(touch) for each.
template <class Real, class Give>
REVOLUTE_HD void find_field_points(const Model& model, const Kinematics<Real>& kin,
                                   const Candidate& candidate, int lane, double limit, const Give& give) {
  const Geom& ground = model.geoms[candidate.geom_a];
  const Vector origin = pair_origin(model, kin, candidate, lane);
  const bool mujoco = model.contact_model == ContactModel::mujoco;
  field_convex(model.height_fields[ground.field], matrix3<double>(ground.rotation),
               vector3<double>(ground.position) - origin,
               convex_shape(model, kin, model.geoms[candidate.geom_b], lane, origin),
               {limit, mujoco, candidate.slots}, give);
}

// The reverse: moments about the world's origin. Lanes of cotangents of one environment share its touch.
template <class Real, class Bar>
REVOLUTE_HD PairMoments<Bar> convex_adjoint(const Model& model, const Kinematics<Real>& kin,
                                            const Candidate& candidate, const Touch* touches,
                                            const ContactPoint<Bar>& bar) {
  PairMoments<Bar> out = {zero_force<Bar>(), zero_force<Bar>()};
  for (int lane = 0; lane < Width<Bar>::value; ++lane) {
    const Touch& touch = touches[Width<Real>::value > 1 ? lane : 0];
    if (touch.kind == TouchKind::none) continue;
    const Vector origin = pair_origin(model, kin, candidate, lane);
    const ContactPoint<double> bar_lane = {get_lane(bar.gap, lane), get_lane(bar.point, lane),
                                           get_lane(bar.normal, lane)};
    const PairMoments<double> moments = touch_adjoint(touch, bar_lane);
    set_lane(out.a.f, lane, moments.a.f);
    set_lane(out.b.f, lane, moments.b.f);
    set_lane(out.a.n, lane, moments.a.n + cross(origin, moments.a.f));
    set_lane(out.b.n, lane, moments.b.n + cross(origin, moments.b.f));
  }
  return out;
}

// Forward mode: the twist of a link about `origin` from its tangents; the values of the twist are zero.
template <class Real>
REVOLUTE_HD Motion<Real> link_tangent(const Model& model, const Kinematics<Real>& kin, int link,
                                      const Vector& origin) {
  if (is_world(link)) return zero_motion<Real>();
  const Matrix3<Real>& R = placement(kin, link).R;
  const double centre[3] = {0, 0, 0};
  const Vector3<Real> p = world_point(model, kin, link, centre);
  const Vector p_value = get_lane(p, 0);
  Matrix3<Real> turned, still;
  for (int i = 0; i < 9; ++i) {
    still.m[i] = Real(get_lane(R.m[i], 0));
    turned.m[i] = R.m[i] - still.m[i];
  }
  const Matrix3<Real> W = turned * transpose(still);
  const Vector3<Real> w = {W(2, 1), W(0, 2), W(1, 0)};
  const Vector arm = p_value - origin;
  const double arm_numbers[3] = {arm.x, arm.y, arm.z}, p_numbers[3] = {p_value.x, p_value.y, p_value.z};
  return {w, (p - vector3<Real>(p_numbers)) - cross(w, vector3<Real>(arm_numbers))};
}
// Adds the tangents of a convex pair's answer; each component comes from its adjoint.
template <class Real>
REVOLUTE_HD void add_touch_tangents(const Model& model, const Kinematics<Real>& kin,
                                    const Candidate& candidate, const Touch& touch, ContactPoint<Real>& at) {
  const Vector origin = pair_origin(model, kin, candidate, 0);
  const Motion<Real> a = link_tangent(model, kin, candidate.link_a, origin),
                     b = link_tangent(model, kin, candidate.link_b, origin);
  const auto real = [](const Vector& v) { return Vector3<Real>{Real(v.x), Real(v.y), Real(v.z)}; };
  Real* components[7] = {&at.gap,      &at.point.x,  &at.point.y, &at.point.z,
                         &at.normal.x, &at.normal.y, &at.normal.z};
  for (int i = 0; i < 7; ++i) {
    const auto one = [i](int j) { return i == j ? 1.0 : 0.0; };
    const PairMoments<double> moments =
        touch_adjoint(touch, {one(0), {one(1), one(2), one(3)}, {one(4), one(5), one(6)}});
    *components[i] += dot(a, Force<Real>{real(moments.a.n), real(moments.a.f)}) +
                      dot(b, Force<Real>{real(moments.b.n), real(moments.b.f)});
  }
}

}  // namespace revolute
