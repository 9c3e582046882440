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

// (3) for a friction block that slides in no environment: computes its s.
template <int N, class Real, class Bar>
REVOLUTE_HD REVOLUTE_INLINE void resting_adjoint(const Real* inverse, const Real& sigma, const Bar* g,
                                                 Bar* s) {
  unrolled<0, N>([&](int i) REVOLUTE_INLINE_LAMBDA {
    Bar sum(0);
    unrolled<0, N>([&](int j) REVOLUTE_INLINE_LAMBDA {
      sum = multiply_add(inverse[i * most_friction_rows + j], g[j], sum);
    });
    s[i] = sum;
  });
  const auto sticks = less(Bar(sigma), Bar(0));
  if (all(sticks)) return;
  unrolled<0, N>([&](int i) REVOLUTE_INLINE_LAMBDA { s[i] = select(sticks, s[i], Bar(0)); });
}
// The same for any friction block. slide_adjoint() gets copies, as slide() does.
template <int N>
struct ProjectBlockAdjoint {
  template <class Real, class Bar>
  REVOLUTE_HD REVOLUTE_INLINE static void run(const FrictionBlock<Real>& block, const Real* inverse,
                                              const Real& normal, const Real* e, const Real& sigma,
                                              const Bar* g, Bar* s, Bar* bound_bar, Bar& normal_bar) {
    resting_adjoint<N>(inverse, sigma, g, s);
    if (!any(less(Real(0), sigma))) return;
    Bar own_g[N], own_s[N];
    copy_numbers<N>(g, own_g);
    copy_numbers<N>(s, own_s);
    normal_bar += slide_adjoint<N>(block, normal, e, sigma, own_g, own_s, bound_bar);
    copy_numbers<N>(own_s, s);
  }
};

// x_bar_j -= A_jb s of the other blocks, for the block of `size` rows from `begin` on.
template <int Rows, class Real, class Bar>
REVOLUTE_HD REVOLUTE_INLINE void leave_block(const Island<Real>& island, int begin, int size, const Bar* s,
                                             Bar* steps, Bar* x_bar) {
  const int count = Rows ? Rows : island.count;
  const auto leave_row = [&](int c) REVOLUTE_INLINE_LAMBDA {
    const int r = begin + c;
    const Real* const row = island.A + std::size_t(r) * count;
    steps[r] = s[c];
    x_bar[r] = Bar(0);
    const auto leave_other = [&](int j) REVOLUTE_INLINE_LAMBDA {
      if (j < begin || j >= begin + size) x_bar[j] = multiply_add(-s[c], row[j], x_bar[j]);
    };
    if constexpr (Rows > 0)
      unrolled<0, Rows>(leave_other);
    else
      for_coupled(island.rows[r], leave_other);
  };
  if constexpr (Rows > 0)
    unrolled<0, contact_rows - 1>([&](int c) REVOLUTE_INLINE_LAMBDA {
      if (c < size) leave_row(c);
    });
  else
    for (int c = 0; c < size; ++c) leave_row(c);
}
// The reverse of update_row().
template <int Rows, class Real, class Bar>
REVOLUTE_HD REVOLUTE_INLINE void leave_row(const Island<Real>& island, RowKind kind, int r, const Real* tape,
                                           Bar* steps, Bar* x_bar, Bar* bound_bar, Bar& normal_bar) {
  const Bar s = island.inverse[r * most_friction_rows] *
                project_adjoint(kind, island.bound[r], tape[r], x_bar[r], bound_bar[r], normal_bar);
  leave_block<Rows>(island, r, 1, &s, steps, x_bar);
}
// The reverse of sweep_contacts().
template <int Rows, class Real, class Bar>
REVOLUTE_HD REVOLUTE_INLINE void leave_contacts(const Island<Real>& island, const Real* tape,
                                                const Real* slides, Bar (&x_bar)[Rows], Bar* steps,
                                                Bar* bound_bar) {
  unrolled<0, Rows / contact_rows>([&](int i) REVOLUTE_INLINE_LAMBDA {
    constexpr int size = contact_rows - 1;
    const int n = Rows - contact_rows * (i + 1), r = n + 1;
    Bar s[size], normal_bar(0);
    ProjectBlockAdjoint<size>::run(island.block(r), island.inverse + r * most_friction_rows, tape[n],
                                   slides + r, slides[n], x_bar + r, s, bound_bar + r, normal_bar);
    leave_block<Rows>(island, r, size, s, steps, x_bar);
    leave_row<Rows>(island, RowKind::unilateral, n, tape, steps, x_bar, bound_bar, normal_bar);
  });
}
// The reverse of sweep_blocks().
template <class Real, class Bar>
REVOLUTE_HD void leave_blocks(const Island<Real>& island, const Real* tape, const Real* slides, Bar* steps,
                              Bar* x_bar, Bar* bound_bar) {
  Bar normal_bar(0);
  for (int end = island.count, r; end > 0; end = r) {
    const RowKind kind = island.rows[end - 1].kind;
    r = kind == RowKind::friction ? normal_of<0>(island.rows, end - 1) + 1 : end - 1;
    if (kind != RowKind::friction) {
      leave_row<0>(island, kind, r, tape, steps, x_bar, bound_bar, normal_bar);
      continue;
    }
    const int n = r - 1, size = end - r;
    Bar s[most_friction_rows];
    dispatch_block<ProjectBlockAdjoint>(size, island.block(r), island.inverse + r * most_friction_rows,
                                        tape[n], slides + r, slides[n], x_bar + r, s, bound_bar + r,
                                        normal_bar);
    leave_block<0>(island, r, size, s, steps, x_bar);
  }
}

// (3) over all sweeps of an island, from the last one back; `steps`, laid out as the tape, gets the s. The `taped` sweeps on the
// tape end with one for all that follow.
template <int Rows, class Real, class Bar>
REVOLUTE_NOINLINE void sweep_adjoint(const Island<Real>& island, int taped, const Real* tape,
                                     const Real* slides, Bar* steps, Bar* x_bar, Bar* bound_bar) {
  const int count = Rows ? Rows : island.count;
  Bar own_x_bar[Rows ? Rows : 1];
  copy_numbers<Rows>(x_bar, own_x_bar);
  tape += std::size_t(taped) * count;
  slides += std::size_t(taped) * count;
  steps += std::size_t(island.iterations) * count;
  for (int sweep = island.iterations; sweep > 0; --sweep) {
    if constexpr (Rows > 0)
      leave_contacts(island, tape, slides, own_x_bar, steps, bound_bar);
    else
      leave_blocks(island, tape, slides, steps, x_bar, bound_bar);
    if (sweep <= taped) {
      tape -= count;
      slides -= count;
    }
    steps -= count;
  }
  copy_numbers<Rows>(own_x_bar, x_bar);
}

// (4) and b_bar, row by row; `sum` is scratch. The window ends with row l, the last of r's block. Its entry i belongs to row
// (l + 1 + i) mod count; rows after l are from the sweep before. The last window on the tape stands for all that follow.
template <int Rows, class Real, class Bar>
REVOLUTE_NOINLINE void gather_steps(const Island<Real>& island, int taped, const Real* tape, const Bar* steps,
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
    const Bar own = row[r];
    for_places([&](int i) { sum[i] = row[i < later ? end + i : i - later]; });
    for (int sweep = 1; sweep <= island.iterations; ++sweep) {
      const Bar s = -*(next_step += count);
      sum_s += s;
      for_places([&](int i) { sum[i] = multiply_add(s, window[i], sum[i]); });
      if (sweep < taped) window += count;
    }
    b_bar[r] += sum_s;
    for_places([&](int i) { row[i < later ? end + i : i - later] = sum[i]; });
    if (kind_of<Rows>(island.rows, r) != RowKind::friction) continue;
    const int first = end - size;
    diagonal_bar[r - first] = row[r] - own;
    if (r + 1 < end) continue;
    if (Rows)
      SoftenBlockAdjoint<contact_rows - 1>::run(
          island.block(first), diagonal_bar, A_bar + std::size_t(first) * count + first, bound_bar + first);
    else
      dispatch_block<SoftenBlockAdjoint>(size, island.block(first), diagonal_bar,
                                         A_bar + std::size_t(first) * count + first, bound_bar + first);
  }
}

// (5), from x_bar at the start; p and q are scratch. x_bar of the one-sided rows becomes q_bar.
template <int Rows, class Real, class Bar>
REVOLUTE_HD void start_adjoint(const Island<Real>& island, const Real* b, Bar* x_bar, Real* p, Real* q,
                               Bar* p_bar, Bar* A_bar, Bar* b_bar) {
  const int count = Rows ? Rows : island.count;
  start_direction<Rows>(island, b, p, q);
  for (int r = 0; r < count; ++r) {
    if (kind_of<Rows>(island.rows, r) != RowKind::unilateral) continue;
    const auto shared = is_shared(b[r], p[r], q[r]);
    const Real inverse = select(shared, Real(1) / select(shared, q[r], Real(1)), Real(0)),
               share = select(shared, -b[r] * inverse, Real(1));
    p_bar[r] = share * x_bar[r];
    b_bar[r] -= (p[r] * inverse) * x_bar[r];
    x_bar[r] = (-p[r] * share * inverse) * x_bar[r];
  }
  for (int r = 0; r < count; ++r) {
    if (kind_of<Rows>(island.rows, r) != RowKind::unilateral) continue;
    const std::size_t row = std::size_t(r) * count;
    for_coupled(island.rows[r], [&](int j) {
      if (kind_of<Rows>(island.rows, j) != RowKind::unilateral) return;
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
    const std::size_t offset = tape_offset(problem, begin);
    const Real* const tape = at.tape + offset;
    const int taped = at.taped[begin];
    Bar* const steps = ws.steps + offset;
    Bar *const x_bar = bar.x + begin, *const A_bar = bar.A + problem.rows[begin].A,
               *const b_bar = bar.b + begin;
    sweep_adjoint<Rows>(island, taped, tape, at.slides + offset, steps, x_bar, bar.bound + begin);
    start_adjoint<Rows>(island, problem.b + begin, x_bar, at.z + begin, at.start + begin, ws.start + begin,
                        A_bar, b_bar);
    gather_steps<Rows>(island, taped, tape, steps, A_bar, b_bar, bar.bound + begin, x_bar);
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
