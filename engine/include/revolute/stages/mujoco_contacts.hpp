// MuJoCo's contacts for the pairs for which it has a closed formula (collision/mujoco): number, points, frames and gaps.
// A contact exists if the pair's formula gives it for gaps below margin + gap of the pair; it acts below the margin.
// Reads links. Not differentiated: the choice of points of a pair, the choice of the nearest feature.
#pragma once

#include "revolute/collision/mujoco/capsule_box.hpp"
#include "revolute/collision/mujoco/capsule_capsule.hpp"
#include "revolute/collision/mujoco/plane_mesh.hpp"
#include "revolute/collision/mujoco/sphere_cylinder.hpp"
#include "revolute/stages/contact_list.hpp"
#include "revolute/stages/round_adjoint.hpp"

namespace revolute::mujoco {

template <class Real>
REVOLUTE_HD inline MaskOf<Real> everywhere() {
  return less(Real(0), Real(1));
}
// Contacts are searched up to this distance.
REVOLUTE_HD inline double reach(const Candidate& candidate) { return candidate.margin + candidate.gap; }

template <class Real>
REVOLUTE_HD inline Box<double> box_of_lane(const Box<Real>& box, int lane) {
  return {get_lane(box.R, lane), get_lane(box.centre, lane), get_lane(box.half, lane)};
}

// The axis of the first tangent: the capsule's own axis against a plane, else MuJoCo's default.
template <class Real>
REVOLUTE_HD inline Vector3<Real> frame_axis(const Model& model, const Kinematics<Real>& kin,
                                            const Candidate& candidate, const Vector3<Real>& normal) {
  if (candidate.pair == Pair::plane_capsule) return segment(model, kin, model.geoms[candidate.geom_b]).axis;
  return default_axis(normal);
}

// Finds the points against a plane; calls `give(slot, point, radius, exists)` for each.
template <class Real, class Give>
REVOLUTE_HD void plane_points(const Model& model, const Kinematics<Real>& kin, const Candidate* slots,
                              const Give& give) {
  const Candidate& candidate = slots[0];
  const Geom &a = model.geoms[candidate.geom_a], &b = model.geoms[candidate.geom_b];
  const Vector3<Real> n = plane_normal(kin, a), origin = world_point(model, kin, a.link, a.position);
  const Real far(reach(candidate));
  const auto height = [&](const Vector3<Real>& x) { return dot(n, x - origin); };
  if (candidate.pair == Pair::plane_box) {
    // the first four corners that are near, and not above the box's centre
    const Vector3<Real> centre = world_point(model, kin, b.link, b.position);
    Real taken(0);
    for (int s = 0; s < candidate.slots; ++s) {
      const Vector3<Real> x = world_point(model, kin, b.link, slots[s].point);
      const auto exists =
          less_equal(height(x), far) & less_equal(dot(n, x - centre), Real(0)) & less(taken, Real(4));
      taken += indicator<Real>(exists);
      give(s, x, 0.0, exists);
    }
    return;
  }
  if (candidate.pair == Pair::plane_cylinder) {
    const Cylinder<Real> round = cylinder(model, kin, b);
    const PlaneCylinder<Real> axes = plane_cylinder_axes(n, round);
    const auto near = less_equal(height(plane_cylinder_point(axes, round, 0)), far);
    for (int s = 0; s < candidate.slots; ++s) {
      const Vector3<Real> x = plane_cylinder_point(axes, round, s);
      give(s, x, 0.0, near & less_equal(height(x), far));
    }
    return;
  }
  if (candidate.pair == Pair::plane_ellipsoid)
    return give(0, plane_ellipsoid_point(n, ellipsoid(model, kin, b)), 0.0, everywhere<Real>());
  for (int s = 0; s < candidate.slots; ++s)
    give(s, world_point(model, kin, b.link, slots[s].point), candidate.radius, everywhere<Real>());
}

// Finds the vertices of a mesh that touch a plane, per environment.
template <class Real, class Give>
REVOLUTE_HD void plane_mesh_points(const Model& model, const Kinematics<Real>& kin,
                                   const Candidate& candidate, MaskOf<Real> near, const Give& give) {
  const Geom &a = model.geoms[candidate.geom_a], &b = model.geoms[candidate.geom_b];
  const Vector3<Real> normals = plane_normal(kin, a), planes = world_point(model, kin, a.link, a.position);
  const double origin[3] = {0, 0, 0};
  const Vector3<Real> at = world_point(model, kin, b.link, origin);
  LowMeshVertices low[Width<Real>::value];
  for (int lane = 0; lane < Width<Real>::value; ++lane) {
    if (!get_lane(near, lane)) continue;
    const Vector normal = get_lane(normals, lane);
    Matrix3<double> R = identity_matrix<double>();
    if (!is_world(b.link)) R = get_lane(placement(kin, b.link).R, lane);
    low_mesh_vertices(model, b, transpose_times(R, normal),
                      dot(normal, get_lane(at, lane) - get_lane(planes, lane)), vector3<double>(b.position),
                      reach(candidate), low[lane]);
  }
  for (int s = 0; s < candidate.slots; ++s) {
    Vector3<Real> local = vector3<Real>(b.position);
    Real present(0);
    for (int lane = 0; lane < Width<Real>::value; ++lane) {
      if (s >= low[lane].count) continue;
      set_lane(local, lane, vector3<double>(model.vertices + 3 * (b.vertex + low[lane].vertex[s])));
      set_lane(present, lane, 1.0);
    }
    if (!any(less(Real(0), present))) return;
    const Vector3<Real> x = at + world_direction(kin, b.link, local);
    give(s, x, 0.0, less(Real(0), present));
  }
}

// Finds the points of two boxes; `boxes` gets the data for the adjoint.
template <class Real, class Give>
REVOLUTE_HD void box_box_points(const Model& model, const Kinematics<Real>& kin, const Candidate& candidate,
                                MaskOf<Real> near, const Give& give) {
  const Box<Real> a = box(model, kin, model.geoms[candidate.geom_a]),
                  b = box(model, kin, model.geoms[candidate.geom_b]);
  BoxChoice choices[Width<Real>::value];
  for (int lane = 0; lane < Width<Real>::value; ++lane)
    if (get_lane(near, lane))
      choose_box_points(box_of_lane(a, lane), box_of_lane(b, lane), reach(candidate), choices[lane]);
  for (int s = 0; s < candidate.slots; ++s) {
    ContactPoint<Real> at = {Real(0), a.centre, {Real(0), Real(0), Real(1)}};
    BoxPoint points[Width<Real>::value] = {};
    Real present(0);
    for (int lane = 0; lane < Width<Real>::value; ++lane) {
      if (s >= choices[lane].count) continue;
      points[lane] = choices[lane].points[s];
      set_lane(present, lane, 1.0);
      if constexpr (HasTangents<Real>::value) {
        at = box_box(points[lane], a, b);
      } else {
        const ContactPoint<double> one = box_box(points[lane], box_of_lane(a, lane), box_of_lane(b, lane));
        set_lane(at.gap, lane, one.gap);
        set_lane(at.point, lane, one.point);
        set_lane(at.normal, lane, one.normal);
      }
    }
    if (!any(less(Real(0), present))) return;
    give(s, at, points, less(Real(0), present));
  }
}

// Two shapes, neither a plane nor a mesh: returns point `slot`, and the environments in which it exists.
template <class Real>
REVOLUTE_HD ContactPoint<Real> round_touch(const Model& model, const Kinematics<Real>& kin,
                                           const Candidate& candidate, MaskOf<Real>& exists) {
  const Geom &a = model.geoms[candidate.geom_a], &b = model.geoms[candidate.geom_b];
  const Vector3<Real> at_a = world_point(model, kin, a.link, a.position);
  const Real radius_a(a.radius), radius_b(b.radius);
  const auto axis = [&](const Geom& geom) { return segment(model, kin, geom).axis; };
  exists = everywhere<Real>();
  switch (candidate.pair) {
    case Pair::sphere_sphere:
      return round_pair(at_a, radius_a, axis(a), world_point(model, kin, b.link, b.position), radius_b,
                        axis(b));
    case Pair::sphere_capsule: {
      const Segment<Real> B = segment(model, kin, b);
      const Real t = clamp_to(B, dot(at_a - B.centre, B.axis));
      return round_pair(at_a, radius_a, axis(a), point_on(B, t), radius_b, B.axis);
    }
    case Pair::sphere_cylinder:
      return sphere_cylinder(at_a, radius_a, axis(a), cylinder(model, kin, b));
    case Pair::capsule_capsule:
      return capsule_capsule(segment(model, kin, a), radius_a, segment(model, kin, b), radius_b,
                             candidate.slot, exists);
    default:
      return sphere_box(at_a, radius_a, box(model, kin, b));
  }
}

// Finds the points of a capsule against a box.
template <class Real, class Give>
REVOLUTE_HD void capsule_box_points(const Model& model, const Kinematics<Real>& kin,
                                    const Candidate& candidate, const Give& give) {
  const Geom &a = model.geoms[candidate.geom_a], &b = model.geoms[candidate.geom_b];
  const Segment<Real> A = segment(model, kin, a);
  const Box<Real> B = box(model, kin, b);
  const CapsuleBox<Real> places =
      capsule_box_places(A, a.radius, a.half[2], B, vector3<double>(b.half), reach(candidate));
  give(0, capsule_box(places, A, Real(a.radius), B, 0), everywhere<Real>());
  if (any(places.two)) give(1, capsule_box(places, A, Real(a.radius), B, 1), places.two);
}

// The reverse of all the functions above: moments about the world's origin.
template <class Real, class Bar>
REVOLUTE_HD PairMoments<Bar> box_box_adjoint(const Model& model, const Kinematics<Real>& kin,
                                             const Contact<Real>& contact, const ContactPoint<Bar>& bar) {
  const Candidate& candidate = *contact.candidate;
  const Box<Real> a = box(model, kin, model.geoms[candidate.geom_a]),
                  b = box(model, kin, model.geoms[candidate.geom_b]);
  PairMoments<Bar> out = {zero_force<Bar>(), zero_force<Bar>()};
  for (int lane = 0; lane < Width<Bar>::value; ++lane) {
    const int own = Width<Real>::value > 1 ? lane : 0;
    if (!get_lane(contact.active, own)) continue;
    const ContactPoint<double> at = {get_lane(contact.at.gap, own), get_lane(contact.at.point, own),
                                     get_lane(contact.at.normal, own)},
                               bar_lane = {get_lane(bar.gap, lane), get_lane(bar.point, lane),
                                           get_lane(bar.normal, lane)};
    const PairMoments<double> moments =
        box_box_adjoint(contact.boxes[own], box_of_lane(a, own), box_of_lane(b, own), at, bar_lane);
    set_lane(out.a.f, lane, moments.a.f);
    set_lane(out.a.n, lane, moments.a.n);
    set_lane(out.b.f, lane, moments.b.f);
    set_lane(out.b.n, lane, moments.b.n);
  }
  return out;
}

template <class Real, class Bar>
REVOLUTE_HD Force<Bar> plane_adjoint(const Model& model, const Kinematics<Real>& kin,
                                     const Contact<Real>& contact, const ContactPoint<Bar>& bar) {
  const Candidate& candidate = *contact.candidate;
  const Geom &a = model.geoms[candidate.geom_a], &b = model.geoms[candidate.geom_b];
  const Vector3<Real> n = plane_normal(kin, a);
  const Vector3<Bar> x_bar = plane_point_adjoint(contact.at, bar);
  switch (candidate.pair) {
    case Pair::plane_cylinder:
      return plane_cylinder_adjoint(n, cylinder(model, kin, b), candidate.slot, x_bar);
    case Pair::plane_ellipsoid:
      return plane_ellipsoid_adjoint(n, ellipsoid(model, kin, b), x_bar);
    default:
      return force_at(contact.centre, x_bar);
  }
}

template <class Real, class Bar>
REVOLUTE_HD PairMoments<Bar> touch_adjoint(const Model& model, const Kinematics<Real>& kin,
                                           const Contact<Real>& contact, const ContactPoint<Bar>& bar) {
  const Candidate& candidate = *contact.candidate;
  const Geom &a = model.geoms[candidate.geom_a], &b = model.geoms[candidate.geom_b];
  if (a.shape == Shape::plane) return {zero_force<Bar>(), plane_adjoint(model, kin, contact, bar)};
  switch (candidate.pair) {
    case Pair::sphere_cylinder:
      return sphere_cylinder_adjoint(world_point(model, kin, a.link, a.position), Real(a.radius),
                                     cylinder(model, kin, b), contact.at, bar);
    case Pair::capsule_capsule:
      return capsule_capsule_adjoint(segment(model, kin, a), Real(a.radius), segment(model, kin, b),
                                     candidate.slot, contact.at, bar);
    case Pair::capsule_box:
      return capsule_box_adjoint(segment(model, kin, a), a.radius, a.half[2], box(model, kin, b),
                                 vector3<double>(b.half), reach(candidate), candidate.slot, contact.at, bar);
    case Pair::box_box:
      return box_box_adjoint(model, kin, contact, bar);
    default:
      return round_adjoint(model, kin, contact, bar);
  }
}

}  // namespace revolute::mujoco
