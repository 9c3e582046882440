// Acceleration without contact: a0 = M^-1 (tau - C), and the velocity v* = v + h a0 that contact starts from.
//
// C is inverse dynamics at zero acceleration (Featherstone 2008, table 5.1, in world axes); gravity enters as the
// acceleration -g of the world:
//   A_k = A_p + (V_base x S_k) qvel_k + S_k qacc_k,   A_world = (0; -g)                       (1)
//   F_k = I_k A_k + V_k x* I_k V_k,   C_k = S_k . (sum of F beyond k)                         (2)
// Reads tau, S, V, I, factors. Writes C, a0, v*.
//
// Adjoint, docs/adjoint.md section 3: with w0 = h M^-1 v*_bar, tau_bar = w0. The rest is the gradient of the scalar
//   L = - <w0, ID(q, v, a0)> - <w, M x> + sum_links W . F_w + V . F_v                         (3)
// with w0, a0, w, x, F_w, F_v held fixed (w, x, F_w, F_v come from the constraint rows: x = M^-1 J' lambda). One sweep out
// for Z = S w0, W = S w, one sweep back; per link, with H = I V, A of (1), F of (2), X = S x:
//   Z_bar = -F,  A_bar = -I Z,  V_bar = Z x* H + I (V x Z) + F_v,  W_bar = F_w - I X,  X_bar = -I W        (4)
//   I_bar = -(Z, A) + (V x Z, V) - (W, X)     as bilinear forms                               (5)
#pragma once

#include "revolute/stages/articulated_inertia.hpp"

namespace revolute {

template <class Real>
struct Acceleration {
  Real* tau;        // [nv] actuation
  Real* diagonal;   // [nv] actuation: added to the mass matrix
  Real* a0;         // [nv]
  Real* v_free;     // [nv] v*
  Motion<Real>* A;  // [nv] scratch
  Force<Real>* F;   // [nv] scratch
  // for the adjoint, which also uses A and F, then those of a0 with F summed towards the root
  Force<Real>* H;      // [nv]
  Motion<Real>* X;     // [nv]
  Force<Real>* W_bar;  // [nv] summed towards the root

  Acceleration(const Model& model, Arena& arena)
      : tau(arena.take<Real>(model.nv)),
        diagonal(arena.take<Real>(model.nv)),
        a0(arena.take<Real>(model.nv)),
        v_free(arena.take<Real>(model.nv)),
        A(arena.take<Motion<Real>>(model.nv)),
        F(arena.take<Force<Real>>(model.nv)),
        H(arena.take<Force<Real>>(model.nv)),
        X(arena.take<Motion<Real>>(model.nv)),
        W_bar(arena.take<Force<Real>>(model.nv)) {}
};

// (1) for qacc = `acceleration`; null means zero.
template <class Real>
REVOLUTE_HD void link_accelerations(const Model& model, const Vector3<Real>& gravity,
                                    const Kinematics<Real>& kin, const Real* qvel, const Real* acceleration,
                                    Motion<Real>* A) {
  const Motion<Real> world = {zero3<Real>(), -gravity};
  for (int k = 0; k < model.nv; ++k) {
    const Dof& dof = model.dofs[k];
    A[k] = dof.parent < 0 ? world : A[dof.parent];
    if (dof.velocity_base >= 0) A[k] += qvel[k] * cross_motion(kin.V[dof.velocity_base], kin.S[k]);
    if (acceleration) A[k] += acceleration[k] * kin.S[k];
  }
}

// Reverse of the term with V x S_k in (1). Adds to the cotangents of qvel_k, S_k and the links' velocities.
template <class Real, class Bar>
REVOLUTE_HD void velocity_product_adjoint(const Model& model, const Kinematics<Real>& kin, int k,
                                          const Real& qvel, const Force<Bar>& A_bar, Bar& qvel_bar,
                                          Force<Bar>& S_bar, Force<Bar>* V_bar) {
  const int link = model.dofs[k].velocity_base;
  if (link < 0) return;
  qvel_bar += dot(cross_motion(kin.V[link], kin.S[k]), A_bar);
  S_bar -= qvel * cross_force(kin.V[link], A_bar);
  V_bar[link] += qvel * cross_force(kin.S[k], A_bar);
}
// Reverse of link_accelerations() without gravity and qacc; overwrites A_bar.
template <class Real, class Bar>
REVOLUTE_HD void velocity_products_adjoint(const Model& model, const Kinematics<Real>& kin, const Real* qvel,
                                           Force<Bar>* A_bar, Bar* qvel_bar, Force<Bar>* S_bar,
                                           Force<Bar>* V_bar) {
  for (int k = model.nv - 1; k >= 0; --k) {
    velocity_product_adjoint(model, kin, k, qvel[k], A_bar[k], qvel_bar[k], S_bar[k], V_bar);
    if (const int parent = model.dofs[k].parent; parent >= 0) A_bar[parent] += A_bar[k];
  }
}

// (2): tau - C
template <class Real>
REVOLUTE_HD void smooth_force(const Model& model, const Parameters<Real>& parameters,
                              const Kinematics<Real>& kin, const Real* qvel, Acceleration<Real>& scratch,
                              Real* force) {
  link_accelerations(model, *parameters.gravity, kin, qvel, static_cast<const Real*>(nullptr), scratch.A);
  for (int k = 0; k < model.nv; ++k)
    scratch.F[k] = model.dofs[k].has_inertia
                       ? kin.I[k] * scratch.A[k] + cross_force(kin.V[k], kin.I[k] * kin.V[k])
                       : zero_force<Real>();
  sum_towards_root(model, scratch.F);
  for (int k = 0; k < model.nv; ++k) force[k] = scratch.tau[k] - dot(kin.S[k], scratch.F[k]);
}

template <class Real>
REVOLUTE_HD void acceleration(const Model& model, const Parameters<Real>& parameters, Real h,
                              const Kinematics<Real>& kin, const Factors<Real>& factors, const Real* qvel,
                              SolveScratch<Real>& scratch, Acceleration<Real>& out) {
  smooth_force(model, parameters, kin, qvel, out, out.a0);
  solve(model, kin, factors, out.a0, out.a0, scratch);
  for (int k = 0; k < model.nv; ++k) out.v_free[k] = qvel[k] + h * out.a0[k];
}

// The parts of (3) and (4) that depend on the step alone. On entry out.W_bar is F_w; x may be null if no row is active.
template <class Real>
REVOLUTE_HD void record_acceleration(const Model& model, const Parameters<Real>& parameters,
                                     const Kinematics<Real>& kin, const Real* qvel, const Real* x,
                                     Acceleration<Real>& out) {
  link_accelerations(model, *parameters.gravity, kin, qvel, out.a0, out.A);
  if (x) link_velocities(model, kin.S, x, out.X);
  for (int k = 0; k < model.nv; ++k) {
    out.F[k] = zero_force<Real>();
    if (!model.dofs[k].has_inertia) continue;
    out.H[k] = kin.I[k] * kin.V[k];
    out.F[k] = kin.I[k] * out.A[k] + cross_force(kin.V[k], out.H[k]);
    if (x) out.W_bar[k] -= kin.I[k] * out.X[k];
  }
  sum_towards_root(model, out.F);
  if (x) sum_towards_root(model, out.W_bar);
}

// The vectors of (3). F_v is used up; w and x may be null.
template <class Real, class Bar = Real>
struct AccelerationAdjointInput {
  const Bar *w0, *w;
  const Real* x;
  Force<Bar>* F_v;
};

template <class Bar>
struct AccelerationAdjointScratch {
  Motion<Bar>*Z, *W;
  Force<Bar>*A_bar, *X_bar;

  AccelerationAdjointScratch(const Model& model, Arena& arena)
      : Z(arena.take<Motion<Bar>>(model.nv)),
        W(arena.take<Motion<Bar>>(model.nv)),
        A_bar(arena.take<Force<Bar>>(model.nv)),
        X_bar(arena.take<Force<Bar>>(model.nv)) {}
};

// `at` must come from record_acceleration().
template <class Real, class Bar>
REVOLUTE_HD void acceleration_adjoint(const Model& model, const Kinematics<Real>& kin,
                                      const Acceleration<Real>& at, const Real* qvel,
                                      const AccelerationAdjointInput<Real, Bar>& in,
                                      AccelerationAdjointScratch<Bar>& s, KinematicsCotangent<Bar>& kin_bar,
                                      Bar* qvel_bar, Bar* diagonal_bar, Parameters<Bar>& parameters_bar) {
  const bool rows = in.w != nullptr;
  link_velocities(model, kin.S, in.w0, s.Z);
  if (rows) link_velocities(model, kin.S, in.w, s.W);
  // per link: (4), (5); Z_bar is -F
  for (int k = 0; k < model.nv; ++k) {
    s.A_bar[k] = s.X_bar[k] = zero_force<Bar>();
    if (!model.dofs[k].has_inertia) continue;
    const RigidInertia<Real>& I = kin.I[k];
    const Motion<Real>& V = kin.V[k];
    const Motion<Bar>& Z = s.Z[k];
    const Motion<Bar> VxZ = cross_motion(V, Z);
    s.A_bar[k] = -(I * Z);
    in.F_v[k] += cross_force(Z, at.H[k]) + I * VxZ;
    add_bilinear_adjoint(kin_bar.I[k], Real(-1), Z, at.A[k]);
    add_bilinear_adjoint(kin_bar.I[k], Real(1), VxZ, V);
    if (!rows) continue;
    s.X_bar[k] = -(I * s.W[k]);
    add_bilinear_adjoint(kin_bar.I[k], Real(-1), s.W[k], at.X[k]);
  }
  // leaf to root: reverse of the recursions for V, A, Z, W, X
  Force<Bar>* const V_bar = in.F_v;
  for (int k = model.nv - 1; k >= 0; --k) {
    const Dof& dof = model.dofs[k];
    const Motion<Real>& S = kin.S[k];
    Force<Bar> S_bar = in.w0[k] * -at.F[k] + at.a0[k] * s.A_bar[k] + qvel[k] * V_bar[k];
    qvel_bar[k] += dot(S, V_bar[k]);
    if (rows) S_bar += in.w[k] * at.W_bar[k] + in.x[k] * s.X_bar[k];
    velocity_product_adjoint(model, kin, k, qvel[k], s.A_bar[k], qvel_bar[k], S_bar, V_bar);
    kin_bar.S[k] += S_bar;
    diagonal_bar[k] -= in.w0[k] * at.a0[k];
    if (rows) diagonal_bar[k] -= in.w[k] * in.x[k];
    if (dof.parent < 0) {
      parameters_bar.gravity[0] -= s.A_bar[k].f;
      continue;
    }
    V_bar[dof.parent] += V_bar[k];
    s.A_bar[dof.parent] += s.A_bar[k];
    if (rows) s.X_bar[dof.parent] += s.X_bar[k];
  }
}

}  // namespace revolute
