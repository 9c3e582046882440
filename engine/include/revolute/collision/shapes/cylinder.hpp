// A cylinder of radius r and half length h about its axis a: two caps, two rims and a side. Its support in direction m is
// r (radial part of m)/|...| + h sign(m.a) a.
//
// Its lowest point on a cap rim is c = centre + r q(|w|/w0) w/|w|, with w the part of -m across the axis. For tilts above w0
// it is exactly on the rim. Below w0 it moves smoothly to the middle of the cap, since the rim point would run around the rim
// at any speed there. A standing cylinder rests on points fixed on the rim.
//   q(s) = s (15 - 10 s^2 + 3 s^4)/8 for s < 1, else 1 (1)
#pragma once

#include "revolute/collision/face_points.hpp"
#include "revolute/collision/surface_element.hpp"

namespace revolute {

struct CylinderShape {
  static constexpr double facing = 0.2;  // a cap that turns farther away from a direction does not face it
  static constexpr int rim_points = 6;
  static constexpr double upright_tilt = 0.02;  // w0

  REVOLUTE_HD static Vector support(const ConvexShape& shape, const Vector& m, double scale) {
    const Vector local = transpose_times(shape.R, m);
    const double* half = shape.geom->half;
    const double radial = std::sqrt(local.x * local.x + local.y * local.y);
    const double factor = radial > 1e-14 ? shape.geom->radius / radial : 0;
    const Vector x = {factor * local.x, factor * local.y, local.z < 0 ? -half[2] : half[2]};
    return shape.p + shape.R * (scale * x);
  }

  // The side as an edge with a radius, a rim, or a cap.
  REVOLUTE_HD static SurfaceElement element(const ConvexShape& shape, const Vector& m, double tolerance) {
    const Vector axis = shape.axis();
    const double along = dot(m, axis);
    if (std::fabs(along) < tolerance) {
      const Vector reach = shape.geom->half[2] * axis;
      return edge_element(shape.p - reach, shape.p + reach, shape.geom->radius);
    }
    SurfaceElement out = rim(shape, m);
    if (out.curvature[0][0] * shape.geom->radius < tolerance) out.feature = Feature::face;
    return out;
  }
  REVOLUTE_HD static void follow(const ConvexShape& shape, const Vector& m, const Vector& start,
                                 SurfaceElement& element) {
    if (element.feature == Feature::rim)
      element = rim(shape, m);
    else
      element.point = start;
  }
  // Rim of a cap where it lies farthest in direction m.
  REVOLUTE_HD static SurfaceElement rim(const ConvexShape& shape, const Vector& m) {
    const Vector axis = shape.axis();
    const double along = dot(m, axis), radius = shape.geom->radius, half = shape.geom->half[2];
    double radial, inverse;
    const Vector outward = direction(m - along * axis, radial, inverse);
    return {Feature::rim,
            1,
            shape.p + (along < 0 ? -half : half) * axis + radius * outward,
            {cross(axis, outward), zero3<double>()},
            {{radial / radius, 0}, {0, 0}},
            0,
            0};
  }

  // Face 0 is the upper cap, 1 the lower.
  template <class Visit>
  REVOLUTE_HD static void visit_faces(const ConvexShape& shape, const Vector& towards, const FaceRivals&,
                                      const Visit& visit) {
    const Vector axis = shape.axis();
    if (std::fabs(dot(axis, towards)) <= facing) return;
    const bool upper = dot(axis, towards) > 0;
    const Vector normal = upper ? axis : -axis;
    visit(upper ? 0 : 1, normal, support(shape, normal, 1));
  }
  template <class Visit>
  REVOLUTE_HD static void visit_likely_faces(const ConvexShape& shape, const Vector& towards,
                                             const FaceRivals& rivals, const Visit& visit) {
    visit_faces(shape, towards, rivals, visit);
  }
  REVOLUTE_HD static int face_corners(const ConvexShape& shape, int index, Vector* corner) {
    // about the cap's circle, at most a hundredth of the radius outside of it
    const double radius = shape.geom->radius / std::cos(3.141592653589793 / polygon_corners);
    cap_polygon(shape, index == 0 ? 1.0 : -1.0, radius, polygon_corners, corner);
    return polygon_corners;
  }
  // A regular polygon in a cap, its corners in order about the outward normal.
  REVOLUTE_HD static void cap_polygon(const ConvexShape& shape, double cap, double radius, int corners,
                                      Vector* corner) {
    for (int i = 0; i < corners; ++i) {
      const double angle = cap * 6.283185307179586 * i / corners;
      corner[i] = shape.p + shape.R * Vector{radius * std::cos(angle), radius * std::sin(angle),
                                             cap * shape.geom->half[2]};
    }
  }

  // The points of the rim come first. If the middle of the cap came first, it would carry all of the weight, and each rim
  // point would be left with exactly nothing, which is a switching point of the solver.
  REVOLUTE_HD static void add_face_points(const ReferenceFace& face, const ConvexShape& shape,
                                          double tolerance, RawPoints& out) {
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
  // (1)
  REVOLUTE_HD static FaceContact lowest_rim_point(const ConvexShape& shape, const Vector& towards,
                                                  double cap) {
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

  // Directions besides n itself in which a deep overlap may be the shallowest: across the axis.
  template <class Visit>
  REVOLUTE_HD static void visit_directions(const ConvexShape& shape, const Vector& n, const Visit& visit) {
    const Vector across = n - dot(n, shape.axis()) * shape.axis();
    if (dot(across, across) < 1e-12) return;
    visit(unit(across));
    visit(-unit(across));
  }
};

}  // namespace revolute
