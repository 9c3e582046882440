// Forces on links besides those of joints and constraints: gravity compensation, and a medium's resistance.
//
//   compensation:  the force -m g at the mass centre, of the masses m that are compensated (body_mass gravcomp)        (1)
//   medium, MuJoCo's inertia box, in the axes of a body's inertia, with v, w the velocity of its mass centre in the medium:
//     f_i = -(a + b_i |v_i|) v_i,   n_i = -(c + d_i |w_i|) w_i                                (2)
// a and c come from viscosity, b and d from density and the sides of the box (parameter_map.hpp).
// Source: MuJoCo, Computation, section Passive forces.
//
// Adjoint. Under the cotangent tau_bar of generalized forces, links move with T:  L = sum over links of T . (wrench).
#pragma once

#include "revolute/stages/link_points.hpp"

namespace revolute {

template <class Real>
struct LinkForceSums {
  Force<Real>* compensation;  // [nv] of a link and those beyond it
  Force<Real>* medium;        // [nv]
  Force<Real>* applied;       // [nv] of applied_wrenches.hpp
  Real* lift;                 // [nv] generalized forces of the compensation

  LinkForceSums(const Model& model, Arena& arena)
      : compensation(arena.take<Force<Real>>(model.compensated ? model.nv : 0)),
        medium(arena.take<Force<Real>>(model.nmedium > 0 ? model.nv : 0)),
        applied(arena.take<Force<Real>>(model.nv)),
        lift(arena.take<Real>(model.compensated ? model.nv : 0)) {}
};

REVOLUTE_HD inline bool any_link_forces(const Model& model) { return model.compensated || model.nmedium > 0; }

namespace detail {

// (2), for one body.
template <class Real>
struct Resistance {
  Matrix3<Real> A;           // axes in the world
  Vector3<Real> arm, moved;  // mass centre from the reference point; its velocity in the medium
  Vector3<Real> v, w;        // in the axes
  Vector3<Real> f, n;
};
template <class Real>
REVOLUTE_HD inline Vector3<Real> drag(const Real& viscous, const Vector3<Real>& square,
                                      const Vector3<Real>& v) {
  return {-(viscous + square.x * abs(v.x)) * v.x, -(viscous + square.y * abs(v.y)) * v.y,
          -(viscous + square.z * abs(v.z)) * v.z};
}
template <class Real>
REVOLUTE_HD Resistance<Real> resistance(const Model& model, const Parameters<Real>& parameters,
                                        const Kinematics<Real>& kin, int i) {
  const MediumBody& body = model.medium_bodies[i];
  const MediumDrag<Real>& coefficients = parameters.drag[i];
  const Placement<Real>& link = kin.links[body.link];
  const Motion<Real>& V = kin.V[body.link];
  Resistance<Real> out;
  out.A = link.R * matrix3<Real>(body.axes);
  out.arm = link.p + link.R * coefficients.centre;
  out.moved = V.v + cross(V.w, out.arm) - vector3<Real>(model.wind);
  out.v = transpose_times(out.A, out.moved);
  out.w = transpose_times(out.A, V.w);
  out.f = drag(coefficients.viscous[0], coefficients.force, out.v);
  out.n = drag(coefficients.viscous[1], coefficients.torque, out.w);
  return out;
}
template <class Real, class Bar>
REVOLUTE_HD inline Vector3<Bar> drag_adjoint(const Real& viscous, const Vector3<Real>& square,
                                             const Vector3<Real>& v, const Vector3<Bar>& bar,
                                             Bar& viscous_bar, Vector3<Bar>& square_bar) {
  viscous_bar -= dot(v, bar);
  square_bar -= Vector3<Bar>{abs(v.x) * v.x * bar.x, abs(v.y) * v.y * bar.y, abs(v.z) * v.z * bar.z};
  const Real two(2);
  return {-(viscous + two * square.x * abs(v.x)) * bar.x, -(viscous + two * square.y * abs(v.y)) * bar.y,
          -(viscous + two * square.z * abs(v.z)) * bar.z};
}

}  // namespace detail

template <class Real>
REVOLUTE_HD void link_forces(const Model& model, const Parameters<Real>& parameters,
                             const Kinematics<Real>& kin, LinkForceSums<Real>& out) {
  const Vector3<Real> up = -*parameters.gravity;
  if (model.compensated) {
    for (int k = 0; k < model.nv; ++k) {
      out.compensation[k] = zero_force<Real>();
      if (!model.dofs[k].has_inertia) continue;
      const MassMoment<Real>& carried = parameters.compensation[k];
      const Placement<Real>& link = kin.links[k];
      out.compensation[k] = {cross(link.R * carried.h + carried.m * link.p, up), carried.m * up};  // (1)
    }
    sum_towards_root(model, out.compensation);
    for (int k = 0; k < model.nv; ++k) out.lift[k] = dot(kin.S[k], out.compensation[k]);
  }
  if (model.nmedium == 0) return;
  for (int k = 0; k < model.nv; ++k) out.medium[k] = zero_force<Real>();
  for (int i = 0; i < model.nmedium; ++i) {
    const detail::Resistance<Real> at = detail::resistance(model, parameters, kin, i);
    Force<Real> wrench = force_at(at.arm, at.A * at.f);
    wrench.n += at.A * at.n;
    out.medium[model.medium_bodies[i].link] += wrench;
  }
  sum_towards_root(model, out.medium);
}

template <class Real>
REVOLUTE_HD void add_medium_forces(const Model& model, const Kinematics<Real>& kin,
                                   const LinkForceSums<Real>& forces, Real* tau) {
  for (int k = 0; model.nmedium > 0 && k < model.nv; ++k) tau[k] += dot(kin.S[k], forces.medium[k]);
}

// From the cotangent of lift; T is scratch. Adds to kin_bar and parameters_bar.
template <class Real, class Bar>
REVOLUTE_HD void compensation_adjoint(const Model& model, const Parameters<Real>& parameters,
                                      const Kinematics<Real>& kin, const LinkForceSums<Real>& at,
                                      const Bar* lift_bar, Motion<Bar>* T, KinematicsCotangent<Bar>& kin_bar,
                                      Parameters<Bar>& parameters_bar) {
  if (!model.compensated) return;
  const Vector3<Real> up = -*parameters.gravity;
  link_velocities(model, kin.S, lift_bar, T);
  for (int k = 0; k < model.nv; ++k) {
    kin_bar.S[k] += lift_bar[k] * at.compensation[k];
    if (!model.dofs[k].has_inertia) continue;
    const MassMoment<Real>& carried = parameters.compensation[k];
    const Placement<Real>& link = kin.links[k];
    const Vector3<Real> h = link.R * carried.h + carried.m * link.p;
    // T.w . (h x up) + m T.v . up
    const Vector3<Bar> h_bar = cross(up, T[k].w);
    parameters_bar.gravity[0] -= cross(T[k].w, h) + carried.m * T[k].v;
    MassMoment<Bar>& bar = parameters_bar.compensation[k];
    bar.m += dot(T[k].v, up) + dot(link.p, h_bar);
    bar.h += transpose_times(link.R, h_bar);
    kin_bar.moment[k] += Force<Bar>{cross(h, h_bar), carried.m * h_bar};
  }
}

// From the cotangent of tau; T is scratch. Adds to F_v (cotangents of the links' velocities), kin_bar and parameters_bar.
template <class Real, class Bar>
REVOLUTE_HD void medium_adjoint(const Model& model, const Parameters<Real>& parameters,
                                const Kinematics<Real>& kin, const LinkForceSums<Real>& at,
                                const Bar* tau_bar, Motion<Bar>* T, Force<Bar>* F_v,
                                KinematicsCotangent<Bar>& kin_bar, Parameters<Bar>& parameters_bar) {
  if (model.nmedium == 0) return;
  link_velocities(model, kin.S, tau_bar, T);
  for (int k = 0; k < model.nv; ++k) kin_bar.S[k] += tau_bar[k] * at.medium[k];
  for (int i = 0; i < model.nmedium; ++i) {
    const int link = model.medium_bodies[i].link;
    const detail::Resistance<Real> of = detail::resistance(model, parameters, kin, i);
    const MediumDrag<Real>& coefficients = parameters.drag[i];
    MediumDrag<Bar>& bar = parameters_bar.drag[i];
    const Motion<Bar>& Z = T[link];
    const Vector3<Bar> carried = Z.v + cross(Z.w, of.arm);
    // f . (A' carried) + n . (A' Z.w)
    const Vector3<Bar> v_bar =
        detail::drag_adjoint(coefficients.viscous[0], coefficients.force, of.v,
                             transpose_times(of.A, carried), bar.viscous[0], bar.force);
    const Vector3<Bar> w_bar = detail::drag_adjoint(coefficients.viscous[1], coefficients.torque, of.w,
                                                    transpose_times(of.A, Z.w), bar.viscous[1], bar.torque);
    const Vector3<Real> f = of.A * of.f, n = of.A * of.n;
    const Vector3<Bar> moved_bar = of.A * v_bar, turned_bar = of.A * w_bar;
    F_v[link] += force_at(of.arm, moved_bar);
    F_v[link].n += turned_bar;
    const Vector3<Bar> arm_bar = cross(moved_bar, kin.V[link].w) + cross(f, Z.w);
    bar.centre += transpose_times(kin.links[link].R, arm_bar);
    Force<Bar> moment = force_at(of.arm, arm_bar);
    moment.n +=
        cross(moved_bar, of.moved) + cross(turned_bar, kin.V[link].w) + cross(f, carried) + cross(n, Z.w);
    kin_bar.moment[link] += moment;
  }
}

}  // namespace revolute
