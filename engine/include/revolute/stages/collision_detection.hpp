// Collision detection finds the contacts that may act within this step, with their frames and wrenches.
//
// Every candidate of the model is one possible contact. It is active if it would come closer than `margin` in this step:
//   min(gap, gap + h n.(v_b - v_a)) < margin,   with the velocities without contact          (1)
// A contact that stays farther away gets no impulse in this step. A contact of round shapes also gets none if (1) foresees it
// but the paths without contact pass by (paths_meet.hpp). Row d in {normal, two tangents} acts on a link
// through the wrench (x d; d) about its tree's reference point, with sign - on a and + on b:
//   J v = f_a . V_a + f_b . V_b                                                               (2)
// A pack keeps a contact if any of its environments does; in the others it is masked and gets no impulse.
// Pairs of general convex shapes are searched one environment at a time in double (convex_contacts.hpp). A Touch per
// environment keeps the answer and how it depends on the two shapes. Spheres about the shapes, grown by their motion
// within the step, exclude pairs that cannot meet (1).
// Not differentiated: activity, the choice of points of a contact area, the choice of the nearest feature.
#pragma once

#include "revolute/collision/capsule_capsule.hpp"
#include "revolute/collision/plane_point.hpp"
#include "revolute/stages/broad_phase.hpp"
#include "revolute/stages/convex_contacts.hpp"
#include "revolute/stages/mujoco_contacts.hpp"
#include "revolute/stages/paths_meet.hpp"

namespace revolute {

template <class Real>
REVOLUTE_HD ContactPoint<Real> touch(const Model& model, const Kinematics<Real>& kin,
                                     const Candidate& candidate, Vector3<Real>& centre) {
  const Geom &a = model.geoms[candidate.geom_a], &b = model.geoms[candidate.geom_b];
  const Vector3<Real> at_a = world_point(model, kin, a.link, a.position);
  const Real radius_a(a.radius), radius_b(b.radius);
  switch (candidate.pair) {
    case Pair::plane_point:
      centre = world_point(model, kin, b.link, candidate.point);
      return plane_point(plane_normal(kin, a), at_a, centre, Real(candidate.radius));
    case Pair::sphere_sphere:
      return sphere_sphere(at_a, radius_a, world_point(model, kin, b.link, b.position), radius_b);
    case Pair::sphere_capsule:
      return sphere_capsule(at_a, radius_a, segment(model, kin, b), radius_b);
    case Pair::capsule_capsule:
      return capsule_capsule(segment(model, kin, a), radius_a, segment(model, kin, b), radius_b);
    default:
      return sphere_box(at_a, radius_a, box(model, kin, b));
  }
}

// The margin of (1).
template <class Real>
REVOLUTE_HD inline Real watched_distance(const Model& model, const Candidate& candidate) {
  return Real(model.contact_model == ContactModel::mujoco ? contact_distance(model, candidate)
                                                          : model.margin);
}
// Whether the two may come closer than the margin within the step. Shapes farther apart than `limit` cannot.
template <class Real>
REVOLUTE_HD MaskOf<Real> may_meet(const Model& model, const Kinematics<Real>& kin,
                                  const Contacts<Real>& contacts, const Candidate& candidate, Real& limit) {
  const Geom &a = model.geoms[candidate.geom_a], &b = model.geoms[candidate.geom_b];
  const SweptSphere<Real>&at_a = contacts.spheres[candidate.geom_a],
        &at_b = contacts.spheres[candidate.geom_b];
  const Vector3<Real> between = at_b.centre - at_a.centre;
  const Real margin = watched_distance<Real>(model, candidate);
  if (a.shape == Shape::plane) {
    limit = margin + at_b.travel;
    return less(dot(plane_normal(kin, a), between), Real(b.bound) + limit);
  }
  limit = margin + at_a.travel + at_b.travel;
  const Real reach = Real(a.bound) + Real(b.bound) + limit;
  return boxes_meet(model, contacts, candidate) & less(dot(between, between), reach * reach);
}

// The reverse of `touch`: moments about the world's origin.
template <class Real, class Bar>
REVOLUTE_HD PairMoments<Bar> touch_adjoint(const Model& model, const Kinematics<Real>& kin,
                                           const Contact<Real>& contact, const ContactPoint<Bar>& bar) {
  const Candidate& candidate = *contact.candidate;
  const Geom &a = model.geoms[candidate.geom_a], &b = model.geoms[candidate.geom_b];
  switch (candidate.pair) {
    case Pair::plane_point:
      return {zero_force<Bar>(), force_at(contact.centre, plane_point_adjoint(contact.at, bar))};
    case Pair::capsule_capsule:
      return capsule_capsule_adjoint(segment(model, kin, a), Real(a.radius), segment(model, kin, b),
                                     contact.at, bar);
    case Pair::plane_convex:
    case Pair::convex_convex:
    case Pair::field_convex:
      return convex_adjoint(model, kin, candidate, contact.touches, bar);
    default:
      return round_adjoint(model, kin, contact, bar);
  }
}

// Frame and wrenches of a contact whose point and normal are known.
template <class Real>
REVOLUTE_HD void place_contact(const Model& model, const Kinematics<Real>& kin, Contact<Real>& contact) {
  const Candidate& candidate = *contact.candidate;
  const Geom& a = model.geoms[candidate.geom_a];
  contact.axis[0] = contact.at.normal;
  if (model.contact_model == ContactModel::mujoco) {
    mujoco::tangents(contact.axis[0], mujoco::frame_axis(model, kin, candidate, contact.axis[0]),
                     contact.axis[1], contact.axis[2]);
  } else if (a.shape == Shape::plane) {
    for (int d = 0; d < 2; ++d) contact.axis[1 + d] = geom_rotation(kin, a).column(d);
  } else {
    tangents(contact.axis[0], contact.axis[1], contact.axis[2]);
  }
  const Vector3<Real> arm_a = contact.at.point - tree_origin(model, kin, candidate.link_a);
  const Vector3<Real> arm_b = contact.at.point - tree_origin(model, kin, candidate.link_b);
  for (int d = 0; d < 3; ++d) {
    contact.force_a[d] = -force_at(arm_a, contact.axis[d]);
    contact.force_b[d] = force_at(arm_b, contact.axis[d]);
  }
}

// The degrees of freedom that move either shape. Those of an unlisted pair are found, once for all of its points.
template <class Real>
REVOLUTE_HD RowPath contact_path(const Model& model, Contacts<Real>& contacts, const Candidate& candidate) {
  if (candidate.path >= 0) return row_path(model, candidate.path);
  if (contacts.count > 0) {
    const Contact<Real>& last = contacts.list[contacts.count - 1];
    if (last.candidate->geom_a == candidate.geom_a && last.candidate->geom_b == candidate.geom_b)
      return last.path;
  }
  int* const dofs = contacts.near.found_dofs + contacts.near.found;
  RowPath out = {0, dofs};
  for (int a = moved_link(candidate.link_a), b = moved_link(candidate.link_b); a >= 0 || b >= 0;) {
    const int k = a > b ? a : b;
    dofs[out.count++] = k;
    if (a == k) a = model.dofs[k].parent;
    if (b == k) b = model.dofs[k].parent;
  }
  contacts.near.found += out.count;
  return out;
}

// Adds the contact to the list if (1) holds in any environment. `present` is 0 if the slot holds no contact. A "far
// away" place would not do instead: an environment that blows up could reach it, but only when neighbours keep the slot.
template <class Real>
REVOLUTE_HD void consider(const Model& model, const Kinematics<Real>& kin, const Motion<Real>* V_free, Real h,
                          Real present, Contact<Real>& contact, Contacts<Real>& out) {
  contact.gap = contact.at.gap;
  if (model.contact_model == ContactModel::mujoco) {
    const Candidate& of = *contact.candidate;
    const auto there = less(Real(0), present);
    contact.active = there & less(contact.gap, Real(of.margin));
    contact.near = there & less(contact.gap, watched_distance<Real>(model, of));
    if (!any(contact.near)) return;
    place_contact(model, kin, contact);
    ++out.count;
    return;
  }
  place_contact(model, kin, contact);
  const Candidate& candidate = *contact.candidate;
  const Real speed = dot(at_link(V_free, candidate.link_a), contact.force_a[0]) +
                     dot(at_link(V_free, candidate.link_b), contact.force_b[0]);  // (2)
  contact.active = less(Real(0), present) & less(minimum(contact.gap, contact.gap + h * speed),
                                                 watched_distance<Real>(model, candidate));
  if (is_round(candidate.pair)) {
    const auto foreseen =
        contact.active & less(Real(0), contact.gap) & less(contact.gap + h * speed, Real(0));
    if (any(foreseen))
      contact.active = contact.active & paths_meet(model, kin, V_free, h, candidate, foreseen);
  }
  if (!any(contact.active)) return;
  contact.path = contact_path(model, out, candidate);
  ++out.count;
}

// Adds the points of a pair that are kept as touches, per environment. `counts` has the number of points per environment;
// touch_of(slot, lane) is one of them. Slots that an environment does not use stay far away.
template <class Real, class TouchOf>
REVOLUTE_HD void consider_touches(const Model& model, const Kinematics<Real>& kin, const Motion<Real>* V_free,
                                  Real h, const Candidate* first, const int* counts, const TouchOf& touch_of,
                                  Contacts<Real>& out) {
  const Candidate& candidate = *first;
  int count = 0;
  for (int lane = 0; lane < Width<Real>::value; ++lane) count = counts[lane] > count ? counts[lane] : count;
  for (int s = 0; s < count && s < candidate.slots; ++s) {
    Contact<Real>& contact = out.list[out.count];
    contact.candidate = first + s;
    contact.touches = out.touches + std::size_t(out.count) * Width<Real>::value;
    Real present(0);
    for (int lane = 0; lane < Width<Real>::value; ++lane) {
      Touch& touch = contact.touches[lane];
      const Vector origin = pair_origin(model, kin, candidate, lane);
      if (s < counts[lane]) {
        touch = touch_of(s, lane);
        set_lane(present, lane, 1.0);
      } else {
        touch.kind = TouchKind::none, touch.at = {1e9, zero3<double>(), {0, 0, 1}};
      }
      set_lane(contact.at.gap, lane, touch.at.gap);
      set_lane(contact.at.point, lane, origin + touch.at.point);
      set_lane(contact.at.normal, lane, touch.at.normal);
    }
    if constexpr (HasTangents<Real>::value)
      add_touch_tangents(model, kin, candidate, contact.touches[0], contact.at);
    consider(model, kin, V_free, h, present, contact, out);
  }
}
// Adds the points of a convex pair, or of a plane and a convex shape.
template <class Real>
REVOLUTE_HD void consider_convex(const Model& model, const Kinematics<Real>& kin, const Motion<Real>* V_free,
                                 Real h, const Candidate* first, Contacts<Real>& out) {
  Real limit;
  const auto near = may_meet(model, kin, out, *first, limit);
  if (!any(near)) return;
  ContactManifold manifolds[Width<Real>::value];
  int counts[Width<Real>::value];
  for (int lane = 0; lane < Width<Real>::value; ++lane) {
    if (get_lane(near, lane))
      find_manifold(model, kin, V_free, get_lane(h, lane), *first, lane, get_lane(limit, lane),
                    manifolds[lane]);
    counts[lane] = manifolds[lane].count;
  }
  consider_touches(
      model, kin, V_free, h, first, counts,
      [&](int s, int lane) -> const Touch& { return manifolds[lane].points[s]; }, out);
}
// Adds the points of a height field and a shape. They are found in the memory of the list's next contacts, so a point never
// overwrites an earlier one.
template <class Real>
REVOLUTE_HD void consider_field(const Model& model, const Kinematics<Real>& kin, const Motion<Real>* V_free,
                                Real h, const Candidate* first, Contacts<Real>& out) {
  Real limit;
  const auto near = may_meet(model, kin, out, *first, limit);
  if (!any(near)) return;
  constexpr int width = Width<Real>::value;
  Touch* const room = out.touches + std::size_t(out.count) * width;
  int counts[width];
  for (int lane = 0; lane < width; ++lane) {
    counts[lane] = 0;
    if (get_lane(near, lane))
      find_field_points(model, kin, *first, lane, get_lane(limit, lane),
                        [&](const Touch& touch) { room[counts[lane]++ * width + lane] = touch; });
  }
  consider_touches(
      model, kin, V_free, h, first, counts, [&](int s, int lane) { return room[s * width + lane]; }, out);
}

// Adds MuJoCo's contacts of the pair whose first slot is `first`.
template <class Real>
REVOLUTE_HD void consider_mujoco(const Model& model, const Kinematics<Real>& kin, const Motion<Real>* V_free,
                                 Real h, const Candidate* first, Contacts<Real>& out) {
  const Candidate& candidate = *first;
  const Geom& a = model.geoms[candidate.geom_a];
  Real limit;
  const auto near = may_meet(model, kin, out, candidate, limit);
  if (!any(near)) return;
  const auto give = [&](int slot, const ContactPoint<Real>& at, MaskOf<Real> exists) {
    Contact<Real>& contact = out.list[out.count];
    contact.candidate = first + slot;
    contact.at = at;
    consider(model, kin, V_free, h, indicator<Real>(near & exists), contact, out);
  };
  const auto give_plane_point = [&](int slot, const Vector3<Real>& x, double radius, MaskOf<Real> exists) {
    out.list[out.count].centre = x;
    const Vector3<Real> plane = world_point(model, kin, a.link, a.position);
    give(slot, plane_point(plane_normal(kin, a), plane, x, Real(radius)), exists);
  };
  const auto give_box_point = [&](int slot, const ContactPoint<Real>& at, const mujoco::BoxPoint* points,
                                  MaskOf<Real> exists) {
    mujoco::BoxPoint* kept = out.boxes + std::size_t(out.count) * Width<Real>::value;
    for (int lane = 0; lane < Width<Real>::value; ++lane) kept[lane] = points[lane];
    out.list[out.count].boxes = kept;
    give(slot, at, exists);
  };
  if (candidate.pair == Pair::plane_mesh)
    return mujoco::plane_mesh_points(model, kin, candidate, near, give_plane_point);
  if (a.shape == Shape::plane) return mujoco::plane_points(model, kin, first, give_plane_point);
  if (candidate.pair == Pair::box_box)
    return mujoco::box_box_points(model, kin, candidate, near, give_box_point);
  if (candidate.pair == Pair::capsule_box) return mujoco::capsule_box_points(model, kin, candidate, give);
  for (int s = 0; s < candidate.slots; ++s) {
    MaskOf<Real> exists;
    const ContactPoint<Real> at = mujoco::round_touch(model, kin, first[s], exists);
    if (any(exists)) give(s, at, exists);
  }
}

// Adds the contact of a pair that has a closed formula in the hard model.
template <class Real>
REVOLUTE_HD void consider_touch(const Model& model, const Kinematics<Real>& kin, const Motion<Real>* V_free,
                                Real h, const Candidate* only, Contacts<Real>& out) {
  const Candidate& candidate = *only;
  Contact<Real>& contact = out.list[out.count];
  contact.candidate = only;
  contact.at = touch(model, kin, candidate, contact.centre);
  consider(model, kin, V_free, h, indicator<Real>(boxes_meet(model, out, candidate)), contact, out);
}

template <class Real>
REVOLUTE_HD void collision_detection(const Model& model, const Kinematics<Real>& kin,
                                     const Motion<Real>* V_free, Real h, Contacts<Real>& out) {
  out.count = 0;
  if (!model.contact) return;
  const bool mujoco = model.contact_model == ContactModel::mujoco;
  if (mujoco || model.nconvex > 0 || model.nswept > 0) swept_spheres(model, kin, V_free, h, out);
  broad_phase(model, kin, out);
  visit_near_pairs(model, out, [&](const Candidate* first) {
    if (has_unlisted_pairs(model))
      expect_room(std::size_t(out.count) + first->slots, contact_capacity(model));
    const Pair pair = first->pair;
    if (pair == Pair::plane_convex || pair == Pair::convex_convex)
      consider_convex(model, kin, V_free, h, first, out);
    else if (pair == Pair::field_convex)
      consider_field(model, kin, V_free, h, first, out);
    else if (mujoco)
      consider_mujoco(model, kin, V_free, h, first, out);
    else
      consider_touch(model, kin, V_free, h, first, out);
  });
}

// The moment of displacing a plane together with the other shape: this moves the contact and turns its frame, but leaves the
// gap.
template <class Real, class Bar>
REVOLUTE_HD Force<Bar> plane_moment(const Model& model, const Kinematics<Real>& kin,
                                    const Contact<Real>& contact, const Vector3<Bar>* axis_bar,
                                    const Vector3<Bar>& point_bar) {
  Force<Bar> out = force_at(contact.at.point, point_bar);
  if (model.contact_model != ContactModel::mujoco) {
    for (int d = 0; d < 3; ++d) out.n += cross(contact.axis[d], axis_bar[d]);
    return out;
  }
  const Vector3<Real>& n = contact.axis[0];
  const Vector3<Real> axis = mujoco::frame_axis(model, kin, *contact.candidate, n);
  Vector3<Bar> normal_bar = axis_bar[0], frame_bar = zero3<Bar>();
  mujoco::tangents_adjoint(n, axis, axis_bar[1], axis_bar[2], normal_bar, frame_bar);
  out.n += cross(n, normal_bar);
  if (contact.candidate->pair == Pair::plane_capsule) out.n += cross(axis, frame_bar);
  return out;
}

// Adds the moments on the two links of one contact.
template <class Real, class Bar>
REVOLUTE_HD void collision_detection_adjoint(const Model& model, const Kinematics<Real>& kin,
                                             const Contact<Real>& contact, const ContactCotangent<Bar>& bar,
                                             KinematicsCotangent<Bar>& kin_bar) {
  const Candidate& candidate = *contact.candidate;
  const Vector3<Real> origin_a = tree_origin(model, kin, candidate.link_a),
                      origin_b = tree_origin(model, kin, candidate.link_b);
  const Vector3<Real> arm_a = contact.at.point - origin_a, arm_b = contact.at.point - origin_b;
  // reverse of the wrenches (x d; d)
  ContactPoint<Bar> point_bar = {bar.gap, bar.point, zero3<Bar>()};
  Vector3<Bar> axis_bar[3];
  for (int d = 0; d < 3; ++d) {
    const Force<Bar>&a = bar.force_a[d], &b = bar.force_b[d];
    axis_bar[d] = bar.axis[d] + (b.f + cross(b.n, arm_b)) - (a.f + cross(a.n, arm_a));
    point_bar.point += cross(contact.axis[d], b.n - a.n);
  }
  const bool mujoco_frame = model.contact_model == ContactModel::mujoco;
  Vector3<Bar> frame_bar = zero3<Bar>();
  const Vector3<Real>& n = contact.axis[0];
  const bool is_plane = model.geoms[candidate.geom_a].shape == Shape::plane;
  // the axes of a plane move with it, except for a tangent along a capsule
  if (!is_plane) {
    point_bar.normal = axis_bar[0];
    if (mujoco_frame)
      mujoco::tangents_adjoint(n, mujoco::default_axis(n), axis_bar[1], axis_bar[2], point_bar.normal,
                               frame_bar);
    else
      tangents_adjoint(n, axis_bar[1], axis_bar[2], point_bar.normal);
  }
  const bool closed = mujoco_frame && !is_searched(candidate.pair);
  PairMoments<Bar> moments = closed ? mujoco::touch_adjoint(model, kin, contact, point_bar)
                                    : touch_adjoint(model, kin, contact, point_bar);
  if (candidate.pair == Pair::plane_capsule) {
    const Vector3<Real> axis = mujoco::frame_axis(model, kin, candidate, n);
    Vector3<Bar> unused = zero3<Bar>();
    mujoco::tangents_adjoint(n, axis, axis_bar[1], axis_bar[2], unused, frame_bar);
    moments.b.n += cross(axis, frame_bar);
  }
  if (is_mocap(candidate.link_a) && is_plane)
    moments.a = plane_moment(model, kin, contact, axis_bar, point_bar.point) + -moments.b;
  add_world_moment(model, kin, candidate.link_a, moments.a, kin_bar);
  add_world_moment(model, kin, candidate.link_b, moments.b, kin_bar);
}

}  // namespace revolute
