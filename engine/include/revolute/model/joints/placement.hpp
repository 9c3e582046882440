// The place of a link: the rotation of its frame, and its origin relative to its tree's reference point, in world axes.
#pragma once

#include "revolute/model/model.hpp"
#include "revolute/spatial/spatial_vector.hpp"

namespace revolute {

template <class Real>
struct Placement {
  Matrix3<Real> R;
  Vector3<Real> p;
};

}  // namespace revolute
