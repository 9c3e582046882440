// Articulated-body inertia: the factors of M + diag(diagonal), and solves with them.
//
// Source: Featherstone 2008, section 7.3, in world axes; every degree of freedom is a link of its own. Leaf to root:
//   U_k = IA_k S_k,   D_k = S_k . U_k + diagonal_k                                            (1)
//   IA_p += IA_k - U_k U_k' / D_k                                                             (2)
// This is a factorization M = L' D L. A solve M x = b runs leaf to root and back:
//   u_k = b_k - S_k . P_k,   P_p += P_k + U_k u_k / D_k          (u = L^-T b)                 (3)
//   x_k = (u_k - U_k . a_p) / D_k,   a_k = a_p + S_k x_k         (x = L^-1 D^-1 u)            (4)
// Reads S, I, the diagonal from the actuation stage. Writes IA, U, D_inverse.
#pragma once

#include "revolute/stages/kinematics.hpp"

namespace revolute {

template <class Real>
struct Factors {
  ArticulatedInertia<Real>* IA;  // [nv]
  Force<Real>* U;                // [nv]
  Real* D_inverse;               // [nv]

  Factors(const Model& model, Arena& arena)
      : IA(arena.take<ArticulatedInertia<Real>>(model.nv)),
        U(arena.take<Force<Real>>(model.nv)),
        D_inverse(arena.take<Real>(model.nv)) {}
};

// Scratch of a solve for right sides of type X.
template <class X>
struct SolveScratch {
  Force<X>* P;   // [nv]
  Motion<X>* a;  // [nv]

  SolveScratch(const Model& model, Arena& arena)
      : P(arena.take<Force<X>>(model.nv)), a(arena.take<Motion<X>>(model.nv)) {}
};

template <class Bar>
struct FactorsCotangent {
  Motion<Bar>* U;               // [nv]
  Bar* D;                       // [nv]
  ArticulatedInertia<Bar>* IA;  // [nv] entries of the full symmetric matrix

  FactorsCotangent(const Model& model, Arena& arena)
      : U(arena.take<Motion<Bar>>(model.nv)),
        D(arena.take<Bar>(model.nv)),
        IA(arena.take<ArticulatedInertia<Bar>>(model.nv)) {}

  REVOLUTE_HD void clear(const Model& model) {
    for (int k = 0; k < model.nv; ++k) {
      U[k] = zero_motion<Bar>();
      D[k] = Bar(0);
    }
  }
};

template <class Real>
REVOLUTE_HD inline ArticulatedInertia<Real> zero_articulated() {
  return articulated(zero_inertia<Real>());
}

template <class Real>
REVOLUTE_HD void articulated_inertia(const Model& model, const Real* diagonal, const Kinematics<Real>& kin,
                                     Factors<Real>& out) {
  for (int k = 0; k < model.nv; ++k)
    out.IA[k] = model.dofs[k].has_inertia ? articulated(kin.I[k]) : zero_articulated<Real>();
  for (int k = model.nv - 1; k >= 0; --k) {
    const Force<Real> U = out.IA[k] * kin.S[k];
    const Real D = dot(kin.S[k], U) + diagonal[k];  // (1)
    out.U[k] = U;
    out.D_inverse[k] = Real(1) / D;
    const int parent = model.dofs[k].parent;
    if (parent < 0) continue;
    out.IA[parent] += out.IA[k];  // (2)
    subtract_square(out.IA[parent], out.D_inverse[k], U);
  }
}

// Reverse of (2) and (1), root to leaf. On entry `bar` has the cotangents of U and D from the solves.
template <class Real, class Bar>
REVOLUTE_HD void articulated_inertia_adjoint(const Model& model, const Kinematics<Real>& kin,
                                             const Factors<Real>& at, FactorsCotangent<Bar>& bar,
                                             KinematicsCotangent<Bar>& kin_bar, Bar* diagonal_bar) {
  for (int k = 0; k < model.nv; ++k) {
    const int parent = model.dofs[k].parent;
    ArticulatedInertia<Bar> IA_bar = parent < 0 ? zero_articulated<Bar>() : bar.IA[parent];
    Motion<Bar> U_bar = bar.U[k];
    Bar D_bar = bar.D[k];
    if (parent >= 0) {
      const Motion<Bar> y = cotangent_times(IA_bar, at.U[k]);
      U_bar = multiply_add(Real(-2) * at.D_inverse[k], y, U_bar);
      D_bar += at.D_inverse[k] * at.D_inverse[k] * dot(y, at.U[k]);
    }
    diagonal_bar[k] += D_bar;
    U_bar = multiply_add(D_bar, kin.S[k], U_bar);
    kin_bar.S[k] += multiply_add(D_bar, at.U[k], at.IA[k] * U_bar);
    add_symmetric_product(IA_bar, Real(1), U_bar, kin.S[k]);
    bar.IA[k] = IA_bar;
    if (model.dofs[k].has_inertia) add_articulated_adjoint(kin_bar.I[k], IA_bar);
  }
}

// (4): x from u
template <class Real, class X>
REVOLUTE_HD void solve_outward(const Model& model, const Kinematics<Real>& kin, const Factors<Real>& factors,
                               const X* u, X* x, SolveScratch<X>& scratch) {
  for (int k = 0; k < model.nv; ++k) {
    const Motion<X> parent = at_link(scratch.a, model.dofs[k].parent);
    x[k] = (u[k] - dot(parent, factors.U[k])) * factors.D_inverse[k];
    scratch.a[k] = multiply_add(x[k], kin.S[k], parent);
  }
}
// x = M^-1 b; x and b may be the same array
template <class Real, class X>
REVOLUTE_HD void solve(const Model& model, const Kinematics<Real>& kin, const Factors<Real>& factors,
                       const X* b, X* x, SolveScratch<X>& scratch) {
  for (int k = 0; k < model.nv; ++k) scratch.P[k] = zero_force<X>();
  for (int k = model.nv - 1; k >= 0; --k) {
    x[k] = b[k] - dot(kin.S[k], scratch.P[k]);  // (3)
    const int parent = model.dofs[k].parent;
    if (parent >= 0)
      scratch.P[parent] += multiply_add(x[k] * factors.D_inverse[k], factors.U[k], scratch.P[k]);
  }
  solve_outward(model, kin, factors, x, x, scratch);
}

}  // namespace revolute
