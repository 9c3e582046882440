// Every convex shape has the same functions, each shape in its own file:
//   support(shape, m, scale)         the core's point farthest in direction m; the core is scaled about its centre
//   element(shape, m, tolerance)     the surface element that carries it, where angles below the tolerance count as zero
//   follow(shape, m, start, element) the element after the direction has turned
//   visit_likely_faces, visit_faces  flat faces that turn towards a direction: the most likely to be the nearest, and all
//   face_corners                     the corners of one
//   add_face_points                  the points at which the shape may touch a face of another
//   visit_directions                 further directions in which a deep overlap may be the shallowest
// All work in double, in one environment.
//
// A new convex shape takes five files: its own here, a case of with_shape() below, its name in model/model.hpp (Shape), a row
// of engine/src/shape_table.cpp, and an entry in revolute_engine/_kinds.py.
#pragma once

#include "revolute/collision/shapes/cylinder.hpp"
#include "revolute/collision/shapes/ellipsoid.hpp"
#include "revolute/collision/shapes/hull.hpp"

namespace revolute {

// Calls call(functions of the shape). Planes and height fields are not convex shapes, and never come here.
template <class Call>
REVOLUTE_HD inline decltype(auto) with_shape(const ConvexShape& shape, const Call& call) {
  switch (shape.geom->shape) {
    case Shape::ellipsoid:
      return call(EllipsoidShape());
    case Shape::cylinder:
      return call(CylinderShape());
    case Shape::plane:
    case Shape::height_field:
    case Shape::sphere:
    case Shape::capsule:
    case Shape::box:
    case Shape::mesh:
      break;
  }
  return call(HullShape());
}

REVOLUTE_HD inline Vector support(const ConvexShape& shape, const Vector& m, double scale = 1) {
  return with_shape(shape, [&](const auto& of) { return of.support(shape, m, scale); });
}
REVOLUTE_HD inline SurfaceElement support_element(const ConvexShape& shape, const Vector& m,
                                                  double tolerance) {
  return with_shape(shape, [&](const auto& of) { return of.element(shape, m, tolerance); });
}

// How far the cores are apart in direction n (from a to b); the largest over all n is their signed distance.
REVOLUTE_HD inline double separation(const ConvexShape& a, const ConvexShape& b, const Vector& n) {
  return dot(n, support(b, -n) - support(a, n));
}

}  // namespace revolute
