// Projected Gauss-Seidel: a fixed number of sweeps over the rows of  w = A x + b.
//
// Rows come grouped in islands that do not touch each other; a row's bounds depend on its kind:
//   bilateral: free;  unilateral: 0 <= x (masked where inactive);  box: |x| <= bound;
//   friction: the rows of a contact together, bounded by its normal impulse (friction_block.hpp).
// A block is the friction rows of one contact, or any other row alone; A_bb is its part of A. Every block keeps its value
// without bounds,
//   z_b = -A_bb^-1 (b_b + sum_{j not in b} A_bj x_j),
// which the block's own change does not alter (the diagonal of A includes the regularisation). One update is
//   x_b+ = project(z_b),   z_j -= (A_jj^-1 A_jb) (x_b+ - x_b) for every other block j         (1)
// A row that nothing can move (a planar robot pushed out of its plane: A_rr = 0) keeps x_r = 0, like a masked one.
//
// The start is the same for every order of the rows. Each normal or limit takes its impulse as if it acted alone, scaled down
// when all of them together are too much for its row,
//   p_n = max(0, -b_n/A_nn),   x_n = p_n min(1, -b_n/q_n),   q = A p                           (2)
// Where contacts share a load in many ways (a body between two jaws) the sweeps end near the start, so that equal contacts
// get equal parts. The tape keeps the start and the x_r+ of every update, so that the adjoint can walk back.
//
// The sweeps over an island end when two in a row changed nothing (x_r - x_r+ was +0 everywhere): all later ones would
// repeat the second to the bit, so the tape gets one copy of it for all of them. One unchanged sweep is not enough: adding a
// zero can still turn a z of -0 into +0. So results equal those of all sweeps; the rest of the pack only decides how many are
// computed.
//
// Adjoint of the unconverged result: each update backwards, with g = x_b_bar, then x_b_bar = 0 (docs/adjoint.md section 4):
//   free:     s = A_bb^-1 g,  b_b_bar -= s,  A_bj_bar -= s x_j (x_j+ within the block),  x_j_bar -= A_jb s      (3)
//   friction on its bound: friction_block.hpp (4), (5);   box at +-bound:  bound_bar += +-g
//   unilateral at 0: nothing.
// The s of all sweeps are kept, and A_bar is their product with the tape, formed once:
//   A_rj_bar = - sum over sweeps of s_r x_j;  x_j of this sweep for j up to the end of r's block, else of the one before    (4)
// In an island's tape, these x_j are the last updates up to the end of the block: a window that moves one sweep at a time.
// The remaining x_bar at the start goes through (2): where x_n = -p_n b_n/q_n,
//   p_n_bar = x_n_bar x_n/p_n,   b_n_bar -= x_n_bar p_n/q_n,   q_n_bar = -x_n_bar x_n/q_n,   A_bar += q_bar p',   p_bar += A q_bar      (5)
// At a switching point (a free solution that lies exactly on its bound) the row counts as clamped, in forward derivatives
// as well.
//
// Islands of one to four contacts with sliding friction and nothing else keep x and z (or x_bar) in registers, and branch
// only if some contact slides. The other islands take the same steps in memory.
#pragma once

#include <cstddef>
#include <initializer_list>

#include "revolute/arena.hpp"
#include "revolute/solvers/friction_block.hpp"
#include "revolute/solvers/solver.hpp"

namespace revolute {

constexpr int contact_rows = 3, unrolled_rows = 4 * contact_rows;
constexpr double settled_speed = 1e-3;  // sweeps that leave a larger violation have not settled

// Arrays [count] (start: scratch). Other shapes: scaled, laid out as A, holds (A_jj^-1 A_jr) in row r, 0 within a block;
// inverse [count, most_friction_rows] holds A_bb^-1; tape and slides [iterations + 1, rows] hold each island in turn. For a
// contact that slides, slides holds sigma in the place of its normal and e in the places of its friction rows. At an
// island's first row, sweeps and taped are the numbers of sweeps that were computed, and that are on the tape.
template <class Real>
struct SolverWorkspace {
  Real *x, *z, *start, *inverse, *scaled, *tape, *slides;
  int *sweeps, *taped;

  // Takes all arrays but `scaled`, which grows with the current rows.
  void take(std::size_t capacity, int iterations, Arena& arena) {
    for (Real** array : {&x, &z, &start}) *array = arena.take<Real>(capacity);
    inverse = arena.take<Real>(capacity * most_friction_rows);
    for (Real** array : {&tape, &slides}) *array = arena.take<Real>(capacity * (iterations + 1));
    for (int** array : {&sweeps, &taped}) *array = arena.take<int>(capacity);
  }
};
// Scratch of the adjoint: steps is laid out as the tape, start is [count].
template <class Bar>
struct SolverAdjointWorkspace {
  Bar *steps, *start;

  void take(std::size_t capacity, int iterations, Arena& arena) {
    steps = arena.take<Bar>(capacity * (iterations + 1));
    start = arena.take<Bar>(capacity);
  }
};

// Clamps a row that is a block alone; `normal` is the impulse of the last unilateral row.
template <class Real>
REVOLUTE_HD inline Real project(RowKind kind, const Real& bound, const Real& z, Real& normal) {
  switch (kind) {
    case RowKind::bilateral:
      return z;
    case RowKind::unilateral:
      return normal = maximum(Real(0), z);
    default:
      return clamp_magnitude(z, bound);
  }
}

// The kind of row r of an island. In an unrolled island the compiler knows it.
template <int Rows>
REVOLUTE_HD inline RowKind kind_of(const SolverRow* island, int r) {
  if (Rows) return r % contact_rows == 0 ? RowKind::unilateral : RowKind::friction;
  return island[r].kind;
}
template <int Rows>
REVOLUTE_HD inline int normal_of(const SolverRow* island, int r) {
  return Rows ? r - r % contact_rows : island[r].normal - island->begin;
}
// Number of rows of the block that begins with row r, in an island of `count` rows.
template <int Rows>
REVOLUTE_HD inline int block_rows(const SolverRow* island, int count, int r) {
  if (kind_of<Rows>(island, r) != RowKind::friction) return 1;
  if (Rows) return contact_rows - 1;
  int end = r + 1;
  while (end < count && island[end].kind == RowKind::friction && island[end].normal == island[r].normal)
    ++end;
  return end - r;
}

// One island's arrays, from its first row.
template <class Real>
struct Island {
  const SolverRow* rows;
  int count, iterations;
  const Real *A, *bound, *scaled, *inverse;

  REVOLUTE_HD FrictionBlock<Real> block(int r) const {
    return {A + std::size_t(r) * count + r, bound + r, count};
  }
};

template <int N>
struct ProjectBlock {
  template <class Real>
  REVOLUTE_HD static void run(const FrictionBlock<Real>& block, const Real& normal, const Real* z, Real* next,
                              Real* e, Real& sigma) {
    project_block<N>(block, normal, z, next, e, sigma);
  }
};

// (1) for the block of `size` rows from `begin` on, whose x+ is `next`.
template <int Rows, class Real>
REVOLUTE_HD REVOLUTE_INLINE void move_block(const Island<Real>& island, int begin, int size, const Real* next,
                                            Real* x, Real* z, AllPositiveZero<Real>& changes) {
  const int count = Rows ? Rows : island.count;
  const auto move_row = [&](int c) REVOLUTE_INLINE_LAMBDA {
    const int r = begin + c;
    const Real back = x[r] - next[c];
    const Real* const row = island.scaled + std::size_t(r) * count;
    changes.add(back);
    x[r] = next[c];
    const auto move_other = [&](int j) REVOLUTE_INLINE_LAMBDA {
      if (j < begin || j >= begin + size) z[j] = multiply_add(row[j], back, z[j]);
    };
    if constexpr (Rows > 0)
      unrolled<0, Rows>(move_other);
    else
      for_coupled(island.rows[r], move_other);
  };
  if constexpr (Rows > 0)
    unrolled<0, contact_rows - 1>([&](int c) REVOLUTE_INLINE_LAMBDA {
      if (c < size) move_row(c);
    });
  else
    for (int c = 0; c < size; ++c) move_row(c);
}

// The update of a row that is a block alone.
template <int Rows, class Real>
REVOLUTE_HD REVOLUTE_INLINE void update_row(const Island<Real>& island, RowKind kind, int r, Real* x, Real* z,
                                            Real* tape, AllPositiveZero<Real>& changes) {
  Real ignored(0);
  const Real next = project(kind, island.bound[r], z[r], ignored);
  move_block<Rows>(island, r, 1, &next, x, z, changes);
  if (tape) tape[r] = next;
}
// One sweep over an unrolled island.
template <int Rows, class Real>
REVOLUTE_HD REVOLUTE_INLINE void sweep_contacts(const Island<Real>& island, Real (&x)[Rows], Real (&z)[Rows],
                                                Real* tape, Real* slides, AllPositiveZero<Real>& changes) {
  unrolled<0, Rows / contact_rows>([&](int contact) REVOLUTE_INLINE_LAMBDA {
    constexpr int size = contact_rows - 1;
    const int n = contact_rows * contact, r = n + 1;
    update_row<Rows>(island, RowKind::unilateral, n, x, z, tape, changes);
    Real next[size], unkept[size], sigma;
    project_block<size>(island.block(r), x[n], z + r, next, tape ? slides + r : unkept, sigma);
    if (tape) {
      slides[n] = sigma;
      copy_numbers<size>(next, tape + r);
    }
    move_block<Rows>(island, r, size, next, x, z, changes);
  });
}
// One sweep over any other island.
template <class Real>
REVOLUTE_HD void sweep_blocks(const Island<Real>& island, Real* x, Real* z, Real* tape, Real* slides,
                              AllPositiveZero<Real>& changes) {
  for (int r = 0, size; r < island.count; r += size) {
    size = block_rows<0>(island.rows, island.count, r);
    if (island.rows[r].kind != RowKind::friction) {
      update_row<0>(island, island.rows[r].kind, r, x, z, tape, changes);
      continue;
    }
    const int n = normal_of<0>(island.rows, r);
    Real next[most_friction_rows], unkept[most_friction_rows], sigma;
    dispatch_block<ProjectBlock>(size, island.block(r), x[n], z + r, next, tape ? slides + r : unkept, sigma);
    move_block<0>(island, r, size, next, x, z, changes);
    if (tape) slides[n] = sigma;
    for (int i = r; tape && i < r + size; ++i) tape[i] = x[i];
  }
}

// All sweeps over an island; returns the number of those that were computed. `tape` and `slides` may be null. These are
// separate functions so that every number of an unrolled island is a constant offset from one register: otherwise g++ 12 keeps
// a register or stack slot for each address.
template <int Rows, class Real>
REVOLUTE_NOINLINE int sweep(const Island<Real>& island, Real* x, Real* z, Real* tape, Real* slides) {
  const int count = Rows ? Rows : island.count;
  Real own_x[Rows ? Rows : 1], own_z[Rows ? Rows : 1];
  copy_numbers<Rows>(x, own_x);
  copy_numbers<Rows>(z, own_z);
  for (int r = 0; tape && r < count; ++r) tape[r] = x[r];
  int sweep = 0;
  for (int quiet = 0; sweep < island.iterations && quiet < 2; ++sweep) {
    if (tape) {
      tape += count;
      slides += count;
    }
    AllPositiveZero<Real> changes;
    if constexpr (Rows > 0)
      sweep_contacts(island, own_x, own_z, tape, slides, changes);
    else
      sweep_blocks(island, x, z, tape, slides, changes);
    quiet = changes.holds() ? quiet + 1 : 0;
  }
  copy_numbers<Rows>(own_x, x);
  copy_numbers<Rows>(own_z, z);
  return sweep;
}
// The end of the tape if sweeps were left out: one more like the last, which stands for all of them. Returns the sweeps on the tape.
template <class Real>
REVOLUTE_HD int end_tape(const Island<Real>& island, int sweeps, Real* tape, Real* slides) {
  if (sweeps == island.iterations) return sweeps;
  const std::size_t last = std::size_t(sweeps) * island.count, next = last + island.count;
  for (int r = 0; r < island.count; ++r) {
    tape[next + r] = tape[last + r];
    slides[next + r] = slides[last + r];
  }
  return sweeps + 1;
}

// Calls Task<Rows>::run with the number of rows of an island to unroll, or with 0.
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
  const std::size_t A = problem.rows[begin].A;
  return {problem.rows + begin,
          rows,
          problem.iterations,
          problem.A + A,
          problem.bound + begin,
          ws.scaled + A,
          ws.inverse + std::size_t(begin) * most_friction_rows};
}
// The place at which an island's part of the tape begins.
template <class Real>
REVOLUTE_HD inline std::size_t tape_offset(const SolverProblem<Real>& problem, int begin) {
  return (std::size_t(problem.iterations) + 1) * begin;
}

// (2): p and q = A p of the one-sided rows; both 0 for the others.
template <int Rows, class Real>
REVOLUTE_HD void start_direction(const Island<Real>& island, const Real* b, Real* p, Real* q) {
  const int count = Rows ? Rows : island.count;
#pragma GCC unroll 16
  for (int r = 0; r < count; ++r)
    p[r] = kind_of<Rows>(island.rows, r) == RowKind::unilateral
               ? maximum(Real(0), -(b[r] * island.inverse[r * most_friction_rows]))
               : Real(0);
#pragma GCC unroll 16
  for (int r = 0; r < count; ++r) {
    Real sum(0);
    if (kind_of<Rows>(island.rows, r) == RowKind::unilateral) {
      const auto add = [&](int j) {
        if (kind_of<Rows>(island.rows, j) == RowKind::unilateral)
          sum = multiply_add(island.A[std::size_t(r) * count + j], p[j], sum);
      };
      if constexpr (Rows > 0) {
#pragma GCC unroll 16
        for (int j = 0; j < Rows; ++j) add(j);
      } else {
        for_coupled(island.rows[r], add);
      }
    }
    q[r] = sum;
  }
}
// Whether (2) reduces p.
template <class Real>
REVOLUTE_HD inline MaskOf<Real> is_shared(const Real& b, const Real& p, const Real& q) {
  return less(Real(0), p) & less(-b, q);
}
template <class Real>
REVOLUTE_HD inline Real start_of_row(const Real& b, const Real& p, const Real& q) {
  const auto shared = is_shared(b, p, q);
  return p * select(shared, -b / select(shared, q, Real(1)), Real(1));
}

// 1/A_rr, or 0 if the row stays at zero.
template <class Real>
REVOLUTE_HD inline Real inverse_diagonal(RowKind kind, const Real& diagonal, const Real& bound) {
  auto movable = less(Real(least_mobility), diagonal);
  if (kind == RowKind::unilateral) movable = movable & less(Real(0), bound);
  return select(movable, Real(1) / select(movable, diagonal, Real(1)), Real(0));
}
// Computes A_bb^-1 of the block of `size` rows that begins with row r, and its columns of (A_jj^-1 A_jr).
template <int Rows, int Size, class Real>
REVOLUTE_HD inline void scale_block(const Island<Real>& island, int r, const Real* inverse, Real* scaled) {
  const std::size_t count = Rows ? Rows : island.count;
  const auto scale = [&](int j) {
    const bool inside = j >= r && j < r + Size;
#pragma GCC unroll 8
    for (int c = 0; c < Size; ++c) {
      Real sum(0);
#pragma GCC unroll 8
      for (int d = 0; d < Size; ++d)
        sum = multiply_add(inverse[c * most_friction_rows + d], island.A[j * count + r + d], sum);
      scaled[j * count + r + c] = inside ? Real(0) : sum;
    }
  };
  if constexpr (Rows > 0)
    for (int j = 0; j < Rows; ++j) scale(j);
  else
    for_coupled(island.rows[r], scale);
}
template <int Size>
struct ScaleFriction {
  template <class Real>
  REVOLUTE_HD static void run(const Island<Real>& island, int r, Real* inverse, Real* scaled) {
    invert_block<Size>(island.block(r), inverse);
    scale_block<0, Size>(island, r, inverse, scaled);
  }
};
template <int Rows, class Real>
REVOLUTE_HD inline void scale_row(const Island<Real>& island, int r, Real* inverse, Real* scaled) {
  const int count = Rows ? Rows : island.count;
  inverse[0] =
      inverse_diagonal(kind_of<Rows>(island.rows, r), island.A[std::size_t(r) * count + r], island.bound[r]);
  scale_block<Rows, 1>(island, r, inverse, scaled);
}
// Computes A_bb^-1 of all blocks, and (A_jj^-1 A_jr).
template <int Rows, class Real>
REVOLUTE_HD void scale_island(const Island<Real>& island, Real* inverse, Real* scaled) {
  if constexpr (Rows > 0) {
    for (int n = 0; n < Rows; n += contact_rows) {
      Real* const own = inverse + n * most_friction_rows;
      scale_row<Rows>(island, n, own, scaled);
      invert_block<contact_rows - 1>(island.block(n + 1), own + most_friction_rows);
      scale_block<Rows, contact_rows - 1>(island, n + 1, own + most_friction_rows, scaled);
    }
  } else {
    for (int r = 0, size; r < island.count; r += size) {
      size = block_rows<0>(island.rows, island.count, r);
      Real* const own = inverse + r * most_friction_rows;
      if (island.rows[r].kind == RowKind::friction)
        dispatch_block<ScaleFriction>(size, island, r, own, scaled);
      else
        scale_row<0>(island, r, own, scaled);
    }
  }
}

template <int Rows>
struct ForwardIsland {
  template <class Real>
  REVOLUTE_HD static void run(int rows, const SolverProblem<Real>& problem, const int& begin,
                              SolverWorkspace<Real>& ws, const bool& record) {
    const Island<Real> island = island_at(problem, ws, begin, rows);
    const Real* const b = problem.b + begin;
    Real *const x = ws.x + begin, *const z = ws.z + begin;
    scale_island<Rows>(island, ws.inverse + std::size_t(begin) * most_friction_rows,
                       ws.scaled + problem.rows[begin].A);
    start_direction<Rows>(island, b, x, z);
    for (int r = 0; r < rows; ++r) x[r] = start_of_row(b[r], x[r], z[r]);
    for (int r = 0, size; r < rows; r += size) {
      size = block_rows<Rows>(island.rows, rows, r);
      for (int c = 0; c < size; ++c) {
        Real sum(0);
        for (int d = 0; d < size; ++d)
          sum = multiply_add(island.inverse[(r + c) * most_friction_rows + d], b[r + d], sum);
        z[r + c] = -sum;
      }
    }
    for (int r = 0; r < rows; ++r)
      if (kind_of<Rows>(island.rows, r) == RowKind::unilateral)
        for_coupled(island.rows[r], [&](int j) {
          z[j] = multiply_add(island.scaled[std::size_t(r) * rows + j], -x[r], z[j]);
        });
    const std::size_t tape = tape_offset(problem, begin);
    ws.sweeps[begin] =
        sweep<Rows>(island, x, z, record ? ws.tape + tape : nullptr, record ? ws.slides + tape : nullptr);
    if (record) ws.taped[begin] = end_tape(island, ws.sweeps[begin], ws.tape + tape, ws.slides + tape);
  }
};

// Fills x, and with `record` also the tape.
template <class Real>
REVOLUTE_HD void projected_gauss_seidel(const SolverProblem<Real>& problem, SolverWorkspace<Real>& ws,
                                        bool record) {
  for (int begin = 0; begin < problem.count; begin = problem.rows[begin].end)
    dispatch_island<ForwardIsland>(problem.rows + begin, problem, begin, ws, record);
}

// The violation after the sweeps: A_bb (project(z_b) - x_b) at the final x and z.
template <class Real>
REVOLUTE_HD SolverReport<Real> sweeps_report(const SolverProblem<Real>& problem,
                                             const SolverWorkspace<Real>& ws) {
  Real largest(0);
  for (int begin = 0; begin < problem.count; begin = problem.rows[begin].end) {
    if (ws.sweeps[begin] < problem.iterations) continue;  // the last sweep changed nothing
    const int count = problem.rows[begin].end - begin;
    const Island<Real> island = island_at(problem, ws, begin, count);
    const Real *const x = ws.x + begin, *const z = ws.z + begin;
    for (int r = 0, size; r < count; r += size) {
      size = block_rows<0>(island.rows, count, r);
      Real next[most_friction_rows], e[most_friction_rows], sigma, ignored(0);
      if (island.rows[r].kind == RowKind::friction)
        dispatch_block<ProjectBlock>(size, island.block(r), x[normal_of<0>(island.rows, r)], z + r, next, e,
                                     sigma);
      else
        next[0] = project(island.rows[r].kind, island.bound[r], z[r], ignored);
      for (int i = 0; i < size; ++i) {
        Real speed(0);
        for (int j = 0; j < size; ++j)
          speed += island.A[std::size_t(r + i) * count + r + j] * (next[j] - x[r + j]);
        largest = maximum(largest, abs(speed));
      }
    }
  }
  return {largest, less_equal(largest, Real(settled_speed))};
}

}  // namespace revolute
