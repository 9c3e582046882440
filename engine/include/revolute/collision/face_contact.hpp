// A point of one shape over a face (or a plane) of the other: the face carries the normal along.
//
// With m the face's outward normal and o a point of it, for a point c of the incident shape with a radius r
// about it,
//   gap = m.(c - o) - r,   point = c - m (r + gap/2). (1)
// The choice of point c depends on both shapes. When the incident shape is displaced by a small rotation w and translation
// (delta at c),
//   dc = P (delta - W (w x (-m))) (2)
// where W says how the support point rolls over the incident surface (zero on a polytope) and P how the point is held:
//   a vertex:                                  P = 1
//   an edge e cut by a side plane s of the face:  P = 1 - e s'/(s.e)
//   the face of normal f over a corner of the other: P = m f'/(m.f) (3)
#pragma once

#include "revolute/collision/convex_shape.hpp"

namespace revolute {

struct FaceContact {
  Vector point;  // c
  double radius;
  Matrix3<double> hold;  // P
  Matrix3<double> roll;  // W
};

REVOLUTE_HD inline Matrix3<double> no_roll() { return {{0, 0, 0, 0, 0, 0, 0, 0, 0}}; }
REVOLUTE_HD inline Matrix3<double> cut_by(const Vector& side, const Vector& edge) {
  return identity_matrix<double>() + (-1 / dot(side, edge)) * outer_product(edge, side);
}

REVOLUTE_HD inline FaceContact at_vertex(const Vector& point, double radius) {
  return {point, radius, identity_matrix<double>(), no_roll()};
}

// Cotangent by a displacement of the incident shape, as a moment about the origin: reverse of (1) and (2).
REVOLUTE_HD inline Force<double> face_contact_adjoint(const FaceContact& contact, const Vector& m,
                                                      const ContactPoint<double>& bar) {
  const Vector c_bar = bar.point + (bar.gap - 0.5 * dot(m, bar.point)) * m;  // (1)
  const Vector held = transpose_times(contact.hold, c_bar);
  Force<double> moment = force_at(contact.point, held);
  // d/dw of held.W (w x m)
  moment.n += cross(m, transpose_times(contact.roll, held));
  return moment;
}

}  // namespace revolute
