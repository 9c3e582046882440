// Acceleration without contact: a0 = M^-1 (tau - C), and the velocity v* = v + h a0 that contact starts from.
//
// C is inverse dynamics at zero acceleration (Featherstone 2008, table 5.1, in world axes); gravity enters as the
// acceleration -g of the world:
//   A_k = A_p + (V_base x S_k) qvel_k + S_k qacc_k,   A_world = (0; -g)                       (1)
//   F_k = I_k A_k + V_k x* I_k V_k,   C_k = S_k . (sum of F beyond k)                         (2)
// Reads tau, S, V, I, factors. Writes C, a0, v*.
//
// Adjoint, after ADJOINT.md: with w0 = h M^-1 v*_bar, tau_bar = w0, and what is left is the gradient of the scalar
//   L = - <w0, ID(q, v, a0)> - <w, M x> + sum_links W . F_w + V . F_v                         (3)
// with w0, a0, w, x, F_w, F_v held fixed (w, x, F_w, F_v come from the constraint rows: x = M^-1 J' lambda). One sweep out
// for Z = S w0, W = S w, X = S x, A of (1), one sweep back; per link, with H = I V:
//   Z_bar = -F,  A_bar = -I Z,  V_bar = Z x* H + I (V x Z) + F_v,  W_bar = F_w - I X,  X_bar = -I W        (4)
//   I_bar = -(Z, A) + (V x Z, V) - (W, X)     as bilinear forms                               (5)
#pragma once

#include "revolute/stages/articulated_inertia.hpp"

namespace revolute {

template <class Real>
struct Acceleration {
  Real* tau;        // [nv] actuation
  Real* diagonal;   // [nv] actuation: what is added to the mass matrix
  Real* a0;         // [nv]
  Real* v_free;     // [nv] v*
  Motion<Real>* A;  // [nv] scratch
  Force<Real>* F;   // [nv] scratch

  Acceleration(const Model& model, Arena& arena)
      : tau(arena.take<Real>(model.nv)),
        diagonal(arena.take<Real>(model.nv)),
        a0(arena.take<Real>(model.nv)),
        v_free(arena.take<Real>(model.nv)),
        A(arena.take<Motion<Real>>(model.nv)),
        F(arena.take<Force<Real>>(model.nv)) {}
};

// (1), for qacc = `acceleration`, or zero when that is null
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

template <class Real>
REVOLUTE_HD void acceleration(const Model& model, const Parameters<Real>& parameters, Real h,
                              const Kinematics<Real>& kin, const Factors<Real>& factors, const Real* qvel,
                              Acceleration<Real>& out) {
  link_accelerations(model, *parameters.gravity, kin, qvel, static_cast<const Real*>(nullptr), out.A);
  for (int k = 0; k < model.nv; ++k)
    out.F[k] = model.dofs[k].has_inertia ? kin.I[k] * out.A[k] + cross_force(kin.V[k], kin.I[k] * kin.V[k])
                                         : zero_force<Real>();
  sum_towards_root(model, out.F);  // (2)
  for (int k = 0; k < model.nv; ++k) out.a0[k] = out.tau[k] - dot(kin.S[k], out.F[k]);
  solve(model, kin, factors, out.a0, out.a0);
  for (int k = 0; k < model.nv; ++k) out.v_free[k] = qvel[k] + h * out.a0[k];
}

// The vectors of (3). F_w and F_v are used up; w and x may be null when no row is active.
template <class Real>
struct AccelerationAdjointInput {
  const Real *w0, *w, *x;
  Force<Real>*F_w, *F_v;
};

template <class Real>
struct AccelerationAdjointScratch {
  Motion<Real>*Z, *W, *X;
  Force<Real>*Z_bar, *A_bar, *X_bar;

  AccelerationAdjointScratch(const Model& model, Arena& arena)
      : Z(arena.take<Motion<Real>>(model.nv)),
        W(arena.take<Motion<Real>>(model.nv)),
        X(arena.take<Motion<Real>>(model.nv)),
        Z_bar(arena.take<Force<Real>>(model.nv)),
        A_bar(arena.take<Force<Real>>(model.nv)),
        X_bar(arena.take<Force<Real>>(model.nv)) {}
};

template <class Real>
REVOLUTE_HD void acceleration_adjoint(const Model& model, const Parameters<Real>& parameters,
                                      const Kinematics<Real>& kin, const Acceleration<Real>& at,
                                      const Real* qvel, const AccelerationAdjointInput<Real>& in,
                                      AccelerationAdjointScratch<Real>& s, KinematicsCotangent<Real>& kin_bar,
                                      Real* qvel_bar, Real* diagonal_bar, Parameters<Real>& parameters_bar) {
  const bool rows = in.w != nullptr;
  link_accelerations(model, *parameters.gravity, kin, qvel, at.a0, at.A);
  link_velocities(model, kin.S, in.w0, s.Z);
  if (rows) {
    link_velocities(model, kin.S, in.w, s.W);
    link_velocities(model, kin.S, in.x, s.X);
  }
  // per link: (4), (5)
  for (int k = 0; k < model.nv; ++k) {
    s.Z_bar[k] = s.A_bar[k] = s.X_bar[k] = zero_force<Real>();
    if (!rows) in.F_v[k] = zero_force<Real>();
    if (!model.dofs[k].has_inertia) continue;
    const RigidInertia<Real>& I = kin.I[k];
    const Motion<Real>&V = kin.V[k], &Z = s.Z[k];
    const Motion<Real> VxZ = cross_motion(V, Z);
    const Force<Real> H = I * V;
    s.Z_bar[k] = -(I * at.A[k] + cross_force(V, H));
    s.A_bar[k] = -(I * Z);
    in.F_v[k] += cross_force(Z, H) + I * VxZ;
    add_bilinear_adjoint(kin_bar.I[k], Real(-1), Z, at.A[k]);
    add_bilinear_adjoint(kin_bar.I[k], Real(1), VxZ, V);
    if (!rows) continue;
    in.F_w[k] -= I * s.X[k];
    s.X_bar[k] = -(I * s.W[k]);
    add_bilinear_adjoint(kin_bar.I[k], Real(-1), s.W[k], s.X[k]);
  }
  // leaf to root: reverse of the recursions for V, A, Z, W, X
  Force<Real>* const V_bar = in.F_v;
  for (int k = model.nv - 1; k >= 0; --k) {
    const Dof& dof = model.dofs[k];
    const Motion<Real>& S = kin.S[k];
    Force<Real> S_bar = in.w0[k] * s.Z_bar[k] + at.a0[k] * s.A_bar[k] + qvel[k] * V_bar[k];
    qvel_bar[k] += dot(S, V_bar[k]);
    if (rows) S_bar += in.w[k] * in.F_w[k] + in.x[k] * s.X_bar[k];
    if (dof.velocity_base >= 0) {
      const Motion<Real>& base = kin.V[dof.velocity_base];
      qvel_bar[k] += dot(cross_motion(base, S), s.A_bar[k]);
      S_bar -= qvel[k] * cross_force(base, s.A_bar[k]);
      V_bar[dof.velocity_base] += qvel[k] * cross_force(S, s.A_bar[k]);
    }
    kin_bar.S[k] += S_bar;
    diagonal_bar[k] -= in.w0[k] * at.a0[k];
    if (rows) diagonal_bar[k] -= in.w[k] * in.x[k];
    if (dof.parent < 0) {
      parameters_bar.gravity[0] -= s.A_bar[k].f;
      continue;
    }
    V_bar[dof.parent] += V_bar[k];
    s.Z_bar[dof.parent] += s.Z_bar[k];
    s.A_bar[dof.parent] += s.A_bar[k];
    if (!rows) continue;
    in.F_w[dof.parent] += in.F_w[k];
    s.X_bar[dof.parent] += s.X_bar[k];
  }
}

}  // namespace revolute
