// The contact area between a face (or plane) and the shape over it: the part of that shape's face, edge or vertex nearest to
// the reference face that lies inside of the face's sides.
#pragma once

#include "revolute/collision/contact_manifold.hpp"

namespace revolute {

// Fills the points of `shape` that lie over the face.
REVOLUTE_HD inline void points_over(const ReferenceFace& face, const ConvexShape& shape, double tolerance,
                                    RawPoints& raw) {
  raw.apart = 2 * tolerance;
  with_shape(shape, [&](const auto& of) { of.add_face_points(face, shape, tolerance, raw); });
}
REVOLUTE_HD inline double height_over(const ReferenceFace& face, const FaceContact& at) {
  return face.height(at.point) - at.radius;
}

// Adds the points at which `shape` may touch the face. `height_limit`: points that stay higher are left out.
REVOLUTE_HD inline void face_manifold(const ReferenceFace& face, const ConvexShape& shape, double tolerance,
                                      double height_limit, ContactManifold& out) {
  RawPoints raw;
  points_over(face, shape, tolerance, raw);
  const auto at = [&](int i) { return raw.list[i].point; };
  const auto height = [&](int i) { return height_over(face, raw.list[i]); };
  int kept[manifold_points], number = 0;
  for (int i = 0; i < raw.count && raw.count <= manifold_points; ++i)
    if (height(i) <= height_limit) kept[number++] = i;
  if (raw.count > manifold_points) {
    const Vector e1 = unit(face.corner[1] - face.corner[0]);
    number = keep_spread(raw.count, height_limit, shape.size, e1, cross(face.normal, e1), at, height, kept);
  }
  for (int k = 0; k < number; ++k) add_face_contact(face, raw.list[kept[k]], out);
}

// Adds the lowest point of a round shape over the plane of a face, whose sides do not count.
REVOLUTE_HD inline void lowest_over_plane(ReferenceFace plane, const ConvexShape& shape, double tolerance,
                                          ContactManifold& out) {
  plane.corners = 0;
  RawPoints raw;
  points_over(plane, shape, tolerance, raw);
  int lowest = 0;
  for (int i = 1; i < raw.count; ++i)
    if (height_over(plane, raw.list[i]) < height_over(plane, raw.list[lowest])) lowest = i;
  if (raw.count > 0) add_face_contact(plane, raw.list[lowest], out);
}

}  // namespace revolute
