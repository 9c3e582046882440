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

#include <type_traits>

#include "revolute/growing_array.hpp"
#include "revolute/stages/articulated_inertia.hpp"
#include "revolute/stages/constraint_rows.hpp"

namespace revolute {

// The rows of a contact share a path, so (2) runs for all of them at once: one chain hides the latency of the others.
constexpr int rows_together = 3;

template <class Real>
std::size_t square_of_rows(const Model& model) {
  return ConstraintRows<Real>::capacity(model) * ConstraintRows<Real>::capacity(model);
}

template <class Real>
struct Delassus {
  Real* Y;         // entries along each row's path
  Force<Real>* P;  // the forces P at which Y was formed
  Real* A;         // islands' blocks, row by row
  GrowingArray<Real> A_memory;
  Real* dense;        // [nv, rows_together] scratch, zero between uses
  Force<Real>* node;  // [nv, rows_together] scratch

  Delassus(const Model& model, Arena& arena)
      : Y(arena.take<Real>(ConstraintRows<Real>::path_entries(model))),
        P(arena.take<Force<Real>>(ConstraintRows<Real>::path_entries(model))),
        A(nullptr),
        A_memory(square_of_rows<Real>(model), arena),
        dense(arena.take<Real>(std::size_t(rows_together) * model.nv)),
        node(arena.take<Force<Real>>(std::size_t(rows_together) * model.nv)) {}
};

template <class Bar>
struct DelassusCotangent {
  Bar *Y, *A;
  GrowingArray<Bar> A_memory;
  Bar* dense;         // [nv, rows_together] scratch, zero between uses
  Motion<Bar>* node;  // [nv, rows_together] scratch

  DelassusCotangent(const Model& model, Arena& arena)
      : Y(arena.take<Bar>(ConstraintRows<Bar>::path_entries(model))),
        A(nullptr),
        A_memory(square_of_rows<Bar>(model), arena),
        dense(arena.take<Bar>(std::size_t(rows_together) * model.nv)),
        node(arena.take<Motion<Bar>>(std::size_t(rows_together) * model.nv)) {}

  template <class Real>
  REVOLUTE_HD void clear(const ConstraintRows<Real>& rows) {
    A = A_memory.at_least(rows.matrix_entries());
    for (int r = 0; r < rows.count; ++r) {
      Bar* const row = A + rows.solver[r].A;
      for_coupled(rows.solver[r], [&](int j) { row[j] = Bar(0); });
    }
  }
};

// Number of rows from `first` on that can be taken together: rows_together or 1.
template <class Real>
REVOLUTE_HD inline int rows_on_path(const ConstraintRows<Real>& rows, int first) {
  if (first + rows_together > rows.count) return 1;
  const RowPath& path = rows.origin[first].path;
  for (int c = 1; c < rows_together; ++c)
    if (rows.origin[first + c].path.dofs != path.dofs || rows.origin[first + c].path.count != path.count)
      return 1;
  return rows_together;
}
// Calls visit(count, r) for the rows begin ... end - 1; `count`, a constant, is the number of rows taken together from r on.
template <class Real, class Visit>
REVOLUTE_HD inline void for_rows_on_paths(const ConstraintRows<Real>& rows, int begin, int end,
                                          const Visit& visit) {
  for (int r = begin, count; r < end; r += count) {
    count = rows_on_path(rows, r);
    if (count == rows_together)
      visit(std::integral_constant<int, rows_together>{}, r);
    else
      visit(std::integral_constant<int, 1>{}, r);
  }
}
// The same for the rows from `first` on that are coupled to row s.
template <class Real, class Visit>
REVOLUTE_HD inline void for_coupled_rows(const ConstraintRows<Real>& rows, int s, int first,
                                         const Visit& visit) {
  const SolverRow& row = rows.solver[s];
  if (!row.coupled) return for_rows_on_paths(rows, first, row.end, visit);
  for (int i = 0; i < row.ncoupled; ++i) {
    const int begin = row.begin + row.coupled[i].begin, end = row.begin + row.coupled[i].end;
    for_rows_on_paths(rows, begin > first ? begin : first, end, visit);
  }
}

// (2) for `Count` rows on the same path
template <int Count, class Real>
REVOLUTE_HD void fill_Y(const Model& model, const Kinematics<Real>& kin, const Factors<Real>& factors,
                        const ConstraintRows<Real>& rows, int first, Delassus<Real>& out) {
  const RowPath path = rows.origin[first].path;
  for (int i = 0; i < path.count; ++i)
    for (int c = 0; c < Count; ++c) {
      out.node[path.dofs[i] * Count + c] = zero_force<Real>();
      out.dense[path.dofs[i] * Count + c] = Real(0);
    }
  for (int c = 0; c < Count; ++c) {
    const RowJacobian<Real>& J = rows.J[first + c];
    if (J.link_a >= 0) out.node[J.link_a * Count + c] -= J.force_a;
    if (J.link_b >= 0) out.node[J.link_b * Count + c] -= J.force_b;
    for (int i = 0; i < J.dofs; ++i) out.dense[J.dof[i] * Count + c] += J.coefficient[i];
  }
  for (int i = 0; i < path.count; ++i) {
    const int k = path.dofs[i], parent = model.dofs[k].parent;
    for (int c = 0; c < Count; ++c) {
      const Force<Real> P = out.node[k * Count + c];
      const Real u = out.dense[k * Count + c] - dot(kin.S[k], P);
      const int y = rows.origin[first + c].y + i;
      out.dense[k * Count + c] = Real(0);
      out.P[y] = P;
      out.Y[y] = u;
      if (parent >= 0)
        out.node[parent * Count + c] += multiply_add(u * factors.D_inverse[k], factors.U[k], P);
    }
  }
}

// (1) between R rows on one path, from r on, and S rows, from s on, whose Y/D is in `dense`
template <int R, int S, class Real>
REVOLUTE_HD void fill_block(const ConstraintRows<Real>& rows, int r, int s, Delassus<Real>& out) {
  const RowPath path = rows.origin[r].path;
  Real sum[R][S];
  for (int a = 0; a < R; ++a)
    for (int b = 0; b < S; ++b) sum[a][b] = Real(0);
  for (int i = 0; i < path.count; ++i)
    for (int a = 0; a < R; ++a)
      for (int b = 0; b < S; ++b)
        sum[a][b] = multiply_add(out.Y[rows.origin[r + a].y + i], out.dense[path.dofs[i] * S + b], sum[a][b]);
  const int begin = rows.solver[s].begin;
  for (int a = 0; a < R; ++a)
    for (int b = 0; b < S; ++b) {
      if (r + a < s + b) continue;
      out.A[rows.solver[r + a].A + s + b - begin] = sum[a][b];
      out.A[rows.solver[s + b].A + r + a - begin] = sum[a][b];
    }
}

// (1) between `Count` rows on one path and all rows of their island that do not come before them
template <int Count, class Real>
REVOLUTE_HD void fill_A(const Model& model, const Factors<Real>& factors, const ConstraintRows<Real>& rows,
                        int s, Delassus<Real>& out) {
  const RowPath path = rows.origin[s].path;
  for (int i = 0; i < path.count; ++i)
    for (int b = 0; b < Count; ++b)
      out.dense[path.dofs[i] * Count + b] = out.Y[rows.origin[s + b].y + i] * factors.D_inverse[path.dofs[i]];
  for_coupled_rows(rows, s, s,
                   [&](auto count, int r) { fill_block<decltype(count)::value, Count>(rows, r, s, out); });
  for (int b = 0; b < Count; ++b)
    out.A[rows.solver[s + b].A + s + b - rows.solver[s].begin] += Real(model.cfm);
  for (int i = 0; i < path.count; ++i)
    for (int b = 0; b < Count; ++b) out.dense[path.dofs[i] * Count + b] = Real(0);
}

template <class Real>
REVOLUTE_HD void delassus(const Model& model, const Kinematics<Real>& kin, const Factors<Real>& factors,
                          const ConstraintRows<Real>& rows, Delassus<Real>& out) {
  out.A = out.A_memory.at_least(rows.matrix_entries());
  for (int i = 0; i < rows_together * model.nv; ++i) out.dense[i] = Real(0);
  for_rows_on_paths(rows, 0, rows.count, [&](auto count, int r) {
    fill_Y<decltype(count)::value>(model, kin, factors, rows, r, out);
  });
  for_rows_on_paths(rows, 0, rows.count,
                    [&](auto count, int s) { fill_A<decltype(count)::value>(model, factors, rows, s, out); });
}

// x = M^-1 J' lambda, by (1)
template <class Real>
REVOLUTE_HD void velocity_change(const Model& model, const Kinematics<Real>& kin,
                                 const Factors<Real>& factors, const ConstraintRows<Real>& rows,
                                 const Delassus<Real>& at, const Real* lambda, Real* x,
                                 SolveScratch<Real>& scratch) {
  for (int k = 0; k < model.nv; ++k) x[k] = Real(0);
  for (int r = 0; r < rows.count; ++r) {
    const RowPath path = rows.origin[r].path;
    for (int i = 0; i < path.count; ++i)
      x[path.dofs[i]] = multiply_add(at.Y[rows.origin[r].y + i], lambda[r], x[path.dofs[i]]);
  }
  solve_outward(model, kin, factors, x, x, scratch);
}

// The first sum of (3), added to R rows on one path, from r on, over S rows on one path, from s on. The sum ends where the
// paths meet. Paths descend in numbers, so both are walked from the root.
template <int R, int S, class Real, class Bar>
REVOLUTE_HD void add_to_Y_bar(const ConstraintRows<Real>& rows, int r, int s, const Delassus<Real>& at,
                              DelassusCotangent<Bar>& bar) {
  const RowPath path_r = rows.origin[r].path, path_s = rows.origin[s].path;
  const int begin = rows.solver[s].begin;
  Bar weight[R][S];
  for (int a = 0; a < R; ++a)
    for (int b = 0; b < S; ++b)
      weight[a][b] =
          bar.A[rows.solver[r + a].A + s + b - begin] + bar.A[rows.solver[s + b].A + r + a - begin];
  for (int i = path_r.count - 1, j = path_s.count - 1; i >= 0 && j >= 0;) {
    const int k = path_r.dofs[i], l = path_s.dofs[j];
    if (k == l)
      for (int a = 0; a < R; ++a) {
        const int y = rows.origin[r + a].y + i;
        Bar sum = bar.Y[y];
        for (int b = 0; b < S; ++b) sum = multiply_add(weight[a][b], at.Y[rows.origin[s + b].y + j], sum);
        bar.Y[y] = sum;
      }
    if (k <= l) --i;
    if (l <= k) --j;
  }
}
template <int S, class Real, class Bar>
REVOLUTE_HD void add_to_Y_bars(const ConstraintRows<Real>& rows, int s, const Delassus<Real>& at,
                               DelassusCotangent<Bar>& bar) {
  for_coupled_rows(rows, s, rows.solver[s].begin,
                   [&](auto count, int r) { add_to_Y_bar<decltype(count)::value, S>(rows, r, s, at, bar); });
}

// (3)
template <class Real, class Bar>
REVOLUTE_HD void A_adjoint(const Factors<Real>& factors, const ConstraintRows<Real>& rows,
                           const Delassus<Real>& at, DelassusCotangent<Bar>& bar,
                           FactorsCotangent<Bar>& factors_bar) {
  for (int r = 0; r < rows.count; ++r)
    for (int i = 0; i < rows.origin[r].path.count; ++i) bar.Y[rows.origin[r].y + i] = Bar(0);
  for_rows_on_paths(rows, 0, rows.count,
                    [&](auto count, int s) { add_to_Y_bars<decltype(count)::value>(rows, s, at, bar); });
  for (int r = 0; r < rows.count; ++r) {
    const RowPath path = rows.origin[r].path;
    for (int i = 0; i < path.count; ++i) {
      const int k = path.dofs[i], y = rows.origin[r].y + i;
      bar.Y[y] *= factors.D_inverse[k];
      factors_bar.D[k] -= Real(0.5) * factors.D_inverse[k] * (at.Y[y] * bar.Y[y]);
    }
  }
}

// Reverse of (2).
template <int Count, class Real, class Bar>
REVOLUTE_HD void fill_Y_adjoint(const Model& model, const Kinematics<Real>& kin, const Factors<Real>& factors,
                                const ConstraintRows<Real>& rows, int first, const Delassus<Real>& at,
                                const DelassusCotangent<Bar>& bar, ConstraintRowsCotangent<Bar>& rows_bar,
                                FactorsCotangent<Bar>& factors_bar, KinematicsCotangent<Bar>& kin_bar) {
  const RowPath path = rows.origin[first].path;
  for (int i = path.count - 1; i >= 0; --i) {
    const int k = path.dofs[i], parent = model.dofs[k].parent;
    const Real D_inverse = factors.D_inverse[k];
    // separate sums, which stay in registers
    Motion<Bar> U_bar = factors_bar.U[k];
    Force<Bar> S_bar = kin_bar.S[k];
    Bar D_bar = factors_bar.D[k];
    for (int c = 0; c < Count; ++c) {
      const int y = rows.origin[first + c].y + i;
      const Real u = at.Y[y];
      Bar u_bar = bar.Y[y];
      Motion<Bar> P_bar = zero_motion<Bar>();
      if (parent >= 0) {
        P_bar = bar.node[parent * Count + c];
        const Bar along = dot(P_bar, factors.U[k]) * D_inverse;
        u_bar += along;
        U_bar = multiply_add(u * D_inverse, P_bar, U_bar);
        D_bar -= u * D_inverse * along;
      }
      S_bar = multiply_add(-u_bar, at.P[y], S_bar);
      bar.node[k * Count + c] = multiply_add(-u_bar, kin.S[k], P_bar);
      bar.dense[k * Count + c] = u_bar;
    }
    factors_bar.U[k] = U_bar;
    kin_bar.S[k] = S_bar;
    factors_bar.D[k] = D_bar;
  }
  // a row enters (2) through its coefficients and minus its wrenches
  for (int c = 0; c < Count; ++c) {
    const RowJacobian<Real>& J = rows.J[first + c];
    RowJacobianCotangent<Bar>& J_bar = rows_bar.J[first + c];
    const auto wrench_bar = [&](int link) {
      const Motion<Bar>& P_bar = bar.node[link * Count + c];
      return Force<Bar>{P_bar.w, P_bar.v};
    };
    if (J.link_a >= 0) J_bar.force_a -= wrench_bar(J.link_a);
    if (J.link_b >= 0) J_bar.force_b -= wrench_bar(J.link_b);
    for (int i = 0; i < J.dofs; ++i) J_bar.coefficient[i] += bar.dense[J.dof[i] * Count + c];
  }
  for (int i = 0; i < path.count; ++i)
    for (int c = 0; c < Count; ++c) bar.dense[path.dofs[i] * Count + c] = Bar(0);
}

template <class Real, class Bar>
REVOLUTE_HD void delassus_adjoint(const Model& model, const Kinematics<Real>& kin,
                                  const Factors<Real>& factors, const ConstraintRows<Real>& rows,
                                  const Delassus<Real>& at, DelassusCotangent<Bar>& bar,
                                  ConstraintRowsCotangent<Bar>& rows_bar, FactorsCotangent<Bar>& factors_bar,
                                  KinematicsCotangent<Bar>& kin_bar) {
  A_adjoint(factors, rows, at, bar, factors_bar);
  for_rows_on_paths(rows, 0, rows.count, [&](auto count, int r) {
    fill_Y_adjoint<decltype(count)::value>(model, kin, factors, rows, r, at, bar, rows_bar, factors_bar,
                                           kin_bar);
  });
}

}  // namespace revolute
