// A point of one shape over a face (or a plane) of the other: the normal is carried along by the face.
//
// With m the face's outward normal and o a point of it, for a point c of the incident shape with a radius r about it,
//   gap = m.(c - o) - r,   point = c - m (r + gap/2).                                                              (1)
// Which point c is depends on both shapes. When the incident shape is displaced by a small rotation w and translation
// (delta at c),
//   dc = P (delta - W (w x (-m)))                                                                                  (2)
// where W says how the support point rolls over the incident surface (zero on a polytope) and P how it is held:
//   a vertex:                                  P = 1
//   an edge e cut by a side plane s of the face:  P = 1 - e s'/(s.e)
//   the face of normal f over a corner of the other: P = m f'/(m.f)                                                 (3)
#pragma once

#include "revolute/collision/convex_shape.hpp"

namespace revolute {

struct FaceContact {
  Vector point;             // c
  double radius;
  Matrix3<double> hold;     // P
  Matrix3<double> roll;     // W
};

REVOLUTE_HD inline Matrix3<double> outer(const Vector& a, const Vector& b) {
  return {{a.x * b.x, a.x * b.y, a.x * b.z, a.y * b.x, a.y * b.y, a.y * b.z, a.z * b.x, a.z * b.y, a.z * b.z}};
}
REVOLUTE_HD inline Matrix3<double> scaled(double s, const Matrix3<double>& A) {
  Matrix3<double> out;
  for (int i = 0; i < 9; ++i) out.m[i] = s * A.m[i];
  return out;
}
REVOLUTE_HD inline Matrix3<double> sum(const Matrix3<double>& A, const Matrix3<double>& B) {
  Matrix3<double> out;
  for (int i = 0; i < 9; ++i) out.m[i] = A.m[i] + B.m[i];
  return out;
}
REVOLUTE_HD inline Matrix3<double> identity3() { return {{1, 0, 0, 0, 1, 0, 0, 0, 1}}; }
REVOLUTE_HD inline Matrix3<double> no_roll() { return {{0, 0, 0, 0, 0, 0, 0, 0, 0}}; }
REVOLUTE_HD inline Matrix3<double> cut_by(const Vector& side, const Vector& edge) {
  return sum(identity3(), scaled(-1 / dot(side, edge), outer(edge, side)));
}

REVOLUTE_HD inline FaceContact at_vertex(const Vector& point, double radius) { return {point, radius, identity3(), no_roll()}; }

// Cotangent by a displacement of the incident shape, as a moment about the origin: reverse of (1) and (2).
REVOLUTE_HD inline Force<double> face_contact_adjoint(const FaceContact& contact, const Vector& m, const ContactPoint<double>& bar) {
  const Vector c_bar = bar.point + (bar.gap - 0.5 * dot(m, bar.point)) * m;  // (1)
  const Vector held = transpose_times(contact.hold, c_bar);
  Force<double> moment = force_at(contact.point, held);
  // d/dw of held.W (w x m)
  moment.n += cross(m, transpose_times(contact.roll, held));
  return moment;
}

}  // namespace revolute
