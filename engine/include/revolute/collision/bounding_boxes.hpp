// A cheap test before the search for the nearest points: whether the boxes about two shapes are farther apart than a limit,
// along an axis of either box or along the line between their middles.
#pragma once

#include "revolute/collision/convex_shape.hpp"

namespace revolute {

// The smallest box about a shape along its own axes, in world axes.
struct BoundingBox {
  Vector centre, axis[3];
  double half[3];

  REVOLUTE_HD explicit BoundingBox(const ConvexShape& shape) {
    const Geom& geom = *shape.geom;
    // round shapes have their own axes already
    const Matrix3<double> R = shape.is_hull() ? shape.R * matrix3<double>(geom.rotation) : shape.R;
    centre = shape.centre + R * vector3<double>(geom.box_centre);
    for (int i = 0; i < 3; ++i) {
      axis[i] = R.column(i);
      half[i] = geom.box_half[i];
    }
  }
  // How far the box reaches from its centre along a unit direction.
  REVOLUTE_HD double reach(const Vector& direction) const {
    double sum = 0;
    for (int i = 0; i < 3; ++i) sum += half[i] * std::fabs(dot(direction, axis[i]));
    return sum;
  }
};

REVOLUTE_HD inline bool boxes_apart(const ConvexShape& a, const ConvexShape& b, double limit) {
  const BoundingBox box_a(a), box_b(b);
  const Vector between = box_b.centre - box_a.centre;
  const double beyond = limit + 1e-9 * (a.size + b.size);
  const auto apart_along = [&](const Vector& axis) {
    return std::fabs(dot(axis, between)) - box_a.reach(axis) - box_b.reach(axis) > beyond;
  };
  for (int i = 0; i < 3; ++i)
    if (apart_along(box_a.axis[i]) || apart_along(box_b.axis[i])) return true;
  return apart_along(unit(between));
}

}  // namespace revolute
