// Points of links in the world.
#pragma once

#include "revolute/stages/kinematics.hpp"

namespace revolute {

// Reference point of a link's tree, or the world's origin for the world and mocap bodies.
template <class Real>
REVOLUTE_HD inline Vector3<Real> tree_origin(const Model& model, const Kinematics<Real>& kin, int link) {
  return link < 0 ? zero3<Real>() : kin.origin[model.dofs[link].tree];
}
// World direction of a direction given in a link's frame.
template <class Real>
REVOLUTE_HD inline Vector3<Real> world_direction(const Kinematics<Real>& kin, int link,
                                                 const Vector3<Real>& local) {
  return is_world(link) ? local : placement(kin, link).R * local;
}
template <class Real>
REVOLUTE_HD inline Matrix3<Real> world_rotation(const Kinematics<Real>& kin, int link,
                                                const double* rotation) {
  const Matrix3<Real> local = matrix3<Real>(rotation);
  return is_world(link) ? local : placement(kin, link).R * local;
}
// World position of a point given in a link's frame.
template <class Real>
REVOLUTE_HD inline Vector3<Real> world_point(const Model& model, const Kinematics<Real>& kin, int link,
                                             const double* local) {
  if (is_world(link)) return vector3<Real>(local);
  const Placement<Real>& frame = placement(kin, link);
  if (is_mocap(link)) return frame.p + frame.R * vector3<Real>(local);
  return kin.origin[model.dofs[link].tree] + frame.p + frame.R * vector3<Real>(local);
}
// Adds a moment about the world's origin to a link's moment.
template <class Real, class Bar>
REVOLUTE_HD inline void add_world_moment(const Model& model, const Kinematics<Real>& kin, int link,
                                         const Force<Bar>& moment, KinematicsCotangent<Bar>& kin_bar) {
  if (Force<Bar>* const of_link = kin_bar.moment_of(link))
    *of_link += Force<Bar>{moment.n - cross(tree_origin(model, kin, link), moment.f), moment.f};
}

}  // namespace revolute
