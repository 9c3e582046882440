// The list of contacts that collision detection fills, and the poses of shapes at which pairs are evaluated.
#pragma once

#include "revolute/collision/contact_manifold.hpp"
#include "revolute/collision/mujoco/box_box.hpp"
#include "revolute/collision/mujoco/plane_cylinder.hpp"
#include "revolute/collision/mujoco/plane_ellipsoid.hpp"
#include "revolute/collision/segment.hpp"
#include "revolute/collision/sphere_box.hpp"
#include "revolute/collision/sweep_and_prune.hpp"
#include "revolute/growing_array.hpp"
#include "revolute/stages/link_points.hpp"

namespace revolute {

template <class Real>
struct Contact {
  const Candidate* candidate;
  RowPath path;  // hard: degrees of freedom that move either shape
  MaskOf<Real> active;
  MaskOf<Real> near;  // mujoco: active, or within the gap of a pair with adhesion
  Real gap;
  Vector3<Real> centre;     // against a plane: the point that touches
  Touch* touches;           // convex pairs: one for each lane
  mujoco::BoxPoint* boxes;  // box_box: one for each lane
  ContactPoint<Real> at;
  Vector3<Real> axis[3];  // normal, two tangents
  Force<Real> force_a[3], force_b[3];
};

template <class Bar>
struct ContactCotangent {
  Bar gap;
  Vector3<Bar> point, axis[3];
  Force<Bar> force_a[3], force_b[3];

  REVOLUTE_HD void clear() {
    gap = Bar(0);
    point = zero3<Bar>();
    for (int d = 0; d < 3; ++d) {
      axis[d] = zero3<Bar>();
      force_a[d] = force_b[d] = zero_force<Bar>();
    }
  }
};

// Sphere about a shape: its centre, and how far any point of the shape may travel within the step.
template <class Real>
struct SweptSphere {
  Vector3<Real> centre;
  Real travel;
};

// Box about a shape and all places that it may reach within the step.
template <class Real>
struct SweptBox {
  Vector3<Real> low, high;
};
// The result of the broad phase, and its scratch.
template <class Real>
struct NearPairs {
  int count;
  // pairs that may touch in some environment, ascending: first candidates, or ranks of unlisted pairs (pair_rank)
  GrowingArray<std::int64_t> list;
  SweptBox<Real>* boxes;                              // [ngeom]
  WorldBox *lane_boxes, *group_boxes, *sorted_boxes;  // [nswept]
  int *order, *scratch;                               // [nswept]
  GrowingArray<std::int64_t> lane_list, merged;
  Candidate* made;  // of unlisted pairs with contacts in this step
  int made_count;
  int *found_dofs, found;  // hard: paths of contacts of such pairs, and the length of all

  NearPairs(const Model& model, Arena& arena)
      : count(0),
        list(near_pair_capacity(model), arena),
        boxes(arena.take<SweptBox<Real>>(model.nswept ? model.ngeom : 0)),
        lane_boxes(arena.take<WorldBox>(model.nswept)),
        group_boxes(arena.take<WorldBox>(model.nswept)),
        sorted_boxes(arena.take<WorldBox>(model.nswept)),
        order(arena.take<int>(model.nswept)),
        scratch(arena.take<int>(model.nswept)),
        lane_list(near_pair_capacity(model), arena),
        merged(near_pair_capacity(model), arena),
        // room for a pair more, which is then found to have no contact
        made(arena.take<Candidate>(
            has_unlisted_pairs(model) ? most_slots * (unlisted_contact_capacity(model) + 1) : 0)),
        made_count(0),
        found_dofs(arena.take<int>(model.contact_model == ContactModel::hard
                                       ? unlisted_contact_capacity(model) * model.longest_support
                                       : 0)),
        found(0) {}
};

template <class Real>
struct Contacts {
  int count;
  Contact<Real>* list;
  Touch* touches;              // [contact, lane] of convex pairs
  mujoco::BoxPoint* boxes;     // [contact, lane] of box_box
  SweptSphere<Real>* spheres;  // [ngeom]
  NearPairs<Real> near;

  Contacts(const Model& model, Arena& arena)
      : count(0),
        list(arena.take<Contact<Real>>(contact_capacity(model))),
        touches(arena.take<Touch>(contact_capacity(model) * Width<Real>::value)),
        boxes(arena.take<mujoco::BoxPoint>(contact_capacity(model) * Width<Real>::value)),
        spheres(arena.take<SweptSphere<Real>>(model.ngeom)),
        near(model, arena) {}
};

template <class Real>
REVOLUTE_HD inline Matrix3<Real> geom_rotation(const Kinematics<Real>& kin, const Geom& geom) {
  return world_rotation(kin, geom.link, geom.rotation);
}
template <class Real>
REVOLUTE_HD inline Segment<Real> segment(const Model& model, const Kinematics<Real>& kin, const Geom& geom) {
  const Vector3<Real> axis = {Real(geom.rotation[2]), Real(geom.rotation[5]), Real(geom.rotation[8])};
  return {world_point(model, kin, geom.link, geom.position), world_direction(kin, geom.link, axis),
          Real(geom.half[2])};
}
template <class Real>
REVOLUTE_HD inline Box<Real> box(const Model& model, const Kinematics<Real>& kin, const Geom& geom) {
  return {geom_rotation(kin, geom), world_point(model, kin, geom.link, geom.position),
          vector3<Real>(geom.half)};
}
template <class Real>
REVOLUTE_HD inline mujoco::Cylinder<Real> cylinder(const Model& model, const Kinematics<Real>& kin,
                                                   const Geom& geom) {
  return {geom_rotation(kin, geom), world_point(model, kin, geom.link, geom.position), Real(geom.radius),
          Real(geom.half[2])};
}
template <class Real>
REVOLUTE_HD inline mujoco::Ellipsoid<Real> ellipsoid(const Model& model, const Kinematics<Real>& kin,
                                                     const Geom& geom) {
  return {geom_rotation(kin, geom), world_point(model, kin, geom.link, geom.position),
          vector3<Real>(geom.half)};
}
// The normal of a plane, which belongs to the world or a mocap body.
template <class Real>
REVOLUTE_HD inline Vector3<Real> plane_normal(const Kinematics<Real>& kin, const Geom& plane) {
  return world_direction(kin, plane.link, matrix3<Real>(plane.rotation).column(2));
}

}  // namespace revolute
