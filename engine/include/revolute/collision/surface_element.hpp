// A part of a surface about one of its points: a vertex, an edge, a rim or a smooth part (stationary_pair.hpp explains the
// tangents and curvatures), or a face, which is found in another way.
#pragma once

#include "revolute/collision/convex_shape.hpp"

namespace revolute {

enum class Feature : int { vertex, edge, rim, smooth, face };

struct SurfaceElement {
  Feature feature;
  int freedoms;
  Vector point;
  Vector tangent[2];
  double curvature[2][2];
  double radius;  // about the element
  double half;    // edge: half its length
};

REVOLUTE_HD inline SurfaceElement vertex_element(const Vector& point, double radius) {
  return {Feature::vertex, 0, point, {zero3<double>(), zero3<double>()}, {{0, 0}, {0, 0}}, radius, 0};
}
REVOLUTE_HD inline SurfaceElement edge_element(const Vector& from, const Vector& to, double radius) {
  const Vector along = to - from;
  const double size = norm(along);
  return {Feature::edge,    1,      0.5 * (from + to), {unit(along), zero3<double>()},
          {{0, 0}, {0, 0}}, radius, 0.5 * size};
}

}  // namespace revolute
