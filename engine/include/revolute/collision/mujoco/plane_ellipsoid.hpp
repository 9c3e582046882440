// A fixed plane and an ellipsoid of half axes D: its lowest point. With the plane's normal n and m = -R'n:
//   u = D m,   x = o + R D u/|u|,   gap = n.(x - plane)                                       (1)
// When the ellipsoid turns by w, x also rolls by R W R'(w x n), W = D (1 - u u'/|u|^2) D / |u|. (2)
#pragma once

#include "revolute/collision/plane_point.hpp"

namespace revolute::mujoco {

template <class Real>
struct Ellipsoid {
  Matrix3<Real> R;
  Vector3<Real> centre, half;
};

template <class Real>
REVOLUTE_HD inline Vector3<Real> scaled(const Vector3<Real>& D, const Vector3<Real>& a) {
  return {D.x * a.x, D.y * a.y, D.z * a.z};
}

template <class Real>
REVOLUTE_HD inline Vector3<Real> plane_ellipsoid_point(const Vector3<Real>& n, const Ellipsoid<Real>& b) {
  const Vector3<Real> u = scaled(b.half, transpose_times(b.R, -n));
  return b.centre + b.R * ((Real(1) / sqrt(dot(u, u))) * scaled(b.half, u));
}

// The ellipsoid's moment about the world's origin, from the cotangent of the point x.
template <class Real, class Bar>
REVOLUTE_HD inline Force<Bar> plane_ellipsoid_adjoint(const Vector3<Real>& n, const Ellipsoid<Real>& b,
                                                      const Vector3<Bar>& x_bar) {
  const Vector3<Real> u = scaled(b.half, transpose_times(b.R, -n));
  const Real inverse = Real(1) / sqrt(dot(u, u));
  const Vector3<Bar> local = transpose_times(b.R, x_bar);
  const auto stretched = [&](const Vector3<Bar>& a) {
    return Vector3<Bar>{b.half.x * a.x, b.half.y * a.y, b.half.z * a.z};
  };
  const Vector3<Bar> rolled = stretched(direction_adjoint(inverse * u, inverse, stretched(local)));  // (2)
  Force<Bar> moment = force_at(plane_ellipsoid_point(n, b), x_bar);
  moment.n += cross(n, b.R * rolled);
  return moment;
}

}  // namespace revolute::mujoco
