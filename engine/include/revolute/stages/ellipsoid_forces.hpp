// Force and torque of a medium on a moving ellipsoid, MuJoCo's fluidshape="ellipsoid", in the ellipsoid's axes.
//
// With half axes s, velocities v, w in the medium, density rho, viscosity mu and coefficients c:
//   added mass:   p = rho m v,  l = rho I w;   f = p x w,  n = p x v + l x w                  (1)
//   Magnus:       f = c_m rho vol w x v                                                       (2)
//   Kutta:        f = c_k rho cos(alpha) A (N x v) x v,  N_i = (s_j s_k)^2 v_i,
//                 num = v.N,  den = sum (s_j s_k)^4 v_i^2,  cos(alpha) = num/(|v| den),  A = pi sqrt(den/num)      (3)
//   drag:         f = -(3 pi D mu + rho |v| (c_b A + c_s (A_max - A))) v,   D = 2/3 (s_1 + s_2 + s_3)              (4)
//                 n = -(pi D^3 mu + rho |M|) w,  M_i = w_i (c_a J_i + c_s (J_max - J_i)),  J_i = 8/15 pi s_i max(s_j, s_k)^4
// Source: MuJoCo, Computation, section Ellipsoid model of fluid forces; Andersen, Pesavento, Wang 2005.
//
// Not differentiated where the ellipsoid stands still in the medium: |v| and |w| have a kink there.
#pragma once

#include "revolute/model/model.hpp"
#include "revolute/scalar/directional.hpp"
#include "revolute/spatial/spatial_vector.hpp"

namespace revolute {

namespace detail {

constexpr double tiny = 1e-15;  // MuJoCo's mjMINVAL

template <class T>
REVOLUTE_HD inline Vector3<T> scaled(const double* s, const Vector3<T>& a) {
  return {T(s[0]) * a.x, T(s[1]) * a.y, T(s[2]) * a.z};
}

}  // namespace detail

// u holds the angular and the linear velocity.
template <class T>
REVOLUTE_HD Force<T> ellipsoid_force(const MediumEllipsoid& body, const Motion<T>& u) {
  using detail::scaled;
  constexpr double pi = 3.14159265358979323846;
  const double *const s = body.half, rho = body.density;
  const Vector3<T>&v = u.v, &w = u.w;
  const Vector3<T> p = T(rho) * scaled(body.virtual_mass, v), l = T(rho) * scaled(body.virtual_inertia, w);
  Force<T> out = {cross(p, v) + cross(l, w), cross(p, w)};  // (1)
  const double volume = 4.0 / 3 * pi * s[0] * s[1] * s[2];
  out.f += T(body.magnus * rho * volume) * cross(w, v);  // (2)
  const double larger = s[0] > s[1] ? s[0] : s[1], smaller = s[0] > s[1] ? s[1] : s[0];
  const double longest = larger > s[2] ? larger : s[2], shortest = smaller < s[2] ? smaller : s[2],
               middle = s[0] + s[1] + s[2] - longest - shortest;
  const double square[3] = {s[1] * s[2] * s[1] * s[2], s[2] * s[0] * s[2] * s[0], s[0] * s[1] * s[0] * s[1]};
  const Vector3<T> N = scaled(square, v);
  const T num = dot(v, N), den = dot(N, N);
  const auto moves = less(T(detail::tiny), num);
  const T speed = sqrt(dot(v, v));
  const T area = T(pi) * sqrt(den / select(moves, num, T(detail::tiny)));
  const T product = speed * den;
  const T cosine = num / select(less(T(detail::tiny), product), product, T(detail::tiny));
  out.f += (T(body.kutta * rho) * cosine * area) * cross(cross(N, v), v);  // (3)
  const double diameter = 2.0 / 3 * (s[0] + s[1] + s[2]);
  const T drag =
      T(3 * pi * diameter * body.viscosity) +
      T(rho) * speed * (T(body.blunt) * area + T(body.slender) * (T(pi * longest * middle) - area));
  out.f += (-drag) * v;  // (4)
  const double most = 8.0 / 15 * pi * middle * longest * longest * longest * longest;
  double moment[3];
  for (int i = 0; i < 3; ++i) {
    const double a = s[(i + 1) % 3], b = s[(i + 2) % 3], wider = a > b ? a : b;
    const double J = 8.0 / 15 * pi * s[i] * wider * wider * wider * wider;
    moment[i] = body.angular * J + body.slender * (most - J);
  }
  const Vector3<T> M = scaled(moment, w);
  const T turn = T(pi * diameter * diameter * diameter * body.viscosity) + T(rho) * sqrt(dot(M, M));
  out.n += (-turn) * w;
  return out;
}

// Component j of a velocity: 0 to 2 for w, 3 to 5 for v; of a force: n, then f.
template <class T>
REVOLUTE_HD inline T& component(Motion<T>& u, int j) {
  Vector3<T>& half = j < 3 ? u.w : u.v;
  return j % 3 == 0 ? half.x : j % 3 == 1 ? half.y : half.z;
}
template <class T>
REVOLUTE_HD inline const T& component(const Motion<T>& u, int j) {
  const Vector3<T>& half = j < 3 ? u.w : u.v;
  return j % 3 == 0 ? half.x : j % 3 == 1 ? half.y : half.z;
}
template <class T>
REVOLUTE_HD inline T& component(Force<T>& F, int j) {
  Vector3<T>& half = j < 3 ? F.n : F.f;
  return j % 3 == 0 ? half.x : j % 3 == 1 ? half.y : half.z;
}
template <class T>
REVOLUTE_HD inline const T& component(const Force<T>& F, int j) {
  const Vector3<T>& half = j < 3 ? F.n : F.f;
  return j % 3 == 0 ? half.x : j % 3 == 1 ? half.y : half.z;
}

// The force's derivative along component j of u, and its second derivative along j and k.
template <class Real>
REVOLUTE_HD Force<Real> ellipsoid_slope(const MediumEllipsoid& body, const Motion<Real>& u, int j) {
  using T = Directional<Real, Real>;
  Motion<T> moving;
  for (int i = 0; i < 6; ++i) component(moving, i) = T(component(u, i), Real(i == j ? 1.0 : 0.0));
  const Force<T> F = ellipsoid_force(body, moving);
  Force<Real> out;
  for (int i = 0; i < 6; ++i) component(out, i) = component(F, i).tangent;
  return out;
}
template <class Real>
REVOLUTE_HD Force<Real> ellipsoid_curvature(const MediumEllipsoid& body, const Motion<Real>& u, int j,
                                            int k) {
  using T = Directional<Real, Real>;
  using Second = Directional<T, T>;
  Motion<Second> moving;
  for (int i = 0; i < 6; ++i)
    component(moving, i) =
        Second(T(component(u, i), Real(i == j ? 1.0 : 0.0)), T(Real(i == k ? 1.0 : 0.0), Real(0)));
  const Force<Second> F = ellipsoid_force(body, moving);
  Force<Real> out;
  for (int i = 0; i < 6; ++i) component(out, i) = component(F, i).tangent.tangent;
  return out;
}

}  // namespace revolute
