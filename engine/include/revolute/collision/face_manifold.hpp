// The contact area between a face (or plane) and the shape over it: where that shape's face, edge or vertex
// nearest to the reference face lies inside of the face's sides.
//
// A cylinder's lowest point on a cap rim is c = centre + r q(|w|/w0) w/|w|, with w the part of -m across the
// axis: exactly on the rim for tilts above w0, and moved smoothly to the middle of the cap below, where the
// rim point would run around the rim at any speed. Points fixed on the rim carry the cylinder that stands.
//   q(s) = s (15 - 10 s^2 + 3 s^4)/8 for s < 1, else 1 (1)
#pragma once

#include "revolute/collision/contact_manifold.hpp"

namespace revolute {

// The corners, in order, of the part of a shape that comes nearest to the reference face.
struct IncidentPolygon {
  int corners = 0;
  Vector corner[polygon_corners];
  Vector normal;  // outward; of three corners or more
  double radius = 0;
};

namespace detail {

constexpr int raw_points = 4 * polygon_corners;
constexpr int rim_points = 6;
constexpr double upright_tilt = 0.02;  // w0

struct RawPoints {
  int count = 0;
  FaceContact list[raw_points];
  double apart;  // closer points are one

  REVOLUTE_HD void add(const FaceContact& contact) {
    for (int i = 0; i < count; ++i) {
      const Vector gap = list[i].point - contact.point;
      if (dot(gap, gap) < apart * apart) return;
    }
    if (count < raw_points) list[count++] = contact;
  }
};

// Where an edge of the incident shape crosses the sides of the reference face.
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

// The hull's face that turns most towards the reference face, among those at its nearest vertex; or its core.
REVOLUTE_HD inline IncidentPolygon incident_polygon(const ConvexShape& shape, const Vector& towards) {
  IncidentPolygon out;
  out.radius = shape.radius;
  const Geom& geom = *shape.geom;
  if (geom.faces == 0) {
    for (int i = 0; i < geom.vertices && i < polygon_corners; ++i)
      out.corner[out.corners++] = shape.vertex(i);
    return out;
  }
  const double reach = dot(towards, support(shape, towards)) - 1e-6 * shape.size;
  const auto turned = [&](const HullFace& face) {
    return dot(towards, shape.R * vector3<double>(face.normal));
  };
  double facing = -2;
  visit_high_faces(shape, towards, reach, [&](int f) {
    const HullFace& face = shape.face(f);
    if (turned(face) > facing && shape.reaches(face, towards, reach)) facing = turned(face);
    return true;
  });
  int best = -1;  // the first of those that turn as much
  visit_high_faces(shape, towards, reach, [&](int f) {
    const HullFace& face = shape.face(f);
    if ((best < 0 || f < best) && turned(face) >= facing - 1e-6 && shape.reaches(face, towards, reach))
      best = f;
    return true;
  });
  if (best < 0) return out;
  const HullFace& face = shape.face(best);
  out.normal = shape.R * vector3<double>(face.normal);
  for (int i = 0; i < face.corners; ++i) out.corner[out.corners++] = shape.corner(face, i);
  return out;
}

// Lowest point of a cylinder's cap, (1).
REVOLUTE_HD inline FaceContact lowest_rim_point(const ConvexShape& shape, const Vector& towards, double cap) {
  const Vector axis = shape.axis(), w = towards - dot(towards, axis) * axis;
  const double radial = norm(w), radius = shape.geom->radius, s = radial / upright_tilt;
  // q(s)/|w| and q'(s)/w0
  double ratio = 1 / std::fmax(radial, upright_tilt), slope = 0;
  if (s < 1) {
    ratio = (15 - 10 * s * s + 3 * s * s * s * s) / (8 * upright_tilt);
    slope = (15 - 30 * s * s + 15 * s * s * s * s) / (8 * upright_tilt);
  }
  const Vector outward = radial > 1e-14 ? (1 / radial) * w : zero3<double>();
  const Matrix3<double> across = identity_matrix<double>() + -1.0 * outer_product(axis, axis);
  FaceContact out;
  out.point = shape.p + cap * shape.geom->half[2] * axis + (radius * ratio) * w;
  out.radius = 0;
  out.hold = identity_matrix<double>();
  out.roll = (radius * ratio) * across + (radius * (slope - ratio)) * outer_product(outward, outward);
  return out;
}

// A regular polygon in a cylinder's cap, its corners in order about the outward normal.
REVOLUTE_HD inline void cap_polygon(const ConvexShape& shape, double cap, double radius, int corners,
                                    Vector* corner) {
  for (int i = 0; i < corners; ++i) {
    const double angle = cap * 6.283185307179586 * i / corners;
    corner[i] = shape.p + shape.R * Vector{radius * std::cos(angle), radius * std::sin(angle),
                                           cap * shape.geom->half[2]};
  }
}

// The points of the rim come first: were the middle of the cap to carry all of the weight first, each of them
// would be left with exactly nothing, which is a switching point of the solver.
REVOLUTE_HD inline void add_cylinder(const ReferenceFace& face, const ConvexShape& shape, double tolerance,
                                     RawPoints& out) {
  const Vector towards = -face.normal;
  const double along = dot(towards, shape.axis());
  const bool stands = std::fabs(along) > 0.5;
  if (stands) {
    const double near_cap = along < 0 ? -1 : 1;
    IncidentPolygon rim;
    rim.corners = rim_points;
    rim.normal = near_cap * shape.axis();
    cap_polygon(shape, near_cap, shape.geom->radius, rim_points, rim.corner);
    add_polygon(face, rim, tolerance, out);
  }
  const FaceContact first = lowest_rim_point(shape, towards, 1),
                    second = lowest_rim_point(shape, towards, -1);
  if (face.holds(first.point, tolerance)) out.add(first);
  if (face.holds(second.point, tolerance)) out.add(second);
  if (!stands) add_cuts(face, first.point, second.point, 0, first.roll, tolerance, out);
}

}  // namespace detail

// Adds the points at which `shape` may touch the face. `height_limit`: points that stay higher are left out.
REVOLUTE_HD inline void face_manifold(const ReferenceFace& face, const ConvexShape& shape, double tolerance,
                                      double height_limit, ContactManifold& out) {
  detail::RawPoints raw;
  raw.apart = 2 * tolerance;
  switch (shape.geom->shape) {
    case Shape::ellipsoid:
      raw.add(
          {support(shape, -face.normal), 0, identity_matrix<double>(), ellipsoid_roll(shape, -face.normal)});
      break;
    case Shape::cylinder:
      detail::add_cylinder(face, shape, tolerance, raw);
      break;
    default:
      detail::add_polygon(face, detail::incident_polygon(shape, -face.normal), tolerance, raw);
  }
  const auto at = [&](int i) { return raw.list[i].point; };
  const auto height = [&](int i) { return face.height(raw.list[i].point) - raw.list[i].radius; };
  int kept[manifold_points], number = 0;
  for (int i = 0; i < raw.count && raw.count <= manifold_points; ++i)
    if (height(i) <= height_limit) kept[number++] = i;
  if (raw.count > manifold_points) {
    const Vector e1 = unit(face.corner[1] - face.corner[0]);
    number =
        keep_spread(raw.count, height_limit, 1e-6 * shape.size, e1, cross(face.normal, e1), at, height, kept);
  }
  for (int k = 0; k < number; ++k) add_face_contact(face, raw.list[kept[k]], out);
}

}  // namespace revolute
