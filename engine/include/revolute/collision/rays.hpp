// Where a ray p + t d, t >= 0, |d| = 1, first meets the surface of a shape, in the shape's own frame. A ray that starts inside
// meets the surface from within; a plane is only met from above. The surface at the hit is the zero of a function F with
//   gradient g = H (x - c), or g constant,   H diagonal,                                      (1)
// so its normal is g/|g|, and a displacement dx of the hit along the surface turns it by (1 - n n') H dx/|g|.
// Not differentiated: which part of the surface is met. Source: MuJoCo, API reference, mj_ray.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "revolute/model/model.hpp"
#include "revolute/spatial/vector3.hpp"

namespace revolute {

using RayVector = Vector3<double>;

struct RayHit {
  double distance = std::numeric_limits<double>::infinity();
  RayVector gradient = {0, 0, 1}, curvature = {0, 0, 0};  // g and the diagonal of H

  bool found() const { return distance < std::numeric_limits<double>::infinity(); }
  void consider(double t, const RayVector& g, const RayVector& H = {0, 0, 0}) {
    if (!(t >= 0.0) || t >= distance) return;
    distance = t;
    gradient = g;
    curvature = H;
  }
};

struct Ray {
  RayVector p, d;
  RayVector at(double t) const { return p + t * d; }
};

// Calls visit(t) for the roots of a t^2 + 2 b t + c.
template <class Visit>
inline void visit_roots(double a, double b, double c, const Visit& visit) {
  const double discriminant = b * b - a * c;
  if (a == 0.0 || discriminant < 0.0) return;
  const double root = std::sqrt(discriminant);
  visit((-b - root) / a);
  visit((-b + root) / a);
}

inline void ray_plane(const Ray& ray, const double* extent, RayHit& hit) {
  if (ray.d.z > -1e-15) return;
  const double t = -ray.p.z / ray.d.z;
  const RayVector x = ray.at(t);
  if ((extent[0] <= 0 || std::fabs(x.x) <= extent[0]) && (extent[1] <= 0 || std::fabs(x.y) <= extent[1]))
    hit.consider(t, {0, 0, 1});
}
// The sphere about (0, 0, z); `end`: only its half beyond z, for capsules.
inline void ray_sphere(const Ray& ray, double radius, double z, bool end, RayHit& hit) {
  const RayVector p = {ray.p.x, ray.p.y, ray.p.z - z};
  visit_roots(dot(ray.d, ray.d), dot(p, ray.d), dot(p, p) - radius * radius, [&](double t) {
    const RayVector x = p + t * ray.d;
    if (!end || x.z * z >= 0) hit.consider(t, x, {1, 1, 1});
  });
}
// The side of a cylinder along z.
inline void ray_side(const Ray& ray, double radius, double half, RayHit& hit) {
  const RayVector &p = ray.p, &d = ray.d;
  visit_roots(d.x * d.x + d.y * d.y, p.x * d.x + p.y * d.y, p.x * p.x + p.y * p.y - radius * radius,
              [&](double t) {
                const RayVector x = ray.at(t);
                if (std::fabs(x.z) <= half) hit.consider(t, {x.x, x.y, 0}, {1, 1, 0});
              });
}
inline void ray_capsule(const Ray& ray, double radius, double half, RayHit& hit) {
  ray_side(ray, radius, half, hit);
  ray_sphere(ray, radius, half, true, hit);
  ray_sphere(ray, radius, -half, true, hit);
}
inline void ray_cylinder(const Ray& ray, double radius, double half, RayHit& hit) {
  ray_side(ray, radius, half, hit);
  for (double side : {-1.0, 1.0}) {
    if (std::fabs(ray.d.z) < 1e-15) return;
    const double t = (side * half - ray.p.z) / ray.d.z;
    const RayVector x = ray.at(t);
    if (x.x * x.x + x.y * x.y <= radius * radius) hit.consider(t, {0, 0, side});
  }
}
inline void ray_ellipsoid(const Ray& ray, const double* half, RayHit& hit) {
  const RayVector H = {1 / (half[0] * half[0]), 1 / (half[1] * half[1]), 1 / (half[2] * half[2])};
  const auto times_H = [&](const RayVector& x) { return RayVector{H.x * x.x, H.y * x.y, H.z * x.z}; };
  visit_roots(dot(ray.d, times_H(ray.d)), dot(ray.p, times_H(ray.d)), dot(ray.p, times_H(ray.p)) - 1,
              [&](double t) { hit.consider(t, times_H(ray.at(t)), H); });
}
// The box between two corners.
inline void ray_box(const Ray& ray, const RayVector& low, const RayVector& high, RayHit& hit) {
  const double p[3] = {ray.p.x, ray.p.y, ray.p.z}, d[3] = {ray.d.x, ray.d.y, ray.d.z};
  const double bounds[2][3] = {{low.x, low.y, low.z}, {high.x, high.y, high.z}};
  for (int i = 0; i < 3; ++i) {
    if (std::fabs(d[i]) < 1e-15) continue;
    const int j = (i + 1) % 3, k = (i + 2) % 3;
    for (int side = 0; side < 2; ++side) {
      const double t = (bounds[side][i] - p[i]) / d[i], u = p[j] + t * d[j], v = p[k] + t * d[k];
      if (u < bounds[0][j] || u > bounds[1][j] || v < bounds[0][k] || v > bounds[1][k]) continue;
      double g[3] = {0, 0, 0};
      g[i] = side == 0 ? -1 : 1;
      hit.consider(t, {g[0], g[1], g[2]});
    }
  }
}
inline void ray_triangle(const Ray& ray, const RayVector& a, const RayVector& b, const RayVector& c,
                         RayHit& hit) {
  const RayVector e = b - a, f = c - a, normal = cross(e, f), q = ray.p - a;
  const double along = dot(ray.d, normal);
  if (along == 0.0) return;
  const RayVector w = cross(q, ray.d);
  const double u = dot(f, w) / -along, v = dot(e, w) / along;
  if (u < 0 || v < 0 || u + v > 1) return;
  hit.consider(-dot(q, normal) / along, normal);
}
inline void ray_mesh(const Ray& ray, const double* triangles, int count, double bound, RayHit& hit) {
  const RayVector across = ray.p - dot(ray.p, ray.d) * ray.d;
  if (bound > 0 && dot(across, across) > bound * bound) return;
  for (int i = 0; i < count; ++i) {
    const double* const corner = triangles + 9 * i;
    ray_triangle(ray, vector3<double>(corner), vector3<double>(corner + 3), vector3<double>(corner + 6), hit);
  }
}
// The base, the sides under the border's heights, and the two triangles of each cell under the ray (height_field.hpp).
inline void ray_height_field(const Ray& ray, const HeightField& field, RayHit& hit) {
  const int rows = field.rows, columns = field.columns;
  const double *half = field.half, *step = field.step;
  ray_box(ray, {-half[0], -half[1], -field.base}, {half[0], half[1], 0}, hit);
  const auto height = [&](int r, int c) { return field.heights[std::size_t(r) * columns + c]; };
  const auto corner = [&](int r, int c) {
    return RayVector{c * step[0] - half[0], r * step[1] - half[1], height(r, c)};
  };
  double most = 0;
  for (std::size_t i = 0; i < std::size_t(rows) * columns; ++i) most = std::max(most, field.heights[i]);
  // sides
  for (int axis = 0; axis < 2; ++axis) {
    const double d = axis == 0 ? ray.d.x : ray.d.y, p = axis == 0 ? ray.p.x : ray.p.y;
    if (std::fabs(d) < 1e-15) continue;
    for (double side : {-1.0, 1.0}) {
      const double t = (side * half[axis] - p) / d;
      const RayVector x = ray.at(t);
      const int other = 1 - axis, cells = (other == 0 ? columns : rows) - 1;
      const double along = ((other == 0 ? x.x : x.y) + half[other]) / step[other];
      if (!(along >= 0 && along <= cells) || x.z < 0) continue;
      const int i = std::min(int(along), cells - 1), last = side < 0 ? 0 : (axis == 0 ? columns : rows) - 1;
      const double low = axis == 0 ? height(i, last) : height(last, i),
                   high = axis == 0 ? height(i + 1, last) : height(last, i + 1);
      if (x.z > low + (along - i) * (high - low)) continue;
      hit.consider(t, axis == 0 ? RayVector{side, 0, 0} : RayVector{0, side, 0});
    }
  }
  // the part of the ray in the box about the surface
  double from = 0, to = std::numeric_limits<double>::infinity();
  const double p[3] = {ray.p.x, ray.p.y, ray.p.z}, d[3] = {ray.d.x, ray.d.y, ray.d.z};
  const double low[3] = {-half[0], -half[1], 0}, high[3] = {half[0], half[1], most};
  for (int i = 0; i < 3; ++i) {
    if (d[i] == 0.0) {
      if (p[i] < low[i] || p[i] > high[i]) return;
      continue;
    }
    const double one = (low[i] - p[i]) / d[i], other = (high[i] - p[i]) / d[i];
    from = std::max(from, std::min(one, other));
    to = std::min(to, std::max(one, other));
  }
  if (from > to) return;
  const RayVector a = ray.at(from), b = ray.at(to);
  const auto cell = [&](double x, int i, int cells) {
    return std::clamp(int(std::floor((x + half[i]) / step[i])), 0, cells - 1);
  };
  const int first_column = std::max(0, cell(std::min(a.x, b.x), 0, columns - 1) - 1),
            last_column = std::min(columns - 2, cell(std::max(a.x, b.x), 0, columns - 1) + 1),
            first_row = std::max(0, cell(std::min(a.y, b.y), 1, rows - 1) - 1),
            last_row = std::min(rows - 2, cell(std::max(a.y, b.y), 1, rows - 1) + 1);
  for (int r = first_row; r <= last_row; ++r)
    for (int c = first_column; c <= last_column; ++c) {
      ray_triangle(ray, corner(r, c), corner(r + 1, c + 1), corner(r + 1, c), hit);
      ray_triangle(ray, corner(r, c), corner(r, c + 1), corner(r + 1, c + 1), hit);
    }
}

inline void ray_geom(const Model& model, const Geom& geom, const Ray& ray, RayHit& hit) {
  switch (geom.shape) {
    case Shape::plane:
      return ray_plane(ray, geom.extent, hit);
    case Shape::height_field:
      return ray_height_field(ray, model.height_fields[geom.field], hit);
    case Shape::sphere:
      return ray_sphere(ray, geom.radius, 0, false, hit);
    case Shape::capsule:
      return ray_capsule(ray, geom.radius, geom.half[2], hit);
    case Shape::ellipsoid:
      return ray_ellipsoid(ray, geom.half, hit);
    case Shape::cylinder:
      return ray_cylinder(ray, geom.radius, geom.half[2], hit);
    case Shape::box:
      return ray_box(ray, {-geom.half[0], -geom.half[1], -geom.half[2]},
                     {geom.half[0], geom.half[1], geom.half[2]}, hit);
    default:
      return ray_mesh(ray, model.triangles + 9 * std::size_t(geom.first_triangle), geom.triangles, geom.bound,
                      hit);
  }
}

}  // namespace revolute
