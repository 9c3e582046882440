// Collision detection: the contacts that may act within this step, with their frames and wrenches.
//
// Every candidate of the model is one possible contact. It is active when it would come closer than `margin` in this step:
//   min(gap, gap + h n.(v_b - v_a)) < margin,   velocities those without contact              (1)
// A contact that stays farther away gets no impulse from this step. Row d in {normal, two tangents} acts on a link
// through the wrench (x d; d) about its tree's reference point, with sign - on a and + on b:
//   J v = f_a . V_a + f_b . V_b                                                               (2)
// A pack keeps a contact when any of its environments does; elsewhere it is masked and gets no impulse.
// Not differentiated: activity, which vertices of a mesh are the deepest, which feature is nearest.
#pragma once

#include "revolute/collision/capsule_capsule.hpp"
#include "revolute/collision/plane_point.hpp"
#include "revolute/collision/sphere_box.hpp"
#include "revolute/collision/sphere_capsule.hpp"
#include "revolute/collision/sphere_sphere.hpp"
#include "revolute/stages/link_points.hpp"

namespace revolute {

template <class Real>
struct Contact {
  int candidate;
  MaskOf<Real> active;
  Real gap;
  Vector3<Real> centre;        // plane_mesh: the vertex that touches
  ContactPoint<Real> at;
  Vector3<Real> axis[3];       // normal, two tangents
  Force<Real> force_a[3], force_b[3];
};

template <class Real>
struct ContactCotangent {
  Real gap;
  Vector3<Real> axis[3];
  Force<Real> force_a[3], force_b[3];

  REVOLUTE_HD void clear() {
    gap = Real(0);
    for (int d = 0; d < 3; ++d) {
      axis[d] = zero3<Real>();
      force_a[d] = force_b[d] = zero_force<Real>();
    }
  }
};

template <class Real>
struct Contacts {
  int count;
  Contact<Real>* list;

  Contacts(const Model& model, Arena& arena) : count(0), list(arena.take<Contact<Real>>(model.ncandidate)) {}
};

template <class Real>
REVOLUTE_HD inline Matrix3<Real> geom_rotation(const Kinematics<Real>& kin, const Geom& geom) {
  const Matrix3<Real> local = matrix3<Real>(geom.rotation);
  return geom.link < 0 ? local : kin.links[geom.link].R * local;
}
template <class Real>
REVOLUTE_HD inline Segment<Real> segment(const Model& model, const Kinematics<Real>& kin, const Geom& geom) {
  const Vector3<Real> axis = {Real(geom.rotation[2]), Real(geom.rotation[5]), Real(geom.rotation[8])};
  return {world_point(model, kin, geom.link, geom.position), geom.link < 0 ? axis : kin.links[geom.link].R * axis, Real(geom.half[2])};
}
template <class Real>
REVOLUTE_HD inline Box<Real> box(const Model& model, const Kinematics<Real>& kin, const Geom& geom) {
  return {geom_rotation(kin, geom), world_point(model, kin, geom.link, geom.position), vector3<Real>(geom.half)};
}

template <class Real>
REVOLUTE_HD ContactPoint<Real> touch(const Model& model, const Kinematics<Real>& kin, const Candidate& candidate, Vector3<Real>& centre) {
  const Geom &a = model.geoms[candidate.geom_a], &b = model.geoms[candidate.geom_b];
  const Vector3<Real> at_a = world_point(model, kin, a.link, a.position);
  const Real radius_a(a.radius), radius_b(b.radius);
  switch (candidate.pair) {
    case Pair::plane_point:
      centre = world_point(model, kin, b.link, candidate.point);
      return plane_point({Real(a.rotation[2]), Real(a.rotation[5]), Real(a.rotation[8])}, at_a, centre, Real(candidate.radius));
    case Pair::plane_mesh: return plane_point({Real(a.rotation[2]), Real(a.rotation[5]), Real(a.rotation[8])}, at_a, centre, Real(0));
    case Pair::sphere_sphere: return sphere_sphere(at_a, radius_a, world_point(model, kin, b.link, b.position), radius_b);
    case Pair::sphere_capsule: return sphere_capsule(at_a, radius_a, segment(model, kin, b), radius_b);
    case Pair::capsule_capsule: return capsule_capsule(segment(model, kin, a), radius_a, segment(model, kin, b), radius_b);
    default: return sphere_box(at_a, radius_a, box(model, kin, b));
  }
}

// The reverse of `touch`: moments about the world's origin.
template <class Real>
REVOLUTE_HD PairMoments<Real> touch_adjoint(const Model& model, const Kinematics<Real>& kin, const Contact<Real>& contact,
                                            const ContactPoint<Real>& bar) {
  const Candidate& candidate = model.candidates[contact.candidate];
  const Geom &a = model.geoms[candidate.geom_a], &b = model.geoms[candidate.geom_b];
  const Vector3<Real> at_a = world_point(model, kin, a.link, a.position);
  const Real radius_a(a.radius);
  switch (candidate.pair) {
    case Pair::plane_point:
    case Pair::plane_mesh: return {zero_force<Real>(), force_at(contact.centre, plane_point_adjoint(contact.at, bar))};
    case Pair::sphere_sphere: {
      const Vector3<Real> at_b = world_point(model, kin, b.link, b.position);
      Vector3<Real> a_bar, b_bar;
      sphere_sphere_adjoint(at_a, radius_a, at_b, contact.at, bar, a_bar, b_bar);
      return {force_at(at_a, a_bar), force_at(at_b, b_bar)};
    }
    case Pair::sphere_capsule: return sphere_capsule_adjoint(at_a, radius_a, segment(model, kin, b), contact.at, bar);
    case Pair::capsule_capsule:
      return capsule_capsule_adjoint(segment(model, kin, a), radius_a, segment(model, kin, b), contact.at, bar);
    default: return sphere_box_adjoint(at_a, radius_a, box(model, kin, b), contact.at, bar);
  }
}

// Frame and wrenches of a contact whose point and normal are known.
template <class Real>
REVOLUTE_HD void place_contact(const Model& model, const Kinematics<Real>& kin, Contact<Real>& contact) {
  const Candidate& candidate = model.candidates[contact.candidate];
  const Geom& a = model.geoms[candidate.geom_a];
  contact.axis[0] = contact.at.normal;
  if (a.shape == Shape::plane) {
    for (int d = 0; d < 2; ++d) contact.axis[1 + d] = matrix3<Real>(a.rotation).column(d);
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

// Adds the contact to the list if (1) holds in any environment.
template <class Real>
REVOLUTE_HD void consider(const Model& model, const Kinematics<Real>& kin, const Motion<Real>* V_free, Real h, Contact<Real>& contact,
                          Contacts<Real>& out) {
  place_contact(model, kin, contact);
  contact.gap = contact.at.gap;
  const Candidate& candidate = model.candidates[contact.candidate];
  const Real speed = dot(at_link(V_free, candidate.link_a), contact.force_a[0]) + dot(at_link(V_free, candidate.link_b), contact.force_b[0]);  // (2)
  contact.active = less(minimum(contact.gap, contact.gap + h * speed), Real(model.margin));
  if (any(contact.active)) ++out.count;
}

// The deepest vertices of a mesh below a plane, each environment its own; unused slots stay far away.
template <class Real>
REVOLUTE_HD bool deepest_vertices(const Model& model, const Kinematics<Real>& kin, const Motion<Real>* V_free, Real h,
                                  const Candidate& candidate, Vector3<Real>* vertices) {
  const Geom &plane = model.geoms[candidate.geom_a], &mesh = model.geoms[candidate.geom_b];
  const Vector3<Real> n = {Real(plane.rotation[2]), Real(plane.rotation[5]), Real(plane.rotation[8])};
  const Vector3<Real> origin = vector3<Real>(plane.position);
  // a bound on how close any vertex can come: no vertex of the ball about the mesh moves faster than |v| + |w| bound
  const Vector3<Real> centre = world_point(model, kin, mesh.link, mesh.position);
  const Motion<Real> V = at_link(V_free, mesh.link);
  const Vector3<Real> velocity = V.v + cross(V.w, centre - tree_origin(model, kin, mesh.link));
  const Real reach = Real(mesh.bound) + h * (sqrt(dot(velocity, velocity)) + Real(mesh.bound) * sqrt(dot(V.w, V.w)));
  if (!any(less(dot(n, centre - origin) - reach, Real(model.margin)))) return false;

  Real height[mesh_contacts];
  for (int s = 0; s < mesh_contacts; ++s) {
    height[s] = Real(1e9);
    vertices[s] = origin + Real(1e9) * n;
  }
  for (int i = 0; i < mesh.vertices; ++i) {
    Vector3<Real> vertex = world_point(model, kin, mesh.link, model.vertices + 3 * (mesh.vertex + i));
    Real h_vertex = dot(n, vertex - origin);
    if (!any(less(h_vertex, height[mesh_contacts - 1]))) continue;
    // insertion into the sorted list
    for (int s = 0; s < mesh_contacts; ++s) {
      const auto lower = less(h_vertex, height[s]);
      const Real h_next = select(lower, height[s], h_vertex);
      const Vector3<Real> next = select<Real>(lower, vertices[s], vertex);
      height[s] = select(lower, h_vertex, height[s]);
      vertices[s] = select<Real>(lower, vertex, vertices[s]);
      h_vertex = h_next;
      vertex = next;
    }
  }
  return true;
}

template <class Real>
REVOLUTE_HD void collision_detection(const Model& model, const Kinematics<Real>& kin, const Motion<Real>* V_free, Real h,
                                     Contacts<Real>& out) {
  out.count = 0;
  if (!model.contact) return;
  for (int i = 0; i < model.ncandidate; ++i) {
    const Candidate& candidate = model.candidates[i];
    if (candidate.pair != Pair::plane_mesh) {
      Contact<Real>& contact = out.list[out.count];
      contact.candidate = i;
      contact.at = touch(model, kin, candidate, contact.centre);
      consider(model, kin, V_free, h, contact, out);
      continue;
    }
    // the slots of a mesh follow each other
    Vector3<Real> vertices[mesh_contacts];
    if (deepest_vertices(model, kin, V_free, h, candidate, vertices)) {
      for (int s = 0; s < mesh_contacts; ++s) {
        Contact<Real>& contact = out.list[out.count];
        contact.candidate = i + s;
        contact.centre = vertices[s];
        contact.at = touch(model, kin, candidate, contact.centre);
        consider(model, kin, V_free, h, contact, out);
      }
    }
    i += mesh_contacts - 1;
  }
}

// Adds the moments on the two links of one contact.
template <class Real>
REVOLUTE_HD void collision_detection_adjoint(const Model& model, const Kinematics<Real>& kin, const Contact<Real>& contact,
                                             const ContactCotangent<Real>& bar, KinematicsCotangent<Real>& kin_bar) {
  const Candidate& candidate = model.candidates[contact.candidate];
  const Vector3<Real> origin_a = tree_origin(model, kin, candidate.link_a), origin_b = tree_origin(model, kin, candidate.link_b);
  const Vector3<Real> arm_a = contact.at.point - origin_a, arm_b = contact.at.point - origin_b;
  // reverse of the wrenches (x d; d)
  ContactPoint<Real> point_bar = {bar.gap, zero3<Real>(), zero3<Real>()};
  Vector3<Real> axis_bar[3];
  for (int d = 0; d < 3; ++d) {
    const Force<Real>&a = bar.force_a[d], &b = bar.force_b[d];
    axis_bar[d] = bar.axis[d] + (b.f + cross(b.n, arm_b)) - (a.f + cross(a.n, arm_a));
    point_bar.point += cross(contact.axis[d], b.n - a.n);
  }
  // the axes of a plane are fixed
  if (model.geoms[candidate.geom_a].shape != Shape::plane) {
    point_bar.normal = axis_bar[0];
    tangents_adjoint(contact.axis[0], axis_bar[1], axis_bar[2], point_bar.normal);
  }
  const PairMoments<Real> moments = touch_adjoint(model, kin, contact, point_bar);
  const auto add = [&](int link, const Vector3<Real>& origin, const Force<Real>& moment) {
    if (link >= 0) kin_bar.moment[link] += Force<Real>{moment.n - cross(origin, moment.f), moment.f};
  };
  add(candidate.link_a, origin_a, moments.a);
  add(candidate.link_b, origin_b, moments.b);
}

}  // namespace revolute
