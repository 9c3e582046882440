// The nearest points of two surface elements that are not faces: vertices, edges, rims of cylinders, smooth
// surfaces.
//
// Element a at its point x has k = 0, 1 or 2 directions T in which the nearest point may slide, with
// curvature K:
//   x(u) = x + T u - (u'K u / 2) m,   m outward normal (n for a, -n for b) (1)
// With n the unit normal from a to b and phi the signed distance, x_b = x_a + phi n, n.T_a = 0, n.T_b = 0.
// When a is displaced by a small rotation w and translation (delta at x_a) the points slide by (du, dv) and n
// turns by nu = E y, where the columns of E complete n to a frame:
//   T_a'E y - K_a du                    = -w.(T_a x n) - T_a.n
//   T_b'E y + K_b dv                    = -T_b.n                                              (2)
//   E'(T_b dv - T_a du) - phi y         = E'(delta - (x_b - x_a))
// The last terms are zero at the solution; with w = delta = 0 this is Newton's method for it. The adjoint solves with the
// transposed matrix. Parallel edges have no single nearest pair: a singular pivot gives no motion.  (3)
#pragma once

#include "revolute/collision/shapes/shapes.hpp"

namespace revolute {

struct StationaryPair {
  SurfaceElement a, b;
  Vector normal;
  double distance;  // phi, without radii
};

namespace detail {

// The unknowns are du, dv and y, without the directions that the elements do not have.
struct StationarySystem {
  int at_b, at_y, size;  // where dv and y begin
  double M[6][6];
  Vector e1, e2;

  REVOLUTE_HD explicit StationarySystem(const StationaryPair& pair)
      : at_b(pair.a.freedoms), at_y(at_b + pair.b.freedoms), size(at_y + 2) {
    complete_frame(pair.normal, e1, e2);
    for (int i = 0; i < size; ++i)
      for (int j = 0; j < size; ++j) M[i][j] = 0;
    fill(pair.a, 0, -1);
    fill(pair.b, at_b, 1);
    M[at_y][at_y] = M[at_y + 1][at_y + 1] = -pair.distance;
  }
  REVOLUTE_HD void fill(const SurfaceElement& element, int offset, double sign) {
    for (int i = 0; i < element.freedoms; ++i) {
      for (int j = 0; j < element.freedoms; ++j) M[offset + i][offset + j] = sign * element.curvature[i][j];
      const double along1 = dot(e1, element.tangent[i]), along2 = dot(e2, element.tangent[i]);
      M[offset + i][at_y] = along1;
      M[offset + i][at_y + 1] = along2;
      M[at_y][offset + i] = sign * along1;
      M[at_y + 1][offset + i] = sign * along2;
    }
  }

  // x <- M^-1 x, or M'^-1 x; (3)
  REVOLUTE_HD void solve(double* x, bool transposed) const {
    double A[6][6];
    for (int i = 0; i < size; ++i) {
      double scale = 0;
      for (int j = 0; j < size; ++j) {
        A[i][j] = transposed ? M[j][i] : M[i][j];
        scale = std::fmax(scale, std::fabs(A[i][j]));
      }
      if (scale <= 0) scale = 1;
      for (int j = 0; j < size; ++j) A[i][j] /= scale;
      x[i] /= scale;
    }
    bool regular[6];
    for (int c = 0; c < size; ++c) {
      int pivot = c;
      for (int r = c + 1; r < size; ++r)
        if (std::fabs(A[r][c]) > std::fabs(A[pivot][c])) pivot = r;
      regular[c] = std::fabs(A[pivot][c]) > 1e-10;
      if (!regular[c]) continue;
      for (int j = 0; j < size; ++j) {
        const double kept = A[c][j];
        A[c][j] = A[pivot][j];
        A[pivot][j] = kept;
      }
      const double kept = x[c];
      x[c] = x[pivot];
      x[pivot] = kept;
      for (int r = c + 1; r < size; ++r) {
        const double factor = A[r][c] / A[c][c];
        for (int j = c; j < size; ++j) A[r][j] -= factor * A[c][j];
        x[r] -= factor * x[c];
      }
    }
    for (int c = size - 1; c >= 0; --c) {
      for (int j = c + 1; j < size; ++j) x[c] -= A[c][j] * x[j];
      x[c] = regular[c] ? x[c] / A[c][c] : 0;
    }
  }
};

}  // namespace detail

// Newton's method from pair.normal; false when it does not converge to points of both shapes.
REVOLUTE_HD inline bool find_stationary(const ConvexShape& a, const ConvexShape& b, StationaryPair& pair) {
  constexpr int iterations = 25;
  const Vector base_a = pair.a.point, base_b = pair.b.point;
  const auto follow = [](const ConvexShape& shape, const Vector& m, const Vector& base,
                         SurfaceElement& element) {
    with_shape(shape, [&](const auto& of) { of.follow(shape, m, base, element); });
  };
  const double size = a.size + b.size;
  for (int i = 0; i < iterations; ++i) {
    follow(a, pair.normal, base_a, pair.a);
    follow(b, -pair.normal, base_b, pair.b);
    const Vector between = pair.b.point - pair.a.point;
    pair.distance = dot(pair.normal, between);
    const detail::StationarySystem system(pair);
    double x[6];
    for (int k = 0; k < pair.a.freedoms; ++k) x[k] = -dot(pair.a.tangent[k], pair.normal);
    for (int k = 0; k < pair.b.freedoms; ++k) x[system.at_b + k] = -dot(pair.b.tangent[k], pair.normal);
    double* const y = x + system.at_y;
    y[0] = -dot(system.e1, between);
    y[1] = -dot(system.e2, between);
    system.solve(x, false);
    // a step of at most half a radian
    const double turn = std::sqrt(y[0] * y[0] + y[1] * y[1]), kept = turn > 0.5 ? 0.5 / turn : 1;
    if (!(turn < 1e6)) return false;
    pair.normal = unit(pair.normal + (kept * y[0]) * system.e1 + (kept * y[1]) * system.e2);
    if (turn > 1e-13) continue;
    const double along_b = x[system.at_b];
    if (pair.a.feature == Feature::edge) pair.a.point = base_a + x[0] * pair.a.tangent[0];
    if (pair.b.feature == Feature::edge) pair.b.point = base_b + along_b * pair.b.tangent[0];
    const bool on_a = pair.a.feature != Feature::edge || std::fabs(x[0]) <= pair.a.half + 1e-9 * size;
    const bool on_b = pair.b.feature != Feature::edge || std::fabs(along_b) <= pair.b.half + 1e-9 * size;
    pair.distance = dot(pair.normal, pair.b.point - pair.a.point);
    return on_a && on_b;
  }
  return false;
}

REVOLUTE_HD inline ContactPoint<double> answer(const StationaryPair& pair) {
  const double gap = pair.distance - pair.a.radius - pair.b.radius;
  return {gap, pair.a.point + (pair.a.radius + 0.5 * gap) * pair.normal, pair.normal};
}

// Cotangent by a displacement of a, as a moment about the origin: reverse of (2) and of `answer`.
REVOLUTE_HD inline Force<double> stationary_adjoint(const StationaryPair& pair,
                                                    const ContactPoint<double>& at,
                                                    const ContactPoint<double>& bar) {
  const Vector& n = pair.normal;
  const detail::StationarySystem system(pair);
  const Vector n_bar = bar.normal + (pair.a.radius + 0.5 * at.gap) * bar.point;
  double x[6] = {};
  for (int k = 0; k < pair.a.freedoms; ++k) x[k] = dot(pair.a.tangent[k], bar.point);
  double* const y = x + system.at_y;
  y[0] = dot(system.e1, n_bar);
  y[1] = dot(system.e2, n_bar);
  system.solve(x, true);
  const Vector delta_bar =
      bar.point - (bar.gap + 0.5 * dot(n, bar.point)) * n + y[0] * system.e1 + y[1] * system.e2;
  Force<double> moment = force_at(pair.a.point, delta_bar);
  for (int k = 0; k < pair.a.freedoms; ++k) moment.n -= x[k] * cross(pair.a.tangent[k], n);
  return moment;
}

}  // namespace revolute
