// Projected Gauss-Seidel: a fixed number of sweeps over the rows of  w = A x + b,  from x = 0.
//
// Rows come grouped in islands that do not touch each other; a row's bounds depend on its kind:
//   bilateral: free;  unilateral: 0 <= x (masked where inactive);  friction: |x| <= mu x_normal;  box: |x| <= bound.
// With the rows of w divided by their diagonal (which includes the regularisation), y_j = w_j / A_jj, one update is
//   x_r+ = clamp(x_r - y_r),   y_j += (A_rj / A_jj) (x_r+ - x_r)                               (1)
// A row that nothing can move (a planar robot pushed out of its plane: A_rr = 0) keeps x_r = 0.
// The tape keeps x_r+ of every update, so that the adjoint can walk back.
//
// Adjoint of the unconverged result: each update read as x_r+ = clamp(-(b_r + sum_{j != r} A_rj x_j)/A_rr), backwards,
// with g = x_r_bar, then x_r_bar = 0 (PAPER.md section 3, row 14):
//   free:     s = g/A_rr,  b_r_bar -= s,  A_rj_bar -= s x_j (x_r+ for j = r),  x_j_bar -= s A_rj      (2)
//   friction at +-mu x_n:  mu_bar += +-x_n g,  x_n_bar += +-mu g;   box at +-bound:  bound_bar += +-g (3)
//   unilateral at 0: nothing.
// The s of all sweeps are kept, and A_bar is their product with the tape, formed once:
//   A_rj_bar = - sum over sweeps of s_r x_j, x_j of this sweep for j <= r, of the one before for j > r       (4)
// At a switching point (a free solution that lies exactly on its bound) the row counts as clamped, in forward derivatives
// as well. Where a bound is zero the side is the sign of x_r+, which is +0 or -0.
//
// Islands of up to `unrolled_rows` rows run with y (or x_bar) in registers; larger ones take the same steps in memory.
#pragma once

#include <cstddef>

#include "revolute/scalar/scalar.hpp"

namespace revolute {

constexpr double least_mobility = 1e-15;  // 1/kg; less is rounding of a Jacobian that is zero
constexpr int unrolled_rows = 12;

enum class RowKind : int { bilateral, unilateral, friction, box };

struct SolverRow {
  RowKind kind;
  int normal;      // friction: the row of its normal
  int begin, end;  // rows of its island
  std::size_t A;   // offset of the row in A; entry (r, j) is A[row.A + j - begin]
};

template <class Real>
struct SolverProblem {
  int count, iterations;
  const SolverRow* rows;
  const Real* A;
  const Real* b;
  const Real* bound;  // friction: mu; box: bound; unilateral: 1 where active, 0 elsewhere; bilateral: unused
};

// Arrays [count], but scaled as A and tape [iterations, count].
template <class Real>
struct SolverWorkspace {
  Real *x, *y, *inverse_diagonal, *scaled, *tape;
};
// Scratch of the adjoint: [count], but steps [iterations, count].
template <class Real>
struct SolverAdjointWorkspace {
  Real *x, *from_friction, *steps;
};
// Where the cotangents go: [count], but A as A. x is used up, the others are added to.
template <class Real>
struct SolverCotangent {
  Real *x, *b, *A, *bound;
};

// The result of (1) for one row, before it is known what it does to the others.
template <class Real>
REVOLUTE_HD inline Real projected_update(const SolverProblem<Real>& problem, const Real* x, int r, Real y) {
  const SolverRow& row = problem.rows[r];
  const Real next = x[r] - y;
  if (row.kind == RowKind::bilateral) return next;
  if (row.kind == RowKind::unilateral) return problem.bound[r] * select(less(Real(0), next), next, Real(0));
  const Real bound = row.kind == RowKind::friction ? problem.bound[r] * x[row.normal] : problem.bound[r];
  return select(less_equal(bound, next), bound, select(less_equal(next, -bound), -bound, next));
}

// All sweeps over the island of `rows` rows from `begin`; rows is the compile-time Rows unless that is 0.
template <int Rows, class Real>
REVOLUTE_HD void solve_island(const SolverProblem<Real>& problem, int begin, int rows,
                              SolverWorkspace<Real>& ws, bool record) {
  const int count = Rows ? Rows : rows;
  const Real* scaled = ws.scaled + problem.rows[begin].A;
  Real registers[Rows ? Rows : 1];
  Real* y = Rows ? registers : ws.y + begin;
  for (int j = 0; j < count; ++j) y[j] = problem.b[begin + j] * ws.inverse_diagonal[begin + j];
  for (int sweep = 0; sweep < problem.iterations; ++sweep) {
    Real* tape = ws.tape + std::size_t(sweep) * problem.count + begin;
#pragma GCC unroll 16
    for (int r = 0; r < count; ++r) {
      const Real next = projected_update(problem, ws.x, begin + r, y[r]);
      const Real change = next - ws.x[begin + r];
      ws.x[begin + r] = next;
      if (record) tape[r] = next;
      const Real* row = scaled + r * count;
#pragma GCC unroll 16
      for (int j = 0; j < count; ++j) y[j] = multiply_add(row[j], change, y[j]);  // (1)
    }
  }
}

// Calls Island<Rows>::run with the compile-time number of rows, or 0 when there are more than unrolled_rows.
template <template <int> class Island, int Rows, class... Arguments>
REVOLUTE_HD inline void dispatch_rows(int rows, Arguments&... arguments) {
  if constexpr (Rows == 0) {
    Island<0>::run(rows, arguments...);
  } else {
    if (rows == Rows) return Island<Rows>::run(rows, arguments...);
    dispatch_rows<Island, Rows - 1>(rows, arguments...);
  }
}
template <int Rows>
struct ForwardIsland {
  template <class Real>
  REVOLUTE_HD static void run(int rows, const SolverProblem<Real>& problem, const int& begin,
                              SolverWorkspace<Real>& ws, const bool& record) {
    solve_island<Rows>(problem, begin, rows, ws, record);
  }
};

// Fills x; with `record` the tape too.
template <class Real>
REVOLUTE_HD void projected_gauss_seidel(const SolverProblem<Real>& problem, SolverWorkspace<Real>& ws,
                                        bool record) {
  for (int r = 0; r < problem.count; ++r) {
    const SolverRow& row = problem.rows[r];
    ws.x[r] = Real(0);
    const Real diagonal = problem.A[row.A + r - row.begin];
    const auto movable = less(Real(least_mobility), diagonal);
    ws.inverse_diagonal[r] = select(movable, Real(1) / select(movable, diagonal, Real(1)), Real(0));
  }
  for (int r = 0; r < problem.count; ++r) {
    const SolverRow& row = problem.rows[r];
    for (int j = row.begin; j < row.end; ++j)
      ws.scaled[row.A + j - row.begin] = problem.A[row.A + j - row.begin] * ws.inverse_diagonal[j];
  }
  for (int begin = 0; begin < problem.count; begin = problem.rows[begin].end)
    dispatch_rows<ForwardIsland, unrolled_rows>(problem.rows[begin].end - begin, problem, begin, ws, record);
}

// (3): what of g passes through the clamp of row r. A friction row's cotangent of its normal waits in from_friction.
template <class Real>
REVOLUTE_HD inline Real clamp_adjoint(const SolverProblem<Real>& problem, int r, Real g,
                                      SolverAdjointWorkspace<Real>& ws, SolverCotangent<Real>& bar) {
  const SolverRow& row = problem.rows[r];
  const Real next = ws.x[r];
  if (row.kind == RowKind::bilateral) return g;
  if (row.kind == RowKind::unilateral) {
    g += ws.from_friction[r];
    ws.from_friction[r] = Real(0);
    return select(less(Real(0), next), g, Real(0));
  }
  const bool friction = row.kind == RowKind::friction;
  const Real scale = friction ? ws.x[row.normal] : Real(1);
  const Real bound = problem.bound[r] * scale;
  const auto negative = is_negative(next);
  const auto upper = less_equal(bound, next) & !negative, lower = less_equal(next, -bound) & negative;
  const Real at_bound = select(upper, g, select(lower, -g, Real(0)));
  bar.bound[r] += at_bound * scale;
  if (friction) ws.from_friction[row.normal] += at_bound * problem.bound[r];
  return select(upper | lower, Real(0), g);
}

// (2) over all sweeps of an island, backwards; ws.steps gets the s.
template <int Rows, class Real>
REVOLUTE_HD void solve_island_adjoint(const SolverProblem<Real>& problem, const SolverWorkspace<Real>& at,
                                      int begin, int rows, SolverAdjointWorkspace<Real>& ws,
                                      SolverCotangent<Real>& bar) {
  const int count = Rows ? Rows : rows;
  const Real* A = problem.A + problem.rows[begin].A;
  Real registers[Rows ? Rows : 1];
  Real* x_bar = Rows ? registers : bar.x + begin;
  if (Rows)
    for (int j = 0; j < count; ++j) x_bar[j] = bar.x[begin + j];
  for (int sweep = problem.iterations - 1; sweep >= 0; --sweep) {
    const Real* before = at.tape + std::size_t(sweep > 0 ? sweep - 1 : 0) * problem.count + begin;
    Real* steps = ws.steps + std::size_t(sweep) * problem.count + begin;
#pragma GCC unroll 16
    for (int r = count - 1; r >= 0; --r) {
      const Real s = clamp_adjoint(problem, begin + r, x_bar[r], ws, bar) * at.inverse_diagonal[begin + r];
      steps[r] = s;
      const Real* row = A + r * count;
#pragma GCC unroll 16
      for (int j = 0; j < count; ++j) x_bar[j] = multiply_add(-s, row[j], x_bar[j]);
      x_bar[r] = Real(0);
      ws.x[begin + r] = sweep > 0 ? before[r] : Real(0);
    }
  }
}

// (4) and b_bar, row by row
template <int Rows, class Real>
REVOLUTE_HD void gather_steps(const SolverProblem<Real>& problem, const SolverWorkspace<Real>& at, int begin,
                              int rows, const SolverAdjointWorkspace<Real>& ws, SolverCotangent<Real>& bar) {
  const int count = Rows ? Rows : rows;
  Real* A_bar = bar.A + problem.rows[begin].A;
  for (int r = 0; r < count; ++r) {
    Real* row = A_bar + r * count;
    Real registers[Rows ? Rows : 1], sum_s(0);
    Real* sum = Rows ? registers : row;
    if (Rows)
      for (int j = 0; j < count; ++j) sum[j] = row[j];
    for (int sweep = 0; sweep < problem.iterations; ++sweep) {
      const Real* x = at.tape + std::size_t(sweep) * problem.count + begin;
      const Real* x_before = sweep > 0 ? x - problem.count : nullptr;
      const Real s = -ws.steps[std::size_t(sweep) * problem.count + begin + r];
      sum_s += s;
#pragma GCC unroll 16
      for (int j = 0; j < count; ++j) {
        if (j <= r) sum[j] = multiply_add(s, x[j], sum[j]);
        if (j > r && x_before) sum[j] = multiply_add(s, x_before[j], sum[j]);
      }
    }
    bar.b[begin + r] += sum_s;
    if (Rows)
      for (int j = 0; j < count; ++j) row[j] = sum[j];
  }
}

template <int Rows>
struct AdjointIsland {
  template <class Real>
  REVOLUTE_HD static void run(int rows, const SolverProblem<Real>& problem, const SolverWorkspace<Real>& at,
                              const int& begin, SolverAdjointWorkspace<Real>& ws,
                              SolverCotangent<Real>& bar) {
    solve_island_adjoint<Rows>(problem, at, begin, rows, ws, bar);
    gather_steps<Rows>(problem, at, begin, rows, ws, bar);
  }
};

// `at` comes from a recorded solve.
template <class Real>
REVOLUTE_HD void projected_gauss_seidel_adjoint(const SolverProblem<Real>& problem,
                                                const SolverWorkspace<Real>& at,
                                                SolverAdjointWorkspace<Real>& ws,
                                                SolverCotangent<Real>& bar) {
  for (int r = 0; r < problem.count; ++r) {
    ws.x[r] =
        problem.iterations > 0 ? at.tape[std::size_t(problem.iterations - 1) * problem.count + r] : Real(0);
    ws.from_friction[r] = Real(0);
  }
  for (int begin = 0; begin < problem.count; begin = problem.rows[begin].end)
    dispatch_rows<AdjointIsland, unrolled_rows>(problem.rows[begin].end - begin, problem, at, begin, ws, bar);
}

}  // namespace revolute
