// The rate of the exponential coordinates u of a rotation that turns with velocity v in its own axes, joint by joint:
//   k = J_r(u)^-1 v = v + u x v/2 + b(t) u x (u x v),   t = |u|^2,  b = 1/t - (1 + cos|u|)/(2 |u| sin|u|)      (1)
// and k = v for coordinates that are plain numbers. MuJoCo's Runge-Kutta adds its stages' velocities in these coordinates at
// the start of the step (Munthe-Kaas 1998).
// Adjoint:  v_bar = J_r^-T k_bar,  u_bar = v x k_bar/2 + b ((u x v) x k_bar + v x (k_bar x u)) + 2 b' (k_bar.(u x (u x v))) u
#pragma once

#include "revolute/model/joints/free.hpp"

namespace revolute {

namespace detail {

// b of (1) and its derivative by t.
template <class Real>
REVOLUTE_HD inline Real rate_coefficient(const Real& t, Real& slope) {
  const auto small = less(t, Real(1e-2));
  const Real safe = select(small, Real(1), t);
  Real sinc, c;
  sinc_cos(Real(0.25) * safe, sinc, c);  // of |u|/2
  const Real half_cotangent = c / sinc;  // |u|/2 cot(|u|/2)
  const Real b = (Real(1) - half_cotangent) / safe;
  // d/dt (|u|/2 cot(|u|/2)) = (cot/2 - |u|/4 / sin^2) / (2|u|)
  const Real cotangent_slope = (half_cotangent - Real(1) / (sinc * sinc)) / (Real(2) * safe);
  const Real series =
      Real(1.0 / 12) +
      t * (Real(1.0 / 720) + t * (Real(1.0 / 30240) + t * (Real(1.0 / 1209600) + t * Real(1.0 / 47900160))));
  const Real series_slope =
      Real(1.0 / 720) + t * (Real(1.0 / 15120) + t * (Real(1.0 / 403200) + t * Real(1.0 / 11975040)));
  slope = select(small, series_slope, (-cotangent_slope - b) / safe);
  return select(small, series, b);
}
template <class Real>
REVOLUTE_HD inline Vector3<Real> rotation_rate(const Vector3<Real>& v, const Vector3<Real>& u) {
  Real slope;
  const Real b = rate_coefficient(dot(u, u), slope);
  const Vector3<Real> uv = cross(u, v);
  return v + Real(0.5) * uv + b * cross(u, uv);
}
template <class Real, class Bar>
REVOLUTE_HD inline void rotation_rate_adjoint(const Vector3<Real>& v, const Vector3<Real>& u,
                                              const Vector3<Bar>& k_bar, Vector3<Bar>& v_bar,
                                              Vector3<Bar>& u_bar) {
  Real slope;
  const Real b = rate_coefficient(dot(u, u), slope), half(0.5);
  const Vector3<Bar> uk = cross(u, k_bar);
  const Vector3<Real> uv = cross(u, v);
  v_bar = k_bar - half * uk + b * cross(u, uk);
  u_bar = half * cross(v, k_bar) + b * (cross(uv, k_bar) - cross(v, uk)) +
          (Real(2) * slope * dot(cross(u, uv), k_bar)) * u;
}
// The first of three rotational degrees of freedom, or -1.
REVOLUTE_HD inline int first_turning_dof(const Joint& joint) {
  return joint.type == JointType::free ? joint.dof + 3 : joint.type == JointType::ball ? joint.dof : -1;
}

}  // namespace detail

template <class Real>
REVOLUTE_HD void coordinate_rates(const Model& model, const Real* v, const Real* u, Real* k) {
  for (int i = 0; i < model.nv; ++i) k[i] = v[i];
  for (int j = 0; j < model.njnt; ++j) {
    const int dof = detail::first_turning_dof(model.joints[j]);
    if (dof < 0) continue;
    const Vector3<Real> rate = detail::rotation_rate(load3(v + dof), load3(u + dof));
    k[dof] = rate.x;
    k[dof + 1] = rate.y;
    k[dof + 2] = rate.z;
  }
}
// Adds to v_bar; sets u_bar.
template <class Real, class Bar>
REVOLUTE_HD void coordinate_rates_adjoint(const Model& model, const Real* v, const Real* u, const Bar* k_bar,
                                          Bar* v_bar, Bar* u_bar) {
  for (int i = 0; i < model.nv; ++i) u_bar[i] = Bar(0);
  for (int j = 0; j < model.njnt; ++j) {
    const Joint& joint = model.joints[j];
    const int dof = detail::first_turning_dof(joint);
    const int plain = joint.type == JointType::free ? 3 : joint.type == JointType::ball ? 0 : 1;
    for (int i = 0; i < plain; ++i) v_bar[joint.dof + i] += k_bar[joint.dof + i];
    if (dof < 0) continue;
    Vector3<Bar> of_v, of_u;
    detail::rotation_rate_adjoint(load3(v + dof), load3(u + dof), load3(k_bar + dof), of_v, of_u);
    add3(v_bar + dof, of_v);
    add3(u_bar + dof, of_u);
  }
}

}  // namespace revolute
