// A fixed plane a and a convex shape b of one environment: mesh, cylinder, ellipsoid.
//
// A mesh of few vertices touches with any of them, as a box does with its corners. A mesh of more vertices selects those that
// would be below the plane after the step, or within `band` of the lowest vertex then. Of these it takes the deepest and the
// farthest out (contact_manifold.hpp); the directions turn with the mesh. With the plane's normal n, the body's velocities v,
// w and the step h, a vertex's height after the step grows in direction
//   g = n + h n x w                                                                           (1)
#pragma once

#include "revolute/collision/face_manifold.hpp"

namespace revolute {

namespace detail {

// The vertices of a hull that count, in order; all vertices if more than `most` count.
struct LowVertices {
  static constexpr int most = 64;
  int index[most], count = 0;
  bool all = false;

  // Returns whether there is room for another.
  REVOLUTE_HD bool add(int i) {
    if (count == most) {
      all = true;
      return false;
    }
    int k = count++;
    for (; k > 0 && index[k - 1] > i; --k) index[k] = index[k - 1];
    index[k] = i;
    return true;
  }
  REVOLUTE_HD int operator[](int k) const { return all ? k : index[k]; }
};

}  // namespace detail

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
    for (int i = 0; i < shape.geom->vertices; ++i)
      add_face_contact(plane, at_vertex(shape.vertex(i), 0), out);
    return;
  }
  constexpr double band = 1e-3;  // of the shape's size
  const auto height = [&](int i) {
    const Vector x = shape.vertex(i);
    return plane.height(x) + h * dot(normal, v + cross(w, x));
  };
  const Vector upward = normal + h * cross(normal, w);  // (1)
  const double steepness = norm(upward);
  const Vector downward = (-1 / steepness) * upward;
  const double deepest = dot(downward, support(shape, downward));
  double lowest = 1e300;
  visit_high_vertices(shape, downward, deepest, [&](int i) {
    lowest = std::fmin(lowest, height(i));
    return true;
  });
  if (lowest > limit) return;
  const double top = std::fmax(lowest, 0.0) + band * shape.size;
  detail::LowVertices low;
  visit_high_vertices(shape, downward, deepest - (top - lowest) / steepness,
                      [&](int i) { return !(height(i) <= top) || low.add(i); });
  Vector e1, e2;
  complete_frame(transpose_times(shape.R, normal), e1, e2);
  int kept[manifold_points];
  const int number = keep_spread(
      low.all ? shape.geom->vertices : low.count, top, shape.size, shape.R * e1, shape.R * e2,
      [&](int k) { return shape.vertex(low[k]); }, [&](int k) { return height(low[k]); }, kept);
  for (int k = 0; k < number; ++k) add_face_contact(plane, at_vertex(shape.vertex(low[kept[k]]), 0), out);
}

}  // namespace revolute
