// The mass matrix of the trees, its factors, and products with both.
//
// Row k holds the entries between degree of freedom k and those on its path to the root, itself first (Model::dof_paths):
//   Ic_k = sum of I beyond k,   M_kj = S_j . Ic_k S_k,   M_kk += armature                      (1)
// Factors M = L' D L with L of the same shape, from the leaves on:
//   L_kj = M_kj / M_kk,   M_ij -= M_ki L_kj for i, j on k's path                               (2)
// Source: Featherstone 2008, sections 6.2 and 6.5. Its adjoint runs through the bilinear forms of acceleration.hpp.
#pragma once

#include "revolute/scalar/vector_loops.hpp"
#include "revolute/stages/kinematics.hpp"

namespace revolute {

// Degrees of freedom of a row, itself first.
struct MatrixRow {
  int count;
  const int* dofs;
};
REVOLUTE_HD inline MatrixRow tree_row(const Model& model, int k) {
  const Path& path = model.paths[model.dof_paths[k]];
  return {path.count, model.path_dofs + path.first};
}

template <class Real>
struct MassMatrix {
  Real* entries;          // rows of all degrees of freedom, Model::mass_rows
  RigidInertia<Real>* I;  // [nv] (1)

  MassMatrix(const Model& model, Arena& arena)
      : entries(arena.take<Real>(model.mass_rows ? model.mass_rows[model.nv] : 0)),
        I(arena.take<RigidInertia<Real>>(model.nv)) {}
  REVOLUTE_HD Real* row(const Model& model, int k) { return entries + model.mass_rows[k]; }
  REVOLUTE_HD const Real* row(const Model& model, int k) const { return entries + model.mass_rows[k]; }
};
// L without its unit diagonal; the diagonal holds 1/D instead.
template <class Real>
struct MassFactors {
  Real* entries;

  MassFactors(const Model& model, Arena& arena)
      : entries(arena.take<Real>(model.mass_rows ? model.mass_rows[model.nv] : 0)) {}
  REVOLUTE_HD const Real* row(const Model& model, int k) const { return entries + model.mass_rows[k]; }
};

template <class Real>
REVOLUTE_HD inline void add_inertia(RigidInertia<Real>& sum, const RigidInertia<Real>& a) {
  sum.m += a.m;
  sum.h += a.h;
  sum.I += a.I;
}

template <class Real>
REVOLUTE_HD void mass_matrix(const Model& model, const Parameters<Real>& parameters,
                             const Kinematics<Real>& kin, MassMatrix<Real>& out) {
  for (int k = 0; k < model.nv; ++k) out.I[k] = model.dofs[k].has_inertia ? kin.I[k] : zero_inertia<Real>();
  for (int k = model.nv - 1; k >= 0; --k) {
    const int parent = model.dofs[k].parent;
    if (parent >= 0) add_inertia(out.I[parent], out.I[k]);
    const Force<Real> F = out.I[k] * kin.S[k];
    const MatrixRow row = tree_row(model, k);
    Real* const M = out.row(model, k);
    M[0] = dot(kin.S[k], F) + parameters.armature[k];  // (1)
    for (int i = 1; i < row.count; ++i) M[i] = dot(kin.S[row.dofs[i]], F);
  }
}

// The contribution of row k to M x.
template <class Real, class X>
REVOLUTE_HD inline void add_row_times(const Model& model, const MassMatrix<Real>& M, int k, const X* x,
                                      X* y) {
  const MatrixRow row = tree_row(model, k);
  const Real* const entries = M.row(model, k);
  X sum = entries[0] * x[k];
  for (int i = 1; i < row.count; ++i) {
    sum = multiply_add(entries[i], x[row.dofs[i]], sum);
    y[row.dofs[i]] = multiply_add(entries[i], x[k], y[row.dofs[i]]);
  }
  y[k] = sum;
}
// y = M x
template <class Real, class X>
REVOLUTE_HD void multiply(const Model& model, const MassMatrix<Real>& M, const X* x, X* y) {
  for (int k = 0; k < model.nv; ++k) add_row_times(model, M, k, x, y);
}
// The same for whole trees, whose degrees of freedom are listed from the leaves on.
template <class Real, class X>
REVOLUTE_HD void multiply(const Model& model, const MassMatrix<Real>& M, const int* dofs, int count,
                          const X* x, X* y) {
  for (int i = count - 1; i >= 0; --i) add_row_times(model, M, dofs[i], x, y);
}

// (2) for M + diag(added) + coupling; the coupling is laid out as M. Both may be null.
template <class Real>
REVOLUTE_HD void factorize(const Model& model, const MassMatrix<Real>& M, const Real* added,
                           const Real* coupling, MassFactors<Real>& out) {
  const int count = model.mass_rows[model.nv];
  for (int i = 0; i < count; ++i) out.entries[i] = M.entries[i];
  for (int i = 0; coupling && i < count; ++i) out.entries[i] += coupling[i];
  for (int k = 0; added && k < model.nv; ++k) out.entries[model.mass_rows[k]] += added[k];
  for (int k = model.nv - 1; k >= 0; --k) {
    const MatrixRow row = tree_row(model, k);
    Real* const L = out.entries + model.mass_rows[k];
    L[0] = Real(1) / L[0];
    for (int i = 1; i < row.count; ++i) {
      const Real l = L[i] * L[0];
      Real* const of = out.entries + model.mass_rows[row.dofs[i]];
      // the path of an ancestor is the rest of this one
      const Real minus = -l;
      const Real* const rest = L + i;
      add_products(&minus, &rest, 1, of, row.count - i);
      L[i] = l;
    }
  }
}

// x = M^-1 x, with the sums of newton_matrix.hpp in the same order: an environment without contacts has the same bits when its
// neighbours have constraints
template <class Real, class X>
REVOLUTE_HD void solve(const Model& model, const MassFactors<Real>& factors, X* x) {
  for (int k = model.nv - 1; k >= 0; --k) {
    const MatrixRow row = tree_row(model, k);
    const Real* const L = factors.row(model, k);
    for (int i = 1; i < row.count; ++i) x[row.dofs[i]] = multiply_add(-L[i], x[k], x[row.dofs[i]]);
    x[k] = x[k] * L[0];
  }
  for (int k = 0; k < model.nv; ++k) {
    const MatrixRow row = tree_row(model, k);
    const Real* const L = factors.row(model, k);
    for (int i = row.count - 1; i > 0; --i) x[k] = multiply_add(-L[i], x[row.dofs[i]], x[k]);
  }
}

}  // namespace revolute
