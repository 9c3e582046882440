// A fixed plane a and a convex shape b of one environment: mesh, cylinder, ellipsoid.
//
// A mesh of few vertices touches with any of them, as a box does with its corners. Of more vertices those count that would be below the plane after the step, or within `band` of the
// lowest then, and of these the deepest and the farthest out (contact_manifold.hpp); the directions turn with
// the mesh.
#pragma once

#include "revolute/collision/face_manifold.hpp"

namespace revolute {

// v, w: velocity of the body's point at the origin of the coordinates, and its angular velocity, without
// contact.
REVOLUTE_HD inline void plane_convex(const Vector& normal, const Vector& origin, const ConvexShape& shape,
                                     double h, const Vector& v, const Vector& w, double limit,
                                     ContactManifold& out) {
  ReferenceFace plane;
  plane.of_a = true;
  plane.normal = normal;
  plane.origin = origin;
  plane.corners = 0;
  if (!shape.is_hull()) return face_manifold(plane, shape, 1e-3 * shape.size, limit, out);
  if (shape.geom->vertices <= manifold_points) {
    for (int i = 0; i < shape.geom->vertices; ++i) add_face_contact(plane, at_vertex(shape.vertex(i), 0), out);
    return;
  }
  constexpr double band = 1e-3;  // of the shape's size
  const auto at = [&](int i) { return shape.vertex(i); };
  const auto height = [&](int i) {
    const Vector x = shape.vertex(i);
    return plane.height(x) + h * dot(normal, v + cross(w, x));
  };
  double lowest = 1e300;
  for (int i = 0; i < shape.geom->vertices; ++i) lowest = std::fmin(lowest, height(i));
  if (lowest > limit) return;
  Vector e1, e2;
  complete_frame(transpose_times(shape.R, normal), e1, e2);
  int kept[manifold_points];
  const int number = keep_spread(shape.geom->vertices, std::fmax(lowest, 0.0) + band * shape.size,
                                 1e-6 * shape.size, shape.R * e1, shape.R * e2, at, height, kept);
  for (int k = 0; k < number; ++k) add_face_contact(plane, at_vertex(shape.vertex(kept[k]), 0), out);
}

}  // namespace revolute
