// Projected Gauss-Seidel: a fixed number of sweeps over the rows of  w = A x + b,  from x = 0.
//
// Rows come grouped in islands that do not touch each other; a row's bounds depend on its kind:
//   bilateral: free;  unilateral: 0 <= x (masked where inactive);  friction: |x| <= mu x_normal;  box: |x| <= bound.
// The friction rows of a normal follow it. Kept for every row is what it would become without its bounds,
//   z_r = -(b_r + sum_{j != r} A_rj x_j)/A_rr,
// which its own change leaves as it is (the diagonal A_rr includes the regularisation). One update is
//   x_r+ = clamp(z_r),   z_j -= (A_rj / A_jj) (x_r+ - x_r) for j != r                         (1)
// A row that nothing can move (a planar robot pushed out of its plane: A_rr = 0) keeps x_r = 0, like a masked one.
// The tape keeps x_r+ of every update, so that the adjoint can walk back.
//
// The sweeps over an island end when two in a row changed nothing (x_r - x_r+ was +0 everywhere): all later ones would
// repeat the second to the bit, and the tape gets copies of it. One is not enough: adding a zero can still turn a z that is -0
// into +0, and with it the side of a bound that is zero; adding it again cannot. So results are those of all sweeps, and what
// else is in the pack only decides how many are computed.
//
// What an update takes is the chain of operations from one z to the next: clamp, difference, multiply-add. So the clamps are
// a minimum and a maximum, and the impulse of the last normal is at hand.
//
// Adjoint of the unconverged result: each update backwards, with g = x_r_bar, then x_r_bar = 0 (docs/adjoint.md section 4):
//   free:     s = g/A_rr,  b_r_bar -= s,  A_rj_bar -= s x_j (x_r+ for j = r),  x_j_bar -= (A_rj/A_rr) g      (2)
//   friction at +-mu x_n:  mu_bar += +-x_n g,  x_n_bar += +-mu g;   box at +-bound:  bound_bar += +-g (3)
//   unilateral at 0: nothing.
// The s of all sweeps are kept, and A_bar is their product with the tape, formed once:
//   A_rj_bar = - sum over sweeps of s_r x_j, x_j of this sweep for j <= r, of the one before for j > r       (4)
// Of an island's tape, these x_j are the last updates up to that of row r: a window that moves by one sweep at a time.
// At a switching point (a free solution that lies exactly on its bound) the row counts as clamped, in forward derivatives
// as well. Where a bound is zero the side is the sign of x_r+, which is +0 or -0.
//
// Islands of one to four contacts with sliding friction and nothing else run with x and z (or x_bar) in registers, and without
// a branch; the others take the same steps in memory.
#pragma once

#include <cstddef>
#include <initializer_list>

#include "revolute/arena.hpp"
#include "revolute/solvers/solver.hpp"

namespace revolute {

constexpr double least_mobility = 1e-15;  // 1/kg; less is rounding of a Jacobian that is zero
constexpr int contact_rows = 3, unrolled_rows = 4 * contact_rows;

// Arrays [count], but scaled as A: A_rj / A_jj, and tape [iterations, rows] for each island in turn.
template <class Real>
struct SolverWorkspace {
  Real *x, *z, *inverse_diagonal, *scaled, *tape;

  // Without `scaled`, which grows with the rows at hand.
  void take(std::size_t capacity, int iterations, Arena& arena) {
    for (Real** array : {&x, &z, &inverse_diagonal}) *array = arena.take<Real>(capacity);
    tape = arena.take<Real>(capacity * iterations);
  }
};
// Scratch of the adjoint, laid out as the tape.
template <class Bar>
struct SolverAdjointWorkspace {
  Bar* steps;

  void take(std::size_t capacity, int iterations, Arena& arena) {
    steps = arena.take<Bar>(capacity * iterations);
  }
};

// The clamp of (1); `normal` is the impulse of the last unilateral row.
template <class Real>
REVOLUTE_HD inline Real project(RowKind kind, const Real& bound, const Real& z, Real& normal) {
  switch (kind) {
    case RowKind::bilateral:
      return z;
    case RowKind::unilateral:
      return normal = maximum(Real(0), z);
    case RowKind::friction:
      return clamp_magnitude(z, bound * normal);
    default:
      return clamp_magnitude(z, bound);
  }
}

// The kind of row r of an island; of one that is unrolled it is known to the compiler.
template <int Rows>
REVOLUTE_HD inline RowKind kind_of(const SolverRow* island, int r) {
  if (Rows) return r % contact_rows == 0 ? RowKind::unilateral : RowKind::friction;
  return island[r].kind;
}

template <int Rows>
REVOLUTE_HD inline int normal_of(const SolverRow* island, int r) {
  return Rows ? r - r % contact_rows : island[r].normal - island->begin;
}

// One island's arrays, from its first row.
template <class Real>
struct Island {
  const SolverRow* rows;
  int count, iterations;
  const Real *bound, *scaled, *inverse_diagonal;
};

// All sweeps over an island; `tape` may be null. Functions of their own, so that every number of an unrolled island is a
// constant offset from one register: g++ 12 would keep a register or a place on the stack for the address of each.
template <int Rows, class Real>
REVOLUTE_NOINLINE void sweep(const Island<Real>& island, Real* x_out, Real* z_in, Real* tape) {
  const int count = Rows ? Rows : island.count;
  const SolverRow* const rows = island.rows;
  const Real *const bound = island.bound, *const scaled = island.scaled;
  Real x_registers[Rows ? Rows : 1], z_registers[Rows ? Rows : 1];
  Real *x = Rows ? x_registers : x_out, *z = Rows ? z_registers : z_in;
  for (int j = 0; j < count; ++j) {
    x[j] = Real(0);
    z[j] = z_in[j];
  }
  int sweep = 0;
  for (int quiet = 0; sweep < island.iterations && quiet < 2; ++sweep) {
    Real normal(0);
    AllPositiveZero<Real> changes;
#pragma GCC unroll 16
    for (int r = 0; r < count; ++r) {
      const Real next = project(kind_of<Rows>(rows, r), bound[r], z[r], normal);
      const Real back = x[r] - next;
      changes.add(back);
      x[r] = next;
      if (tape) tape[r] = next;
#pragma GCC unroll 16
      for (int j = 0; j < count; ++j)
        if (j != r) z[j] = multiply_add(scaled[r * count + j], back, z[j]);  // (1)
    }
    quiet = changes.holds() ? quiet + 1 : 0;
    if (tape) tape += count;
  }
  for (; tape && sweep < island.iterations; ++sweep, tape += count)
    for (int r = 0; r < count; ++r) tape[r] = x[r];
  if (Rows)
    for (int j = 0; j < count; ++j) x_out[j] = x[j];
}

// Calls Task<Rows>::run with the number of rows of an island that is to be unrolled, or 0.
template <template <int> class Task, int Rows, class... Arguments>
REVOLUTE_HD inline void dispatch_rows(int rows, Arguments&... arguments) {
  if constexpr (Rows == 0) {
    Task<0>::run(rows, arguments...);
  } else {
    if (rows == Rows) return Task<Rows>::run(rows, arguments...);
    dispatch_rows<Task, Rows - contact_rows>(rows, arguments...);
  }
}
template <template <int> class Task, class... Arguments>
REVOLUTE_HD inline void dispatch_island(const SolverRow* island, Arguments&... arguments) {
  const int rows = island->end - island->begin;
  bool contacts = rows % contact_rows == 0;
  for (int r = 0; r < rows; ++r) contacts = contacts && island[r].kind == kind_of<contact_rows>(island, r);
  if (contacts) return dispatch_rows<Task, unrolled_rows>(rows, arguments...);
  Task<0>::run(rows, arguments...);
}
template <class Real>
REVOLUTE_HD inline Island<Real> island_at(const SolverProblem<Real>& problem, const SolverWorkspace<Real>& ws,
                                          int begin, int rows) {
  return {problem.rows + begin,
          rows,
          problem.iterations,
          problem.bound + begin,
          ws.scaled + problem.rows[begin].A,
          ws.inverse_diagonal + begin};
}
// Where the part of an island's tape begins.
template <class Real>
REVOLUTE_HD inline std::size_t tape_offset(const SolverProblem<Real>& problem, int begin) {
  return std::size_t(problem.iterations) * begin;
}
template <int Rows>
struct ForwardIsland {
  template <class Real>
  REVOLUTE_HD static void run(int rows, const SolverProblem<Real>& problem, const int& begin,
                              SolverWorkspace<Real>& ws, const bool& record) {
    for (int r = begin; r < begin + rows; ++r) ws.z[r] = -(problem.b[r] * ws.inverse_diagonal[r]);
    sweep<Rows>(island_at(problem, ws, begin, rows), ws.x + begin, ws.z + begin,
                record ? ws.tape + tape_offset(problem, begin) : nullptr);
  }
};

// 1/A_rr, or 0 where the row stays at zero.
template <class Real>
REVOLUTE_HD inline Real inverse_diagonal(const SolverProblem<Real>& problem, int r) {
  const SolverRow& row = problem.rows[r];
  const Real diagonal = problem.A[row.A + r - row.begin];
  auto movable = less(Real(least_mobility), diagonal);
  if (row.kind == RowKind::unilateral) movable = movable & less(Real(0), problem.bound[r]);
  return select(movable, Real(1) / select(movable, diagonal, Real(1)), Real(0));
}

// Fills x; with `record` the tape too.
template <class Real>
REVOLUTE_HD void projected_gauss_seidel(const SolverProblem<Real>& problem, SolverWorkspace<Real>& ws,
                                        bool record) {
  for (int r = 0; r < problem.count; ++r) ws.inverse_diagonal[r] = inverse_diagonal(problem, r);
  for (int r = 0; r < problem.count; ++r) {
    const SolverRow& row = problem.rows[r];
    for (int j = row.begin; j < row.end; ++j)
      ws.scaled[row.A + j - row.begin] = problem.A[row.A + j - row.begin] * ws.inverse_diagonal[j];
  }
  for (int begin = 0; begin < problem.count; begin = problem.rows[begin].end)
    dispatch_island<ForwardIsland>(problem.rows + begin, problem, begin, ws, record);
}

// (3): what of g = x_r_bar passes through the clamp of a row that became `next`; bound_bar is added to. What friction rows
// give to their normal waits in normal_bar.
template <class Real, class Bar>
REVOLUTE_HD inline Bar project_adjoint(RowKind kind, const Real& bound, const Real& next, const Real& normal,
                                       const Bar& g, Bar& bound_bar, Bar& normal_bar) {
  if (kind == RowKind::bilateral) return g;
  if (kind == RowKind::unilateral) {
    const Bar all = g + normal_bar;
    normal_bar = Bar(0);
    return select(less(Bar(0), Bar(next)), all, Bar(0));
  }
  const bool friction = kind == RowKind::friction;
  const Real limit = friction ? bound * normal : bound;
  // masks as wide as the cotangents: one of the step alone would be a branch
  const auto clamped = less_equal(Bar(limit), Bar(abs(next)));
  const Bar outwards = select(clamped, flip_sign(g, Bar(next)), Bar(0));
  bound_bar += friction ? outwards * normal : outwards;
  if (friction) normal_bar += outwards * bound;
  return select(clamped, Bar(0), g);
}

// (2) over all sweeps of an island, backwards, from the last row of the tape; `steps`, laid out as the tape, gets the s.
template <int Rows, class Real, class Bar>
REVOLUTE_NOINLINE void sweep_adjoint(const Island<Real>& island, const Real* tape, Bar* steps, Bar* x_bar_in,
                                     Bar* bound_bar) {
  const int count = Rows ? Rows : island.count;
  const SolverRow* const rows = island.rows;
  const Real *const bound = island.bound, *const scaled = island.scaled,
                    *const inverse_diagonal = island.inverse_diagonal;
  Bar registers[Rows ? Rows : 1];
  Bar* x_bar = Rows ? registers : x_bar_in;
  if (Rows)
    for (int j = 0; j < count; ++j) x_bar[j] = x_bar_in[j];
  for (int sweep = 0; sweep < island.iterations; ++sweep) {
    Bar normal_bar(0);
#pragma GCC unroll 16
    for (int r = count - 1; r >= 0; --r) {
      const RowKind kind = kind_of<Rows>(rows, r);
      const Real normal = kind == RowKind::friction ? tape[normal_of<Rows>(rows, r)] : Real(0);
      const Bar g = project_adjoint(kind, bound[r], tape[r], normal, x_bar[r], bound_bar[r], normal_bar);
      steps[r] = g * inverse_diagonal[r];
      x_bar[r] = Bar(0);
      // A is symmetric: A_rj / A_rr is entry (j, r) of scaled
#pragma GCC unroll 16
      for (int j = 0; j < count; ++j)
        if (j != r) x_bar[j] = multiply_add(-g, scaled[j * count + r], x_bar[j]);
    }
    tape -= count;
    steps -= count;
  }
}

// (4) and b_bar, row by row; `sum` is scratch. Entry i of the window that ends with row r is of row (r + 1 + i) mod count. In
// the first sweep those after r are not there yet, and zero.
template <int Rows, class Real, class Bar>
REVOLUTE_NOINLINE void gather_steps(const Island<Real>& island, const Real* tape, const Bar* steps,
                                    Bar* A_bar, Bar* b_bar, Bar* sum_in) {
  const int count = Rows ? Rows : island.count;
  Bar registers[Rows ? Rows : 1];
  Bar* const sum = Rows ? registers : sum_in;
  for (int r = 0; r < count; ++r) {
    Bar* const row = A_bar + r * count;
    const int later = count - 1 - r;  // rows after r
    const Bar* next_step = steps + r;
    const Real* window = tape + r + 1;
    Bar s = -*next_step, sum_s = s;
#pragma GCC unroll 16
    for (int i = 0; i < count; ++i) {
      sum[i] = row[i < later ? r + 1 + i : i - later];
      if (i >= later) sum[i] = multiply_add(s, tape[i - later], sum[i]);
    }
    for (int sweep = 1; sweep < island.iterations; ++sweep, window += count) {
      s = -*(next_step += count);
      sum_s += s;
#pragma GCC unroll 16
      for (int i = 0; i < count; ++i) sum[i] = multiply_add(s, window[i], sum[i]);
    }
    b_bar[r] += sum_s;
#pragma GCC unroll 16
    for (int i = 0; i < count; ++i) row[i < later ? r + 1 + i : i - later] = sum[i];
  }
}

template <int Rows>
struct AdjointIsland {
  template <class Real, class Bar>
  REVOLUTE_HD static void run(int rows, const SolverProblem<Real>& problem, const SolverWorkspace<Real>& at,
                              const int& begin, SolverAdjointWorkspace<Bar>& ws, SolverCotangent<Bar>& bar) {
    if (problem.iterations == 0) return;
    const Island<Real> island = island_at(problem, at, begin, rows);
    const Real* const tape = at.tape + tape_offset(problem, begin);
    Bar* const steps = ws.steps + tape_offset(problem, begin);
    const std::size_t last = std::size_t(problem.iterations - 1) * rows;
    sweep_adjoint<Rows>(island, tape + last, steps + last, bar.x + begin, bar.bound + begin);
    gather_steps<Rows>(island, tape, steps, bar.A + problem.rows[begin].A, bar.b + begin, bar.x + begin);
  }
};

// `at` comes from a recorded solve.
template <class Real, class Bar>
REVOLUTE_HD void projected_gauss_seidel_adjoint(const SolverProblem<Real>& problem,
                                                const SolverWorkspace<Real>& at,
                                                SolverAdjointWorkspace<Bar>& ws, SolverCotangent<Bar>& bar) {
  for (int begin = 0; begin < problem.count; begin = problem.rows[begin].end)
    dispatch_island<AdjointIsland>(problem.rows + begin, problem, at, begin, ws, bar);
}

}  // namespace revolute
