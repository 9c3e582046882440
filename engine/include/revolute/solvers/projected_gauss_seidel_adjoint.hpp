// The adjoint of projected_gauss_seidel.hpp; equation numbers are those of its header.
#pragma once

#include "revolute/solvers/projected_gauss_seidel.hpp"

namespace revolute {

// Returns the part of g = x_r_bar that passes through the clamp of a row whose new value is `next`; adds to bound_bar.
// normal_bar holds the cotangents that friction rows give to their normal, until the normal is reached.
template <class Real, class Bar>
REVOLUTE_HD inline Bar project_adjoint(RowKind kind, const Real& bound, const Real& next, const Bar& g,
                                       Bar& bound_bar, Bar& normal_bar) {
  if (kind == RowKind::bilateral) return g;
  if (kind == RowKind::unilateral) {
    const Bar all = g + normal_bar;
    normal_bar = Bar(0);
    return select(less(Bar(0), Bar(next)), all, Bar(0));
  }
  // the mask is as wide as the cotangents: a mask of the step alone would become a branch
  const auto clamped = less_equal(Bar(bound), Bar(abs(next)));
  bound_bar += select(clamped, flip_sign(g, Bar(next)), Bar(0));
  return select(clamped, Bar(0), g);
}

// (3) for a friction block: computes its s.
template <int N>
struct ProjectBlockAdjoint {
  template <class Real, class Bar>
  REVOLUTE_HD static void run(const FrictionBlock<Real>& block, const Real* inverse, const Real& normal,
                              const Real* e, const Real& sigma, const Bar* g, Bar* s, Bar* bound_bar,
                              Bar& normal_bar) {
    const auto sticks = less(Bar(sigma), Bar(0));
    for (int i = 0; i < N; ++i) {
      Bar sum(0);
      for (int j = 0; j < N; ++j) sum = multiply_add(inverse[i * most_friction_rows + j], g[j], sum);
      s[i] = select(sticks, sum, Bar(0));
    }
    if (any(less(Real(0), sigma))) slide_adjoint<N>(block, normal, e, sigma, g, s, bound_bar, normal_bar);
  }
};

// (3) over all sweeps of an island, from the last sweep of the tape back; `steps`, laid out as the tape, gets the s.
template <int Rows, class Real, class Bar>
REVOLUTE_NOINLINE void sweep_adjoint(const Island<Real>& island, const Real* tape, const Real* slides,
                                     Bar* steps, Bar* x_bar_inout, Bar* bound_bar) {
  const int count = Rows ? Rows : island.count;
  const SolverRow* const rows = island.rows;
  const Real *const A = island.A, *const bound = island.bound, *const inverse = island.inverse;
  Bar registers[Rows ? Rows : 1];
  Bar* x_bar = Rows ? registers : x_bar_inout;
  if (Rows)
    for (int j = 0; j < count; ++j) x_bar[j] = x_bar_inout[j];
  for (int sweep = 0; sweep < island.iterations; ++sweep) {
    Bar normal_bar(0);
    const auto leave = [&](int begin, int size, const Bar* s) {
#pragma GCC unroll 16
      for (int c = 0; c < size; ++c) {
        const int r = begin + c;
        steps[r] = s[c];
        x_bar[r] = Bar(0);
        if constexpr (Rows > 0) {
#pragma GCC unroll 16
          for (int j = 0; j < count; ++j)
            if (j < begin || j >= begin + size) x_bar[j] = multiply_add(-s[c], A[r * count + j], x_bar[j]);
        } else {
          const Real* const row = A + std::size_t(r) * count;
          for_others(rows[r], begin, begin + size,
                     [&](int j) { x_bar[j] = multiply_add(-s[c], row[j], x_bar[j]); });
        }
      }
    };
    const auto leave_row = [&](RowKind kind, int r) {
      const Bar s = inverse[r * most_friction_rows] *
                    project_adjoint(kind, bound[r], tape[r], x_bar[r], bound_bar[r], normal_bar);
      leave(r, 1, &s);
    };
    const auto leave_friction = [&](int r, int size) {
      const int n = r - 1;
      const Real* const own = inverse + r * most_friction_rows;
      Bar s[most_friction_rows];
      if (Rows)
        ProjectBlockAdjoint<contact_rows - 1>::run(island.block(r), own, tape[n], slides + r, slides[n],
                                                   x_bar + r, s, bound_bar + r, normal_bar);
      else
        dispatch_block<ProjectBlockAdjoint>(size, island.block(r), own, tape[n], slides + r, slides[n],
                                            x_bar + r, s, bound_bar + r, normal_bar);
      leave(r, size, s);
    };
    if constexpr (Rows > 0) {
#pragma GCC unroll 16
      for (int n = Rows - contact_rows; n >= 0; n -= contact_rows) {
        leave_friction(n + 1, contact_rows - 1);
        leave_row(RowKind::unilateral, n);
      }
    } else {
      for (int end = count, r; end > 0; end = r) {
        const RowKind kind = rows[end - 1].kind;
        r = kind == RowKind::friction ? normal_of<Rows>(rows, end - 1) + 1 : end - 1;
        if (kind == RowKind::friction)
          leave_friction(r, end - r);
        else
          leave_row(kind, r);
      }
    }
    tape -= count;
    slides -= count;
    steps -= count;
  }
  if (Rows)
    for (int j = 0; j < count; ++j) x_bar_inout[j] = x_bar[j];
}

// (4) and b_bar, row by row; `sum` is scratch. The window ends with row l, the last of r's block. Its entry i belongs to row
// (l + 1 + i) mod count; rows after l are from the sweep before.
template <int Rows, class Real, class Bar>
REVOLUTE_NOINLINE void gather_steps(const Island<Real>& island, const Real* tape, const Bar* steps,
                                    Bar* A_bar, Bar* b_bar, Bar* bound_bar, Bar* sum_in) {
  const int count = Rows ? Rows : island.count;
  Bar registers[Rows ? Rows : 1];
  Bar* const sum = Rows ? registers : sum_in;
  Bar diagonal_bar[most_friction_rows];
  for (int r = 0, size = 0, end = 0; r < count; ++r) {
    if (r == end) {
      size = block_rows<Rows>(island.rows, count, r);
      end = r + size;
    }
    Bar* const row = A_bar + std::size_t(r) * count;
    const int later = count - end;  // rows after the block
    const Bar* next_step = steps + r;
    const Real* window = tape + end;
    Bar sum_s(0);
    // places in the window of the coupled rows
    const auto for_places = [&](const auto& visit) {
      if constexpr (Rows > 0) {
#pragma GCC unroll 16
        for (int i = 0; i < Rows; ++i) visit(i);
      } else {
        for_coupled(island.rows[r], [&](int j) { visit(j < end ? j + later : j - end); });
      }
    };
    for_places([&](int i) { sum[i] = row[i < later ? end + i : i - later]; });
    for (int sweep = 0; sweep < island.iterations; ++sweep, window += count) {
      const Bar s = -*(next_step += count);
      sum_s += s;
      for_places([&](int i) { sum[i] = multiply_add(s, window[i], sum[i]); });
    }
    b_bar[r] += sum_s;
    const bool rubs = kind_of<Rows>(island.rows, r) == RowKind::friction;
    if (rubs) diagonal_bar[r - (end - size)] = sum[later + r] - row[r];
    for_places([&](int i) { row[i < later ? end + i : i - later] = sum[i]; });
    if (!rubs || r + 1 < end) continue;
    const int first = end - size;
    if (Rows)
      SoftenBlockAdjoint<contact_rows - 1>::run(
          island.block(first), diagonal_bar, A_bar + std::size_t(first) * count + first, bound_bar + first);
    else
      dispatch_block<SoftenBlockAdjoint>(size, island.block(first), diagonal_bar,
                                         A_bar + std::size_t(first) * count + first, bound_bar + first);
  }
}

// (5), from x_bar at the start; p and q are scratch. x_bar of the one-sided rows becomes q_bar.
template <class Real, class Bar>
REVOLUTE_HD void start_adjoint(const Island<Real>& island, const Real* b, Bar* x_bar, Real* p, Real* q,
                               Bar* p_bar, Bar* A_bar, Bar* b_bar) {
  const int count = island.count;
  start_direction<0>(island, b, p, q);
  for (int r = 0; r < count; ++r) {
    if (island.rows[r].kind != RowKind::unilateral) continue;
    const auto shared = is_shared(b[r], p[r], q[r]);
    const Real inverse = select(shared, Real(1) / select(shared, q[r], Real(1)), Real(0)),
               share = select(shared, -b[r] * inverse, Real(1));
    p_bar[r] = share * x_bar[r];
    b_bar[r] -= (p[r] * inverse) * x_bar[r];
    x_bar[r] = (-p[r] * share * inverse) * x_bar[r];
  }
  for (int r = 0; r < count; ++r) {
    if (island.rows[r].kind != RowKind::unilateral) continue;
    const std::size_t row = std::size_t(r) * count;
    for_coupled(island.rows[r], [&](int j) {
      if (island.rows[j].kind != RowKind::unilateral) return;
      A_bar[row + j] = multiply_add(x_bar[r], p[j], A_bar[row + j]);
      p_bar[r] = multiply_add(x_bar[j], island.A[row + j], p_bar[r]);
    });
    // p = -b/A_rr
    const Bar step =
        select(less(Bar(0), Bar(p[r])), island.inverse[r * most_friction_rows] * p_bar[r], Bar(0));
    b_bar[r] -= step;
    A_bar[row + r] -= p[r] * step;
  }
}

template <int Rows>
struct AdjointIsland {
  template <class Real, class Bar>
  REVOLUTE_HD static void run(int rows, const SolverProblem<Real>& problem, const SolverWorkspace<Real>& at,
                              const int& begin, SolverAdjointWorkspace<Bar>& ws, SolverCotangent<Bar>& bar) {
    const Island<Real> island = island_at(problem, at, begin, rows);
    const std::size_t offset = tape_offset(problem, begin), last = std::size_t(problem.iterations) * rows;
    const Real* const tape = at.tape + offset;
    Bar* const steps = ws.steps + offset;
    Bar *const x_bar = bar.x + begin, *const A_bar = bar.A + problem.rows[begin].A,
               *const b_bar = bar.b + begin;
    sweep_adjoint<Rows>(island, tape + last, at.slides + offset + last, steps + last, x_bar,
                        bar.bound + begin);
    start_adjoint(island, problem.b + begin, x_bar, at.z + begin, at.start + begin, ws.start + begin, A_bar,
                  b_bar);
    gather_steps<Rows>(island, tape, steps, A_bar, b_bar, bar.bound + begin, x_bar);
  }
};

// `at` must come from a recorded solve; its z and start are used up.
template <class Real, class Bar>
REVOLUTE_HD void projected_gauss_seidel_adjoint(const SolverProblem<Real>& problem,
                                                const SolverWorkspace<Real>& at,
                                                SolverAdjointWorkspace<Bar>& ws, SolverCotangent<Bar>& bar) {
  for (int begin = 0; begin < problem.count; begin = problem.rows[begin].end)
    dispatch_island<AdjointIsland>(problem.rows + begin, problem, at, begin, ws, bar);
}

}  // namespace revolute
