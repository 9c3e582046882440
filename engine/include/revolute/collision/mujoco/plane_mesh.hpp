// A fixed plane and a mesh, in one environment: the vertices of the hull that touch, at most four.
//
// The first is the lowest. The others are corners of the face around it that is turned most against the plane. A face of four
// corners or fewer gives all of them, a larger one the quadrilateral of largest area that a search finds: it starts at the
// first corner and moves the corners on in turn while the area grows. A corner counts when it is nearer than the margin, and
// not higher than the mesh's centre. All this is in the mesh's frame.
#pragma once

#include <cmath>

#include "revolute/collision/hull_search.hpp"

namespace revolute::mujoco {

constexpr int mesh_points = 4;

struct LowMeshVertices {
  int count = 0;
  int vertex[mesh_points];  // counted from the geom's first
};

namespace detail {

// Chooses the corners of a polygon that are kept, `a` first; returns their number.
struct LargestQuadrilateral {
  const double* vertices;
  const int* polygon;
  int corners;

  REVOLUTE_HD Vector at(int i) const {
    const double* v = vertices + 3 * polygon[i];
    return {v[0], v[1], v[2]};
  }
  REVOLUTE_HD double area(const int* q) const {
    const Vector across = cross(at(q[0]) - at(q[2]), at(q[1]) - at(q[3]));
    return 0.5 * std::sqrt(dot(across, across));
  }
  // Moves corner i of q on while the area grows; returns whether it did.
  REVOLUTE_HD bool grow(int* q, int i, double& largest, bool once) const {
    bool grew = false;
    for (;;) {
      int tried[4] = {q[0], q[1], q[2], q[3]};
      tried[i] = (q[i] + 1) % corners;
      const double now = area(tried);
      if (!(now > largest)) return grew;
      largest = now;
      q[i] = tried[i];
      grew = true;
      if (once) return true;
    }
  }
  REVOLUTE_HD int find(int a, int* q) const {
    for (int i = 0; i < 4; ++i) q[i] = (a + i) % corners;
    if (corners <= 4) return corners;
    double largest = area(q);
    while (grow(q, 3, largest, true)) {
      grow(q, 2, largest, false);
      grow(q, 1, largest, false);
    }
    return 4;
  }
};

}  // namespace detail

// n: the plane's normal, `height`: of the link's origin over the plane, `centre`: of the mesh, all in the mesh's link.
REVOLUTE_HD inline void low_mesh_vertices(const Model& model, const Geom& geom, const Vector& n,
                                          double height, const Vector& centre, double margin,
                                          LowMeshVertices& out) {
  const double* vertices = model.vertices + 3 * geom.vertex;
  const auto along = [&](int i) { return revolute::detail::height_of(vertices + 3 * i, n); };
  out.count = 0;
  const int lowest = farthest_vertex(model, geom, -n);
  if (along(lowest) + height > margin) return;
  out.vertex[out.count++] = lowest;
  const int* range = model.vertex_faces_begin + geom.vertex + lowest;
  int facing = -1;
  double turned = 1;
  for (int i = range[0]; i < range[1]; ++i) {
    const HullFace& face = model.faces[model.vertex_faces[i]];
    const double cosine = revolute::detail::height_of(face.normal, n);
    if (cosine < turned) turned = cosine, facing = model.vertex_faces[i];
  }
  if (facing < 0) return;
  const HullFace& face = model.faces[facing];
  const int* polygon = model.corners + face.polygon;
  int first = 0;
  while (first + 1 < face.polygon_corners && polygon[first] != lowest) ++first;
  int q[4];
  const int count = detail::LargestQuadrilateral{vertices, polygon, face.polygon_corners}.find(first, q);
  for (int i = 1; i < count; ++i) {
    const int vertex = polygon[q[i]];
    if (along(vertex) + height > margin || along(vertex) > dot(n, centre)) continue;
    out.vertex[out.count++] = vertex;
  }
}

}  // namespace revolute::mujoco
