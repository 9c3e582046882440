// Projected Gauss-Seidel: a fixed number of sweeps over the rows of  w = A x + b,  from x = 0.
//
// Rows come grouped in islands that do not touch each other; a row's bounds depend on its kind:
//   bilateral: free;  unilateral: 0 <= x (masked where inactive);  friction: |x| <= mu x_normal;  box: |x| <= bound.
// One update (A_rr includes the regularisation):
//   x_r+ = clamp(x_r - w_r / A_rr),   w += A_r (x_r+ - x_r)                                    (1)
// The tape keeps x_r+ of every update, so that the adjoint can walk back. A row that nothing can move (a planar robot
// pushed out of its plane: A_rr = 0) keeps x_r = 0.
//
// Adjoint of the unconverged result: each update read as x_r+ = clamp(-(b_r + sum_{j != r} A_rj x_j)/A_rr), backwards,
// with g = x_r_bar, then x_r_bar = 0 (PAPER.md section 3, row 14):
//   free:     s = g/A_rr,  b_r_bar -= s,  A_rj_bar -= s x_j (x_r+ for j = r),  x_j_bar -= s A_rj      (2)
//   friction at +-mu x_n:  mu_bar += +-x_n g,  x_n_bar += +-mu g;   box at +-bound:  bound_bar += +-g (3)
//   unilateral at 0: nothing.
// At a switching point (a free solution that lies exactly on its bound) the row counts as clamped.
#pragma once

#include <cstddef>

#include "revolute/scalar/scalar.hpp"

namespace revolute {

constexpr double least_mobility = 1e-15;  // 1/kg; less is rounding of a Jacobian that is zero

enum class RowKind : int { bilateral, unilateral, friction, box };

struct SolverRow {
  RowKind kind;
  int normal;             // friction: the row of its normal
  int begin, end;         // rows of its island
  std::size_t A;          // offset of the row in A; entry (r, j) is A[row.A + j - begin]
};

template <class Real>
struct SolverProblem {
  int count, iterations;
  const SolverRow* rows;
  const Real* A;
  const Real* b;
  const Real* bound;          // friction: mu; box: bound; unilateral: 1 where active, 0 elsewhere; bilateral: unused
};

// x: [count]. w: scratch [count]. inverse_diagonal: [count], filled here. tape: [iterations * count] or null.
template <class Real>
REVOLUTE_HD void projected_gauss_seidel(const SolverProblem<Real>& problem, Real* x, Real* w, Real* inverse_diagonal, Real* tape) {
  for (int r = 0; r < problem.count; ++r) {
    const SolverRow& row = problem.rows[r];
    x[r] = Real(0);
    w[r] = problem.b[r];
    const Real diagonal = problem.A[row.A + r - row.begin];
    const auto movable = less(Real(least_mobility), diagonal);
    inverse_diagonal[r] = select(movable, Real(1) / select(movable, diagonal, Real(1)), Real(0));
  }
  for (int sweep = 0; sweep < problem.iterations; ++sweep) {
    for (int r = 0; r < problem.count; ++r) {
      const SolverRow& row = problem.rows[r];
      Real next = x[r] - w[r] * inverse_diagonal[r];
      if (row.kind == RowKind::unilateral) {
        next = problem.bound[r] * maximum(next, Real(0));
      } else if (row.kind != RowKind::bilateral) {
        const Real bound = row.kind == RowKind::friction ? problem.bound[r] * x[row.normal] : problem.bound[r];
        next = clamp(next, -bound, bound);
      }
      const Real change = next - x[r];
      x[r] = next;
      if (tape) tape[sweep * problem.count + r] = next;
      const Real* A_r = problem.A + row.A;
      for (int j = row.begin; j < row.end; ++j) w[j] += A_r[j - row.begin] * change;  // (1)
    }
  }
}

// x_bar [count] is used up; x: scratch [count]. Adds to b_bar, A_bar (laid out as A), bound_bar.
template <class Real>
REVOLUTE_HD void projected_gauss_seidel_adjoint(const SolverProblem<Real>& problem, const Real* inverse_diagonal, const Real* tape,
                                                Real* x, Real* x_bar, Real* b_bar, Real* A_bar, Real* bound_bar) {
  const int count = problem.count;
  for (int r = 0; r < count; ++r) x[r] = problem.iterations > 0 ? tape[(problem.iterations - 1) * count + r] : Real(0);
  for (int sweep = problem.iterations - 1; sweep >= 0; --sweep) {
    for (int r = count - 1; r >= 0; --r) {
      const SolverRow& row = problem.rows[r];
      const Real next = x[r], g = x_bar[r];
      Real free = g;
      if (row.kind == RowKind::unilateral) {
        free = select(less(Real(0), next), g, Real(0));
      } else if (row.kind != RowKind::bilateral) {
        const Real scale = row.kind == RowKind::friction ? x[row.normal] : Real(1);
        const Real bound = problem.bound[r] * scale;
        const auto upper = less_equal(bound, next), lower = less_equal(next, -bound) & !upper;
        const Real at_bound = select(upper, g, select(lower, -g, Real(0)));
        free = select(upper | lower, Real(0), g);
        bound_bar[r] += at_bound * scale;  // (3)
        if (row.kind == RowKind::friction) x_bar[row.normal] += at_bound * problem.bound[r];
      }
      const Real s = free * inverse_diagonal[r];
      b_bar[r] -= s;
      const Real* A_r = problem.A + row.A;
      Real* A_r_bar = A_bar + row.A;
      for (int j = row.begin; j < row.end; ++j) {
        A_r_bar[j - row.begin] -= s * x[j];
        x_bar[j] -= s * A_r[j - row.begin];
      }
      x_bar[r] = Real(0);
      x[r] = sweep > 0 ? tape[(sweep - 1) * count + r] : Real(0);
    }
  }
}

}  // namespace revolute
