// The direction from one convex core to another: by GJK where they are apart, by expanding a polytope where they overlap.
//
// Both work on the difference D = {x_b - x_a}, whose point nearest to the origin is the vector between the
// cores.
//   GJK (Gilbert, Johnson, Keerthi 1988): keep the simplex of D nearest to the origin, add the support point
//   beyond it. Expanding polytope (van den Bergen 2001): grow a polytope inside of D where its faces are
//   nearest to the origin; distances are signed, so that it also works when the origin lies a little outside.
// The result starts the search for features (convex_pair.hpp), which makes it exact.
#pragma once

#include "revolute/collision/shapes/shapes.hpp"

namespace revolute {

struct Simplex {
  Vector w[4];
  int count;
};

struct NearestPoints {
  double distance;  // 0 where the cores overlap
  Vector normal;    // from a to b
  Simplex simplex;  // the last one; where the cores overlap, mostly a tetrahedron about the origin
};

namespace detail {

// Keeps the points that span the part of the simplex nearest to the origin; returns that nearest point.
REVOLUTE_HD inline Vector nearest_on_segment(Simplex& s) {
  const Vector ab = s.w[1] - s.w[0];
  const double t = -dot(s.w[0], ab), squared = dot(ab, ab);
  if (t <= 0 || squared <= 0) {
    s.count = 1;
    return s.w[0];
  }
  if (t >= squared) {
    s.w[0] = s.w[1];
    s.count = 1;
    return s.w[0];
  }
  return s.w[0] + (t / squared) * ab;
}
REVOLUTE_HD inline Vector nearest_on_triangle(Simplex& s) {
  const Vector a = s.w[0], b = s.w[1], c = s.w[2], ab = b - a, ac = c - a;
  const Vector normal = cross(ab, ac);
  const double squared = dot(normal, normal);
  // barycentric coordinates of the origin's projection
  const double u = dot(cross(b, c), normal), v = dot(cross(c, a), normal), w = dot(cross(a, b), normal);
  if (squared > 1e-24 * dot(ab, ab) * dot(ac, ac) && u > 0 && v > 0 && w > 0)
    return (dot(a, normal) / squared) * normal;
  // else the nearest of the three sides
  Simplex best = {{a, b, c}, 0};
  Vector nearest = a;
  double nearest_squared = 1e300;
  const Vector ends[3][2] = {{a, b}, {b, c}, {c, a}};
  for (int side = 0; side < 3; ++side) {
    Simplex part = {{ends[side][0], ends[side][1]}, 2};
    const Vector x = nearest_on_segment(part);
    if (dot(x, x) < nearest_squared) {
      nearest_squared = dot(x, x);
      nearest = x;
      best = part;
    }
  }
  s = best;
  return nearest;
}
// The last point lies beyond the face of the first three, so that face is not tried. `inside`: the origin lies in the
// tetrahedron.
REVOLUTE_HD inline Vector nearest_on_tetrahedron(Simplex& s, bool& inside) {
  constexpr int faces[3][4] = {{0, 3, 1, 2}, {0, 2, 3, 1}, {1, 3, 2, 0}};
  Simplex best = s;
  Vector nearest = zero3<double>();
  double nearest_squared = 1e300;
  inside = true;
  for (const int* f : faces) {
    const Vector a = s.w[f[0]], normal = cross(s.w[f[1]] - a, s.w[f[2]] - a);
    const double origin_side = -dot(normal, a), fourth_side = dot(normal, s.w[f[3]] - a);
    if (origin_side * fourth_side > 0) continue;
    inside = false;
    Simplex part = {{a, s.w[f[1]], s.w[f[2]]}, 3};
    const Vector x = nearest_on_triangle(part);
    if (dot(x, x) < nearest_squared) {
      nearest_squared = dot(x, x);
      nearest = x;
      best = part;
    }
  }
  if (!inside) s = best;
  return nearest;
}

REVOLUTE_HD inline Vector difference_support(const ConvexShape& a, const ConvexShape& b, const Vector& m,
                                             double scale) {
  return support(b, m, scale) - support(a, -m, scale);
}

}  // namespace detail

REVOLUTE_HD inline NearestPoints nearest_points(const ConvexShape& a, const ConvexShape& b, double scale,
                                                double stop_beyond) {
  using namespace detail;
  constexpr int iterations = 64;
  Simplex simplex = {{difference_support(a, b, a.centre - b.centre, scale)}, 1};
  Vector v = simplex.w[0];
  const double size = a.size + b.size;
  for (int i = 0; i < iterations; ++i) {
    const double squared = dot(v, v);
    // at rounding: the origin lies on the simplex, while the cores may overlap deeply
    if (squared < 1e-24 * size * size) return {0, unit(b.centre - a.centre), simplex};
    const Vector w = difference_support(a, b, -v, scale);
    const double bound = dot(v, w);
    if (bound > 0 && bound * bound > squared * stop_beyond * stop_beyond)
      break;  // farther apart than the caller's limit
    if (squared - bound <= 1e-15 * squared) break;
    bool repeated = false;
    for (int k = 0; k < simplex.count; ++k) {
      const Vector gap = simplex.w[k] - w;
      repeated |= dot(gap, gap) == 0;
    }
    if (repeated) break;
    simplex.w[simplex.count++] = w;
    bool inside = false;
    const Vector next = simplex.count == 2   ? nearest_on_segment(simplex)
                        : simplex.count == 3 ? nearest_on_triangle(simplex)
                                             : nearest_on_tetrahedron(simplex, inside);
    if (inside) return {0, unit(b.centre - a.centre), simplex};
    if (dot(next, next) >= squared) break;  // rounding prevents progress
    v = next;
  }
  return {norm(v), unit(v), simplex};
}

namespace detail {

struct Polytope {
  static constexpr int max_points = 68, max_faces = 200;
  struct Face {
    int corner[3];
    Vector normal;
    double distance;
  };
  Vector points[max_points], inner;
  Face faces[max_faces];
  int count = 0, face_count = 0;

  REVOLUTE_HD void add_face(int i, int j, int k) {
    Vector normal = cross(points[j] - points[i], points[k] - points[i]);
    const double squared = dot(normal, normal);
    if (face_count == max_faces) return;
    Face& face = faces[face_count++];
    face = {{i, j, k}, zero3<double>(), 1e300};
    if (squared <= 0) return;
    normal = (1 / std::sqrt(squared)) * normal;
    if (dot(normal, points[i] - inner) < 0) {
      normal = -normal;
      face.corner[1] = k;
      face.corner[2] = j;
    }
    face.normal = normal;
    face.distance = dot(normal, points[i]);
  }

  // Replaces the faces that see the new point by a fan from their rim to it.
  REVOLUTE_HD void expand(const Vector& w, double tolerance) {
    int rim[max_faces][2], rim_count = 0;
    const int added = count;
    points[count++] = w;
    for (int f = 0; f < face_count;) {
      const Face& face = faces[f];
      if (dot(face.normal, w) - face.distance <= tolerance) {
        ++f;
        continue;
      }
      for (int e = 0; e < 3; ++e) {
        const int from = face.corner[e], to = face.corner[(e + 1) % 3];
        int twin = -1;
        for (int r = 0; r < rim_count; ++r)
          if (rim[r][0] == to && rim[r][1] == from) twin = r;
        if (twin >= 0) {
          --rim_count;
          rim[twin][0] = rim[rim_count][0];
          rim[twin][1] = rim[rim_count][1];
        } else if (rim_count < max_faces) {
          rim[rim_count][0] = from;
          rim[rim_count++][1] = to;
        }
      }
      faces[f] = faces[--face_count];
    }
    for (int r = 0; r < rim_count; ++r) add_face(rim[r][0], rim[r][1], added);
  }
};

// Four points of D that are not in one plane: those of `simplex`, or others; false when D is flat.
REVOLUTE_HD inline bool first_tetrahedron(const ConvexShape& a, const ConvexShape& b, double size,
                                          const Simplex& simplex, Polytope& out) {
  const auto finish = [&] {
    out.count = 4;
    out.inner = 0.25 * (out.points[0] + out.points[1] + out.points[2] + out.points[3]);
    out.add_face(0, 1, 2);
    out.add_face(0, 3, 1);
    out.add_face(0, 2, 3);
    out.add_face(1, 3, 2);
    return true;
  };
  if (simplex.count == 4) {
    for (int i = 0; i < 4; ++i) out.points[i] = simplex.w[i];
    const Vector normal = cross(out.points[1] - out.points[0], out.points[2] - out.points[0]);
    if (std::fabs(dot(normal, out.points[3] - out.points[0])) > 1e-6 * size * size * size) return finish();
  }
  const Vector x = {1, 0, 0};
  out.points[0] = difference_support(a, b, x, 1);
  out.points[1] = difference_support(a, b, -x, 1);
  const auto farther = [&](const Vector& m) {
    const Vector one = difference_support(a, b, m, 1), other = difference_support(a, b, -m, 1);
    return std::fabs(dot(m, one - out.points[0])) >= std::fabs(dot(m, other - out.points[0])) ? one : other;
  };
  Vector e1, e2;
  complete_frame(unit(out.points[1] - out.points[0]), e1, e2);
  out.points[2] = farther(e1);
  if (std::fabs(dot(e1, out.points[2] - out.points[0])) < 1e-9 * size) out.points[2] = farther(e2);
  const Vector normal = unit(cross(out.points[1] - out.points[0], out.points[2] - out.points[0]));
  out.points[3] = farther(normal);
  return std::fabs(dot(normal, out.points[3] - out.points[0])) >= 1e-9 * size && finish();
}

}  // namespace detail

// The direction, from a to b, in which overlapping cores are the least apart; `simplex`: points of D to begin with.
REVOLUTE_HD inline Vector overlap_normal(const ConvexShape& a, const ConvexShape& b,
                                         const Simplex& simplex = {{}, 0}) {
  using namespace detail;
  Polytope polytope;
  const double size = a.size + b.size;
  if (!first_tetrahedron(a, b, size, simplex, polytope)) return unit(b.centre - a.centre);
  Vector normal = unit(a.centre - b.centre);
  const double precise = a.is_hull() && b.is_hull() ? 1e-9 * size : 1e-6 * size;
  while (polytope.count < Polytope::max_points && polytope.face_count < Polytope::max_faces - 8) {
    int nearest = 0;
    for (int f = 1; f < polytope.face_count; ++f)
      if (polytope.faces[f].distance < polytope.faces[nearest].distance) nearest = f;
    const Polytope::Face& face = polytope.faces[nearest];
    if (face.distance > 1e299) break;
    normal = face.normal;
    const Vector w = difference_support(a, b, normal, 1);
    if (dot(normal, w) - face.distance < precise) break;
    polytope.expand(w, 1e-12 * size);
  }
  return -normal;
}

}  // namespace revolute
