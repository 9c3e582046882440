// The pairs of shapes for which each contact model has a closed formula, and the number of points at which they may touch.
#pragma once

#include "revolute/model/model.hpp"

namespace revolute {

struct PairKind {
  Pair pair;
  int slots;  // 0: no formula; the general search serves the pair
};

// a's shape comes first in the order of Shape.
REVOLUTE_HD inline PairKind mujoco_pair_kind(Shape a, Shape b) {
  const PairKind none = {a == Shape::plane ? Pair::plane_convex : Pair::convex_convex, 0};
  switch (a) {
    case Shape::plane:
      return b == Shape::sphere      ? PairKind{Pair::plane_point, 1}
             : b == Shape::capsule   ? PairKind{Pair::plane_capsule, 2}
             : b == Shape::box       ? PairKind{Pair::plane_box, 8}
             : b == Shape::cylinder  ? PairKind{Pair::plane_cylinder, 4}
             : b == Shape::ellipsoid ? PairKind{Pair::plane_ellipsoid, 1}
             : b == Shape::mesh      ? PairKind{Pair::plane_mesh, 4}
                                     : none;
    case Shape::sphere:
      return b == Shape::sphere     ? PairKind{Pair::sphere_sphere, 1}
             : b == Shape::capsule  ? PairKind{Pair::sphere_capsule, 1}
             : b == Shape::cylinder ? PairKind{Pair::sphere_cylinder, 1}
             : b == Shape::box      ? PairKind{Pair::sphere_box, 1}
                                    : none;
    case Shape::capsule:
      return b == Shape::capsule ? PairKind{Pair::capsule_capsule, 2}
             : b == Shape::box   ? PairKind{Pair::capsule_box, 2}
                                 : none;
    case Shape::box:
      return b == Shape::box ? PairKind{Pair::box_box, 8} : none;
    default:
      return none;
  }
}
// The same for the hard contact model, of shapes that are no ground.
REVOLUTE_HD inline PairKind hard_pair_kind(Shape a, Shape b) {
  if (a == Shape::sphere && b == Shape::sphere) return {Pair::sphere_sphere, 1};
  if (a == Shape::sphere && b == Shape::capsule) return {Pair::sphere_capsule, 1};
  if (a == Shape::capsule && b == Shape::capsule) return {Pair::capsule_capsule, 1};
  if (a == Shape::sphere && b == Shape::box) return {Pair::sphere_box, 1};
  return {Pair::convex_convex, 0};
}

}  // namespace revolute
