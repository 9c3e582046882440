// A convex shape of one environment: hulls (box, mesh, and the cores of spheres and capsules), cylinders and
// ellipsoids.
//
// A shape is a core with a radius about it: a vertex for a sphere, an edge for a capsule; the others have radius 0. The
// folder shapes/ holds all that differs between the shapes.
// The search for the nearest features is discrete and runs in double, one environment at a time.
#pragma once

#include "revolute/collision/contact_point.hpp"
#include "revolute/collision/hull_search.hpp"
#include "revolute/model/model.hpp"

namespace revolute {

struct ConvexShape {
  const HullArrays* hulls;
  const Geom* geom;
  Matrix3<double> R;  // frame of the local coordinates: the link's for hulls, the geom's for round shapes
  Vector p;
  Vector centre;
  double radius;  // about the core
  double size;    // of the shape, for tolerances

  REVOLUTE_HD bool is_hull() const { return geom->vertices > 0; }
  REVOLUTE_HD Vector vertex(int i) const { return p + R * local_vertex(i); }
  REVOLUTE_HD const HullFace& face(int i) const { return hulls->faces[geom->face + i]; }
  REVOLUTE_HD const HullEdge& edge(int i) const { return hulls->edges[geom->edge + i]; }
  REVOLUTE_HD Vector corner(const HullFace& face, int i) const {
    return vertex(hulls->corners[face.corner + i]);
  }
  REVOLUTE_HD Vector local_vertex(int i) const {
    return vector3<double>(hulls->vertices + 3 * (geom->vertex + i));
  }
  // Whether a corner of the face is as high as `height` in direction m, both in the link's frame.
  REVOLUTE_HD bool reaches(const HullFace& face, const Vector& m, double height) const {
    const int* corner = hulls->corners + face.corner;
    for (int i = 0; i < face.corners; ++i)
      if (dot(m, local_vertex(corner[i])) >= height) return true;
    return false;
  }
  REVOLUTE_HD Vector axis() const { return R.column(2); }
};

REVOLUTE_HD inline double norm(const Vector& a) { return std::sqrt(dot(a, a)); }
REVOLUTE_HD inline Vector unit(const Vector& a) {
  double size, inverse;
  return direction(a, size, inverse);
}
// Two unit vectors that complete n to a right-handed frame. They jump where two components of n are 0.6, far
// from the axes along which shapes rest.
REVOLUTE_HD inline void complete_frame(const Vector& n, Vector& e1, Vector& e2) {
  const Vector other = std::fabs(n.x) < 0.6   ? Vector{1, 0, 0}
                       : std::fabs(n.y) < 0.6 ? Vector{0, 1, 0}
                                              : Vector{0, 0, 1};
  e1 = unit(cross(n, other));
  e2 = cross(n, e1);
}

// Index of the hull vertex that lies farthest in direction m; the first of several.
REVOLUTE_HD inline int support_vertex(const ConvexShape& shape, const Vector& m) {
  return farthest_vertex(*shape.hulls, *shape.geom, transpose_times(shape.R, m));
}

// Calls visit(i) for vertices or edges of a hull, in any order, until it returns false. At least those with a point as
// high as `height` in the unit direction m are visited.
template <class Visit>
REVOLUTE_HD inline void visit_high(const ConvexShape& shape, int tree, int number, const Vector& m,
                                   double height, const Visit& visit) {
  const double rounding = 1e-9 * shape.size;
  visit_high_items(*shape.hulls, tree, number, transpose_times(shape.R, m),
                   height - dot(m, shape.p) - rounding, visit);
}
template <class Visit>
REVOLUTE_HD inline void visit_high_vertices(const ConvexShape& shape, const Vector& m, double height,
                                            const Visit& visit) {
  visit_high(shape, shape.geom->vertex_tree, shape.geom->vertices, m, height, visit);
}
template <class Visit>
REVOLUTE_HD inline void visit_high_edges(const ConvexShape& shape, const Vector& m, double height,
                                         const Visit& visit) {
  visit_high(shape, shape.geom->edge_tree, shape.geom->edges, m, height, visit);
}

}  // namespace revolute
