// Points of links in the world.
#pragma once

#include "revolute/stages/kinematics.hpp"

namespace revolute {

// Reference point of a link's tree; the world's origin for the world.
template <class Real>
REVOLUTE_HD inline Vector3<Real> tree_origin(const Model& model, const Kinematics<Real>& kin, int link) {
  return link < 0 ? zero3<Real>() : kin.origin[model.dofs[link].tree];
}
// World position of a point given in a link's frame.
template <class Real>
REVOLUTE_HD inline Vector3<Real> world_point(const Model& model, const Kinematics<Real>& kin, int link,
                                             const double* local) {
  if (link < 0) return vector3<Real>(local);
  return kin.origin[model.dofs[link].tree] + kin.links[link].p + kin.links[link].R * vector3<Real>(local);
}

}  // namespace revolute
