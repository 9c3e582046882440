// An ellipsoid of half axes D: one smooth surface. Its support in direction m is x = D^2 m/|D m| in local axes; when m turns it moves
// by W = (D^2 - x x')/|D m|, the inverse of its curvature.                                   (1)
#pragma once

#include "revolute/collision/face_points.hpp"
#include "revolute/collision/surface_element.hpp"

namespace revolute {

struct EllipsoidShape {
  REVOLUTE_HD static Vector support(const ConvexShape& shape, const Vector& m, double scale) {
    const Vector local = transpose_times(shape.R, m);
    const double* half = shape.geom->half;
    const Vector scaled = unit({half[0] * local.x, half[1] * local.y, half[2] * local.z});
    const Vector x = {half[0] * scaled.x, half[1] * scaled.y, half[2] * scaled.z};
    return shape.p + shape.R * (scale * x);
  }

  // W of (1), in world axes.
  REVOLUTE_HD static Matrix3<double> roll(const ConvexShape& shape, const Vector& m) {
    const Vector local = transpose_times(shape.R, m),
                 x = transpose_times(shape.R, support(shape, m, 1) - shape.p);
    const double* half = shape.geom->half;
    const double height = dot(local, x);
    const double X[3] = {x.x, x.y, x.z};
    Matrix3<double> W;
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) W(i, j) = ((i == j ? half[i] * half[i] : 0) - X[i] * X[j]) / height;
    return shape.R * W * transpose(shape.R);
  }

  REVOLUTE_HD static SurfaceElement element(const ConvexShape& shape, const Vector& m, double) {
    SurfaceElement out = {Feature::smooth, 2, support(shape, m, 1), {}, {}, 0, 0};
    complete_frame(m, out.tangent[0], out.tangent[1]);
    const Matrix3<double> W = roll(shape, m);
    const Vector w0 = W * out.tangent[0], w1 = W * out.tangent[1];
    const double a = dot(out.tangent[0], w0), b = dot(out.tangent[0], w1), d = dot(out.tangent[1], w1),
                 determinant = a * d - b * b;
    out.curvature[0][0] = d / determinant;
    out.curvature[0][1] = out.curvature[1][0] = -b / determinant;
    out.curvature[1][1] = a / determinant;
    return out;
  }
  REVOLUTE_HD static void follow(const ConvexShape& shape, const Vector& m, const Vector&,
                                 SurfaceElement& out) {
    out = element(shape, m, 0);
  }

  template <class Visit>
  REVOLUTE_HD static void visit_likely_faces(const ConvexShape&, const Vector&, const FaceRivals&,
                                             const Visit&) {}
  template <class Visit>
  REVOLUTE_HD static void visit_faces(const ConvexShape&, const Vector&, const FaceRivals&, const Visit&) {}
  REVOLUTE_HD static int face_corners(const ConvexShape&, int, Vector*) { return 0; }
  REVOLUTE_HD static void add_face_points(const ReferenceFace& face, const ConvexShape& shape, double,
                                          RawPoints& out) {
    out.add({support(shape, -face.normal, 1), 0, identity_matrix<double>(), roll(shape, -face.normal)});
  }

  template <class Visit>
  REVOLUTE_HD static void visit_directions(const ConvexShape&, const Vector&, const Visit&) {}
};

}  // namespace revolute
