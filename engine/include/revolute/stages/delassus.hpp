// The Delassus matrix A = J M^-1 J', through the factors M = L' D L.
//
// Row r of J has Y_r = L^-T J_r', with entries on its path to the root only, and
//   A = Y' D^-1 Y  (+ cfm on the diagonal),   M^-1 J' lambda = L^-1 D^-1 (Y lambda)            (1)
// Y_r leaf to root:  u_k = [J_r]_k - S_k . P_k,  P_p += P_k + U_k u_k / D_k,  with P = -wrench on the links      (2)
// Reads rows' J, S, U, D. Writes Y, P, A.
//
// Adjoint:  Y_bar_r = sum_s (A_rs_bar + A_sr_bar) Y_s / D,   D_k_bar -= sum_r Y_rk Y_bar_rk / (2 D_k),      (3)
// then the reverse of (2), root to leaf.
#pragma once

#include "revolute/stages/articulated_inertia.hpp"
#include "revolute/stages/constraint_rows.hpp"

namespace revolute {

template <class Real>
struct Delassus {
  Real* Y;                 // entries along each row's path
  Force<Real>* P;          // the forces at which they were formed
  Real* A;                 // islands' blocks, row by row
  Real* dense;             // [nv] scratch, zero between uses
  Force<Real>* node;       // [nv] scratch
  Motion<Real>* node_bar;  // [nv] scratch

  Delassus(const Model& model, Arena& arena)
      : Y(arena.take<Real>(ConstraintRows<Real>::path_entries(model))),
        P(arena.take<Force<Real>>(ConstraintRows<Real>::path_entries(model))),
        A(arena.take<Real>(ConstraintRows<Real>::capacity(model) * ConstraintRows<Real>::capacity(model))),
        dense(arena.take<Real>(model.nv)),
        node(arena.take<Force<Real>>(model.nv)),
        node_bar(arena.take<Motion<Real>>(model.nv)) {}
};

template <class Real>
struct DelassusCotangent {
  Real *Y, *A;

  DelassusCotangent(const Model& model, Arena& arena)
      : Y(arena.take<Real>(ConstraintRows<Real>::path_entries(model))),
        A(arena.take<Real>(ConstraintRows<Real>::capacity(model) * ConstraintRows<Real>::capacity(model))) {}

  REVOLUTE_HD void clear(const ConstraintRows<Real>& rows) {
    std::size_t size = 0;
    for (int r = 0; r < rows.count; ++r) size += rows.solver[r].end - rows.solver[r].begin;
    for (std::size_t i = 0; i < size; ++i) A[i] = Real(0);
  }
};

// A row's path, from leaf to root.
struct RowPath {
  int count;
  const int* dofs;
};
REVOLUTE_HD inline RowPath row_path(const Model& model, const RowOrigin& origin) {
  const Path& path = model.paths[origin.path];
  return {path.count, model.path_dofs + path.first};
}

// (2)
template <class Real>
REVOLUTE_HD void fill_Y(const Model& model, const Kinematics<Real>& kin, const Factors<Real>& factors,
                        const RowOrigin& origin, const RowJacobian<Real>& J, Delassus<Real>& out) {
  const RowPath path = row_path(model, origin);
  for (int i = 0; i < path.count; ++i) {
    out.node[path.dofs[i]] = zero_force<Real>();
    out.dense[path.dofs[i]] = Real(0);
  }
  if (J.link_a >= 0) out.node[J.link_a] -= J.force_a;
  if (J.link_b >= 0) out.node[J.link_b] -= J.force_b;
  for (int i = 0; i < J.dofs; ++i) out.dense[J.dof[i]] += J.coefficient[i];
  for (int i = 0; i < path.count; ++i) {
    const int k = path.dofs[i], parent = model.dofs[k].parent;
    const Force<Real> P = out.node[k];
    const Real u = out.dense[k] - dot(kin.S[k], P);
    out.dense[k] = Real(0);
    out.P[origin.y + i] = P;
    out.Y[origin.y + i] = u;
    if (parent >= 0) out.node[parent] += multiply_add(u * factors.D_inverse[k], factors.U[k], P);
  }
}

template <class Real>
REVOLUTE_HD void delassus(const Model& model, const Kinematics<Real>& kin, const Factors<Real>& factors,
                          const ConstraintRows<Real>& rows, Delassus<Real>& out) {
  for (int k = 0; k < model.nv; ++k) out.dense[k] = Real(0);
  for (int r = 0; r < rows.count; ++r) fill_Y(model, kin, factors, rows.origin[r], rows.J[r], out);
  // (1)
  for (int s = 0; s < rows.count; ++s) {
    const SolverRow& row_s = rows.solver[s];
    const RowPath path_s = row_path(model, rows.origin[s]);
    for (int i = 0; i < path_s.count; ++i)
      out.dense[path_s.dofs[i]] = out.Y[rows.origin[s].y + i] * factors.D_inverse[path_s.dofs[i]];
    for (int r = s; r < row_s.end; ++r) {
      const RowPath path_r = row_path(model, rows.origin[r]);
      const Real* Y_r = out.Y + rows.origin[r].y;
      Real a(0);
      for (int i = 0; i < path_r.count; ++i) a = multiply_add(Y_r[i], out.dense[path_r.dofs[i]], a);
      out.A[rows.solver[r].A + s - row_s.begin] = a;
      out.A[row_s.A + r - row_s.begin] = a;
    }
    out.A[row_s.A + s - row_s.begin] += Real(model.cfm);
    for (int i = 0; i < path_s.count; ++i) out.dense[path_s.dofs[i]] = Real(0);
  }
}

// x = M^-1 J' lambda, by (1)
template <class Real>
REVOLUTE_HD void velocity_change(const Model& model, const Kinematics<Real>& kin,
                                 const Factors<Real>& factors, const ConstraintRows<Real>& rows,
                                 const Delassus<Real>& at, const Real* lambda, Real* x) {
  for (int k = 0; k < model.nv; ++k) x[k] = Real(0);
  for (int r = 0; r < rows.count; ++r) {
    const RowPath path = row_path(model, rows.origin[r]);
    for (int i = 0; i < path.count; ++i)
      x[path.dofs[i]] = multiply_add(at.Y[rows.origin[r].y + i], lambda[r], x[path.dofs[i]]);
  }
  solve_outward(model, kin, factors, x, x);
}

// (3)
template <class Real>
REVOLUTE_HD void A_adjoint(const Model& model, const Factors<Real>& factors, const ConstraintRows<Real>& rows,
                           const Delassus<Real>& at, DelassusCotangent<Real>& bar,
                           FactorsCotangent<Real>& factors_bar) {
  for (int r = 0; r < rows.count; ++r) {
    const SolverRow& row = rows.solver[r];
    const RowPath path_r = row_path(model, rows.origin[r]);
    // dense = sum_s (A_rs_bar + A_sr_bar) Y_s
    for (int s = row.begin; s < row.end; ++s) {
      const Real weight = bar.A[row.A + s - row.begin] + bar.A[rows.solver[s].A + r - row.begin];
      const RowPath path_s = row_path(model, rows.origin[s]);
      for (int i = 0; i < path_s.count; ++i)
        at.dense[path_s.dofs[i]] = multiply_add(weight, at.Y[rows.origin[s].y + i], at.dense[path_s.dofs[i]]);
    }
    for (int i = 0; i < path_r.count; ++i) {
      const int k = path_r.dofs[i], y = rows.origin[r].y + i;
      bar.Y[y] = at.dense[k] * factors.D_inverse[k];
      factors_bar.D[k] -= Real(0.5) * factors.D_inverse[k] * (at.Y[y] * bar.Y[y]);
    }
    for (int s = row.begin; s < row.end; ++s) {
      const RowPath path_s = row_path(model, rows.origin[s]);
      for (int i = 0; i < path_s.count; ++i) at.dense[path_s.dofs[i]] = Real(0);
    }
  }
}

// Reverse of (2).
template <class Real>
REVOLUTE_HD void fill_Y_adjoint(const Model& model, const Kinematics<Real>& kin, const Factors<Real>& factors,
                                const RowOrigin& origin, const RowJacobian<Real>& J, const Delassus<Real>& at,
                                const DelassusCotangent<Real>& bar, RowJacobianCotangent<Real>& J_bar,
                                FactorsCotangent<Real>& factors_bar, KinematicsCotangent<Real>& kin_bar) {
  const RowPath path = row_path(model, origin);
  for (int i = path.count - 1; i >= 0; --i) {
    const int k = path.dofs[i], parent = model.dofs[k].parent;
    const Real u = at.Y[origin.y + i], D_inverse = factors.D_inverse[k];
    Real u_bar = bar.Y[origin.y + i];
    Motion<Real> P_bar = zero_motion<Real>();
    if (parent >= 0) {
      P_bar = at.node_bar[parent];
      const Real along = dot(P_bar, factors.U[k]) * D_inverse;
      u_bar += along;
      factors_bar.U[k] = multiply_add(u * D_inverse, P_bar, factors_bar.U[k]);
      factors_bar.D[k] -= u * D_inverse * along;
    }
    kin_bar.S[k] = multiply_add(-u_bar, at.P[origin.y + i], kin_bar.S[k]);
    at.node_bar[k] = multiply_add(-u_bar, kin.S[k], P_bar);
    at.dense[k] = u_bar;
  }
  // the row enters (2) as its coefficients and minus its wrenches
  if (J.link_a >= 0) J_bar.force_a -= Force<Real>{at.node_bar[J.link_a].w, at.node_bar[J.link_a].v};
  if (J.link_b >= 0) J_bar.force_b -= Force<Real>{at.node_bar[J.link_b].w, at.node_bar[J.link_b].v};
  for (int i = 0; i < J.dofs; ++i) J_bar.coefficient[i] += at.dense[J.dof[i]];
  for (int i = 0; i < path.count; ++i) at.dense[path.dofs[i]] = Real(0);
}

template <class Real>
REVOLUTE_HD void delassus_adjoint(const Model& model, const Kinematics<Real>& kin,
                                  const Factors<Real>& factors, const ConstraintRows<Real>& rows,
                                  const Delassus<Real>& at, DelassusCotangent<Real>& bar,
                                  ConstraintRowsCotangent<Real>& rows_bar,
                                  FactorsCotangent<Real>& factors_bar, KinematicsCotangent<Real>& kin_bar) {
  A_adjoint(model, factors, rows, at, bar, factors_bar);
  for (int r = 0; r < rows.count; ++r)
    fill_Y_adjoint(model, kin, factors, rows.origin[r], rows.J[r], at, bar, rows_bar.J[r], factors_bar,
                   kin_bar);
}

}  // namespace revolute
