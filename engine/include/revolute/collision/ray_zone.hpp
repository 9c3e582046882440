// Solids about the origin, such as the zone of a touch sensor: whether a ray p + t d, t >= 0, meets one, and whether it holds a
// point. A ray that starts inside meets it.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "revolute/spatial/vector3.hpp"

namespace revolute {

// Values of t in an interval, empty where low > high.
struct RayInterval {
  double low = 0.0, high = std::numeric_limits<double>::infinity();

  void cut(double from, double to) {
    low = std::max(low, from);
    high = std::min(high, to);
  }
  // |p + t d| <= half in one coordinate
  void cut_slab(double p, double d, double half) {
    if (d == 0.0) {
      if (std::fabs(p) > half) high = -1.0;
      return;
    }
    const double one = (-half - p) / d, other = (half - p) / d;
    cut(std::min(one, other), std::max(one, other));
  }
  // a t^2 + 2 b t + c <= 0
  void cut_quadratic(double a, double b, double c) {
    if (a == 0.0) {
      if (c > 0.0) high = -1.0;
      return;
    }
    const double discriminant = b * b - a * c;
    if (discriminant < 0.0) {
      high = -1.0;
      return;
    }
    const double root = std::sqrt(discriminant);
    cut((-b - root) / a, (-b + root) / a);
  }
  bool any() const { return low <= high; }
};

inline bool ray_meets_sphere(const Vector3<double>& p, const Vector3<double>& d, double radius) {
  RayInterval t;
  t.cut_quadratic(dot(d, d), dot(p, d), dot(p, p) - radius * radius);
  return t.any();
}
inline bool ray_meets_cylinder(const Vector3<double>& p, const Vector3<double>& d, double radius,
                               double half) {
  RayInterval t;
  t.cut_slab(p.z, d.z, half);
  t.cut_quadratic(d.x * d.x + d.y * d.y, p.x * d.x + p.y * d.y, p.x * p.x + p.y * p.y - radius * radius);
  return t.any();
}

// Whether a solid holds a point.
inline bool zone_holds(int shape, const double* size, const Vector3<double>& p) {
  switch (shape) {
    case 2:  // sphere
      return dot(p, p) <= size[0] * size[0];
    case 3: {  // capsule
      const double z = std::max(0.0, std::fabs(p.z) - size[1]);
      return p.x * p.x + p.y * p.y + z * z <= size[0] * size[0];
    }
    case 4: {  // ellipsoid
      const Vector3<double> q = {p.x / size[0], p.y / size[1], p.z / size[2]};
      return dot(q, q) <= 1.0;
    }
    case 5:  // cylinder
      return std::fabs(p.z) <= size[1] && p.x * p.x + p.y * p.y <= size[0] * size[0];
    default:  // box
      return std::fabs(p.x) <= size[0] && std::fabs(p.y) <= size[1] && std::fabs(p.z) <= size[2];
  }
}

// shape and size are MuJoCo's: mjtGeom, and the size of such a geom.
inline bool ray_meets_zone(int shape, const double* size, const Vector3<double>& p,
                           const Vector3<double>& d) {
  switch (shape) {
    case 2:  // sphere
      return ray_meets_sphere(p, d, size[0]);
    case 3:  // capsule: a cylinder and a sphere at either end
      return ray_meets_cylinder(p, d, size[0], size[1]) ||
             ray_meets_sphere({p.x, p.y, p.z - size[1]}, d, size[0]) ||
             ray_meets_sphere({p.x, p.y, p.z + size[1]}, d, size[0]);
    case 4:  // ellipsoid
      return ray_meets_sphere({p.x / size[0], p.y / size[1], p.z / size[2]},
                              {d.x / size[0], d.y / size[1], d.z / size[2]}, 1.0);
    case 5:  // cylinder
      return ray_meets_cylinder(p, d, size[0], size[1]);
    default: {  // box
      RayInterval t;
      t.cut_slab(p.x, d.x, size[0]);
      t.cut_slab(p.y, d.y, size[1]);
      t.cut_slab(p.z, d.z, size[2]);
      return t.any();
    }
  }
}

}  // namespace revolute
