// Points of one shape over a face of another, before the contact area is thinned out (face_manifold.hpp): corners that lie
// within the face's sides, edges that the sides cut, and corners of the face under the other shape's face.
#pragma once

#include "revolute/collision/face_contact.hpp"

namespace revolute {

// A face of the reference shape, or a plane (no corners).
struct ReferenceFace {
  bool of_a;
  Vector normal, origin;  // outward
  int corners;
  Vector corner[polygon_corners];

  REVOLUTE_HD double height(const Vector& x) const { return dot(normal, x - origin); }
  // Outward normal of the side from corner i to the next.
  REVOLUTE_HD Vector side(int i) const { return unit(cross(corner[(i + 1) % corners] - corner[i], normal)); }
  REVOLUTE_HD bool holds(const Vector& x, double tolerance, int except = -1) const {
    for (int i = 0; i < corners; ++i)
      if (i != except && dot(side(i), x - corner[i]) > tolerance) return false;
    return true;
  }
};

// Serves the search for the face of a shape over which another shape stands the highest: the last points of the other shape
// that were looked at. None of them is lower than `least` over a face that wins. Once settled, no face that was not yet
// visited can win.
struct FaceRivals {
  static constexpr int most = 8;
  double least = -1e300;
  bool settled = false;
  int count = 0;  // of all points so far; point i is at place i % most
  Vector points[most];

  REVOLUTE_HD void add(const Vector& point) { points[count++ % most] = point; }
  REVOLUTE_HD int size() const { return count < most ? count : most; }
};

// The corners, in order, of the part of a shape that comes nearest to the reference face.
struct IncidentPolygon {
  int corners = 0;
  Vector corner[polygon_corners];
  Vector normal;  // outward; of three corners or more
  double radius = 0;
};

constexpr int raw_points = 4 * polygon_corners;

struct RawPoints {
  int count = 0;
  FaceContact list[raw_points];
  double apart;  // closer points count as one

  REVOLUTE_HD void add(const FaceContact& contact) {
    for (int i = 0; i < count; ++i) {
      const Vector gap = list[i].point - contact.point;
      if (dot(gap, gap) < apart * apart) return;
    }
    if (count < raw_points) list[count++] = contact;
  }
};

// Adds the points where an edge of the incident shape crosses the sides of the reference face.
REVOLUTE_HD inline void add_cuts(const ReferenceFace& face, const Vector& from, const Vector& to,
                                 double radius, const Matrix3<double>& roll, double tolerance,
                                 RawPoints& out) {
  for (int i = 0; i < face.corners; ++i) {
    const Vector side = face.side(i);
    const double start = dot(side, from - face.corner[i]), end = dot(side, to - face.corner[i]);
    const bool crosses = (start > tolerance && end < -tolerance) || (start < -tolerance && end > tolerance);
    if (!crosses) continue;
    const Vector point = from + (start / (start - end)) * (to - from);
    if (face.holds(point, tolerance, i)) out.add({point, radius, cut_by(side, to - from), roll});
  }
}

REVOLUTE_HD inline void add_polygon(const ReferenceFace& face, const IncidentPolygon& polygon,
                                    double tolerance, RawPoints& out) {
  for (int i = 0; i < polygon.corners; ++i)
    if (face.holds(polygon.corner[i], tolerance)) out.add(at_vertex(polygon.corner[i], polygon.radius));
  const int edges = polygon.corners < 3 ? polygon.corners - 1 : polygon.corners;
  for (int i = 0; i < edges; ++i)
    add_cuts(face, polygon.corner[i], polygon.corner[(i + 1) % polygon.corners], polygon.radius, no_roll(),
             tolerance, out);
  if (polygon.corners < 3) return;
  // corners of the reference face under the incident face
  const double facing = dot(face.normal, polygon.normal);
  if (facing > -0.1) return;
  for (int j = 0; j < face.corners; ++j) {
    const Vector point =
        face.corner[j] + (dot(polygon.normal, polygon.corner[0] - face.corner[j]) / facing) * face.normal;
    bool within = true;
    for (int i = 0; within && i < polygon.corners; ++i) {
      const Vector along = polygon.corner[(i + 1) % polygon.corners] - polygon.corner[i];
      within = dot(cross(along, polygon.normal), point - polygon.corner[i]) < -tolerance * norm(along);
    }
    if (within)
      out.add({point, polygon.radius, (1 / facing) * outer_product(face.normal, polygon.normal), no_roll()});
  }
}

}  // namespace revolute
