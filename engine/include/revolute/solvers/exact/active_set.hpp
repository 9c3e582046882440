// Newton's method on the active set of an island's rows, and the derivatives of the solution.
//
// Sweeps find which rows press, stick and slide. A Newton step then solves the remaining rows: with w = A x + b,
//   free (two-sided, pressed, sticking, box inside):   w_r = 0
//   fixed (open, box at its bound):                    x_r = 0 or +-bound
//   sliding, unit e = x_f/(r m) (friction_block.hpp):  T (m w_f + sigma e) = 0,  e . x_f/m = r,   T = I - e e'     (1)
// Linearized in x, with dT e = -de and k of the size of m A m:
//   K dx = -F:   free A_r;   fixed A_rr;   sliding T (m A_f + sigma/(r m)) + k e (e'/m - dr/dx_n)         (2)
// Rows on the same bodies (four corners of a box) make K singular: a small part of the diagonal is added to free rows, so
// that dx is the smallest, and the steps repeat.
//
// Adjoint (implicit-function theorem on the active set): y = K^-T x_bar, s = y of free rows, m T y of sliding blocks,
//   b_bar -= s,   A_rj_bar -= s_r x_j,   bounds by the derivatives of (1)                      (3)
#pragma once

#include <algorithm>
#include <cmath>

#include "revolute/solvers/exact/island_rows.hpp"
#include "revolute/solvers/exact/lu_factors.hpp"

namespace revolute {

constexpr int exact_newton_steps = 4, active_set_steps = 40, exact_refinements = 3;
constexpr double exact_softness = 1e-10;  // share of `softened`, on the diagonal of free rows in K
constexpr double least_slip = 1e-6;  // relative to the largest entry of b; a closing contact with less sticks

enum class RowState : int { free, fixed, sliding };

struct ActiveSet : IslandRows {
  double *K, *e, *trial;  // e: unit direction of sliding rows
  RowState* state;
  LuFactors factors;

  // With `hold`, sliding rows count as sticking: they may stick once their normal impulse has grown.
  void classify(bool hold = false) {
    for (int r = 0, size; r < n; r += size) {
      size = block(r);
      const RowKind kind = rows[r].kind;
      if (kind != RowKind::friction) {
        const bool clamped =
            kind == RowKind::unilateral ? x[r] <= 0 : kind == RowKind::box && std::fabs(x[r]) >= bound[r];
        state[r] = clamped || !movable(r) ? RowState::fixed : RowState::free;
        continue;
      }
      const double r_now = radius(r, size, x);
      double reach = 0;
      for (int i = r; i < r + size; ++i) {
        e[i] = scale(i, size) > 0 && r_now > 0 ? x[i] / (scale(i, size) * r_now) : 0.0;
        reach += e[i] * e[i];
      }
      const RowState all = r_now <= 0                 ? RowState::fixed
                           : hold || reach < 1 - 1e-9 ? RowState::free
                                                      : RowState::sliding;
      for (int i = r; i < r + size; ++i) {
        state[i] = movable(i) && scale(i, size) > 0 ? all : RowState::fixed;
        e[i] = all == RowState::sliding ? e[i] / std::sqrt(reach) : 0.0;
      }
    }
  }

  // --- the system (2) ----------------------------------------------------------------------------------------------------

  bool slides(int first, int size) const {
    return std::find(state + first, state + first + size, RowState::sliding) != state + first + size;
  }
  // sigma and k of a sliding block; reads w
  double sliding_force(int first, int size) const {
    double sum = 0;
    for (int i = first; i < first + size; ++i) sum -= e[i] * scale(i, size) * w[i];
    return std::max(sum, 0.0);
  }
  double stiffness(int first, int size) const {
    double sum = 0;
    for (int i = first; i < first + size; ++i) sum += scale(i, size) * scale(i, size) * A[i * n + i];
    return sum / size;
  }
  // The number that the softness of a free row is a share of: its diagonal, or that of friction_block.hpp (6).
  double softened(int first, int size, int i) const {
    if (rows[i].kind != RowKind::friction) return A[i * n + i];
    return stiffness(first, size) * size / (scale(i, size) * scale(i, size));
  }
  static double projector(const double* e, int i, int k) { return (i == k) - e[i] * e[k]; }
  // Fills row i of K outside of sliding blocks; `softness` comes onto the diagonal of a free row.
  void fill_plain_row(int i, double softness) {
    double* const row = K + std::size_t(i) * n;
    if (state[i] == RowState::free) {
      std::copy(A + i * n, A + (i + 1) * n, row);
      row[i] += softness;
    } else {
      std::fill(row, row + n, 0.0);
      row[i] = A[i * n + i] > 0 ? A[i * n + i] : 1.0;  // of the size of the entries in other rows
    }
  }
  void factor_K() {
    std::copy(K, K + std::size_t(n) * n, factors.lu);
    factors.n = n;
    factors.factor();
  }
  // Fills K by (2); w must belong to x.
  void linearize() {
    for (int r = 0, size; r < n; r += size) {
      size = block(r);
      for (int i = r; i < r + size; ++i) {
        if (state[i] != RowState::sliding) {
          fill_plain_row(i, exact_softness * softened(r, size, i));
          continue;
        }
        double* const row = K + std::size_t(i) * n;
        std::fill(row, row + n, 0.0);
        const double r_now = radius(r, size, x), sigma = sliding_force(r, size), k = stiffness(r, size);
        for (int c = r; c < r + size; ++c) {
          if (state[c] == RowState::fixed) continue;
          const double T = projector(e, i, c), m = scale(c, size);
          for (int j = 0; j < n; ++j) row[j] += T * m * A[c * n + j];
          row[c] += sigma / r_now * T / m + k * e[i] * e[c] / m;
        }
        row[rows[r].normal] -= k * e[i] * (size <= 2 ? bound[r] : 1.0);
      }
    }
    factor_K();
  }
  // -F of (1)
  void right_side(double* out) const {
    for (int r = 0, size; r < n; r += size) {
      size = block(r);
      for (int i = r; i < r + size; ++i) {
        if (state[i] == RowState::free) {
          out[i] = -w[i];
        } else if (state[i] == RowState::fixed) {
          const double target =
              rows[i].kind == RowKind::box && movable(i) ? std::copysign(bound[i], x[i]) : 0.0;
          out[i] = K[std::size_t(i) * n + i] * (target - x[i]);
        } else {
          out[i] = 0;
          for (int c = r; c < r + size; ++c) out[i] -= projector(e, i, c) * scale(c, size) * w[c];
        }
      }
    }
  }

  // --- Newton's method ---------------------------------------------------------------------------------------------------

  // Corrects a point near the bounds so that it keeps them.
  void keep_bounds(double* at) const {
    for (int r = 0, size; r < n; r += size) {
      size = block(r);
      if (rows[r].kind == RowKind::unilateral) at[r] = std::max(at[r], 0.0);
      if (rows[r].kind == RowKind::box) at[r] = std::clamp(at[r], -bound[r], bound[r]);
      if (rows[r].kind != RowKind::friction) continue;
      const double most = std::max(radius(r, size, at), 0.0);
      if (state[r] == RowState::sliding || reach(r, size, at) > most) put_on_disc(r, size, most, at);
    }
  }
  // Takes Newton steps while they help; returns the violation.
  double newton(double before, bool hold) {
    for (int step = 0; step < exact_newton_steps; ++step) {
      classify(hold);
      velocities(x, w);
      linearize();
      right_side(trial);
      factors.solve(trial);
      for (int r = 0; r < n; ++r) trial[r] += x[r];
      keep_bounds(trial);
      const double after = violation(trial);
      if (!(after < before)) break;
      std::copy(trial, trial + n, x);
      before = after;
    }
    return before;
  }
  // After a Newton step: moves x to where its rows have the states that the updates `next` ask for. Other impulses stay.
  void change_states() {
    velocities(x, w);
    for (int r = 0, size; r < n; r += size) {
      size = block(r);
      if (rows[r].kind != RowKind::friction) {
        const bool was_fixed = state[r] == RowState::fixed;
        if (was_fixed != (next[r] == 0) || rows[r].kind == RowKind::box) x[r] = next[r];
        continue;
      }
      const double r_now = std::max(radius(r, size, x), 0.0);
      bool was_open = true, slid = false;
      double pull = 0;
      for (int i = r; i < r + size; ++i) {
        was_open = was_open && state[i] == RowState::fixed;
        slid = slid || state[i] == RowState::sliding;
        pull += movable(i) ? std::pow(scale(i, size) * w[i], 2) : 0.0;
      }
      if (was_open) {
        // it slips on as it does while open
        pull = std::sqrt(pull);
        for (int i = r; i < r + size; ++i) {
          const double m = scale(i, size);
          x[i] = movable(i) && pull > least_slip * right_size() ? -r_now * m * m * w[i] / pull : 0.0;
        }
      } else if (r_now == 0) {
        std::fill(x + r, x + r + size, 0.0);
      } else if (slid && reach(r, size, next) < r_now * (1 - 1e-9)) {
        std::copy(next + r, next + r + size, x + r);
      } else if (slid || reach(r, size, x) > r_now) {
        put_on_disc(r, size, r_now, x);
      }
    }
  }
  // Newton's steps on the rows of A + R from x, with the states that each step leaves; returns whether they ended at a solution.
  bool solve_active_set() {
    for (int step = 0; step < active_set_steps; ++step) {
      if (step > 0) change_states();
      classify();
      velocities(x, w);
      linearize();
      right_side(trial);
      factors.solve(trial);
      for (int r = 0; r < n; ++r) x[r] += trial[r];
      for (int r = 0, size; r < n; r += size) {
        size = block(r);
        if (slides(r, size)) put_on_disc(r, size, std::max(radius(r, size, x), 0.0), x);
      }
      if (violation(x) <= allowed()) return true;
    }
    return false;
  }

  // --- derivatives at the solution ---------------------------------------------------------------------------------------

  // Solves K y = y or K' y = y in place. Where K has an answer, the effect of the softness is removed: corrections end
  // when the residual no longer falls, because without softness the rows of an aligned face may contradict each other.
  template <class Solve>
  void refine(double* y, bool transposed, const Solve& solve) {
    std::copy(y, y + n, next);
    solve(y);
    double left = 1e300;
    for (int round = 0; round < exact_refinements; ++round) {
      const double before = left;
      left = 0;
      for (int i = 0; i < n; ++i) {
        double sum = next[i];
        for (int j = 0; j < n; ++j) sum -= exact_entry(transposed ? j : i, transposed ? i : j) * y[j];
        trial[i] = sum;
        left = std::max(left, std::fabs(sum));
      }
      if (!(left < 0.5 * before)) return;
      solve(trial);
      for (int i = 0; i < n; ++i) y[i] += trial[i];
    }
  }
  double exact_entry(int i, int j) const {
    return i == j && state[i] == RowState::free ? A[i * n + i] : K[std::size_t(i) * n + j];
  }
  // Fills dx [n] from d(b + A x) at constant x in w_tan [n], and from bound_tan [n].
  void tangent(const double* w_tan, const double* bound_tan, double* dx) {
    for (int r = 0, size; r < n; r += size) {
      size = block(r);
      const bool slides = rows[r].kind == RowKind::friction;
      const double k = slides ? stiffness(r, size) : 0, sigma = slides ? sliding_force(r, size) : 0,
                   r_now = slides ? radius(r, size, x) : 1;
      for (int i = r; i < r + size; ++i) {
        dx[i] = 0;
        if (state[i] == RowState::free) dx[i] = -w_tan[i];
        if (state[i] == RowState::fixed && rows[i].kind == RowKind::box && movable(i))
          dx[i] = std::copysign(K[std::size_t(i) * n + i], x[i]) * bound_tan[i];
        if (state[i] != RowState::sliding) continue;
        for (int c = r; c < r + size; ++c) {
          if (state[c] != RowState::sliding) continue;
          const double T = projector(e, i, c);
          dx[i] -= T * scale(c, size) * w_tan[c];
          if (size > 2)
            dx[i] += ((sigma / r_now * T + k * e[i] * e[c]) * x[c] / (bound[c] * bound[c]) - T * w[c]) *
                     bound_tan[c];
        }
        if (size <= 2) dx[i] += k * e[i] * x[rows[r].normal] * bound_tan[r];
      }
    }
    refine(dx, false, [&](double* at) { factors.solve(at); });
  }
  // The transpose (3), from x_bar in y, which it overwrites: fills s and the cotangents of the bounds.
  void adjoint(double* y, double* s, double* bound_bar) {
    refine(y, true, [&](double* at) { factors.solve_transposed(at); });
    for (int r = 0, size; r < n; r += size) {
      size = block(r);
      double along = 0;
      for (int i = r; i < r + size; ++i) along += e[i] * (state[i] == RowState::sliding ? y[i] : 0.0);
      for (int i = r; i < r + size; ++i) {
        s[i] = state[i] == RowState::free ? y[i] : 0.0;
        bound_bar[i] = 0;
        if (state[i] == RowState::sliding)
          s[i] = scale(i, size) * (y[i] - along * e[i]);
        else if (state[i] == RowState::fixed && rows[i].kind == RowKind::box && movable(i))
          bound_bar[i] = std::copysign(K[std::size_t(i) * n + i], x[i]) * y[i];
      }
      if (rows[r].kind != RowKind::friction || along == 0) continue;
      const double k = stiffness(r, size), sigma = sliding_force(r, size), r_now = radius(r, size, x);
      if (size <= 2) bound_bar[r] = k * along * x[rows[r].normal];
      for (int i = r; i < r + size && size > 2; ++i) {
        if (state[i] != RowState::sliding) continue;
        const double Ty = y[i] - along * e[i];
        bound_bar[i] = (sigma / r_now * Ty + k * along * e[i]) * x[i] / (bound[i] * bound[i]) - Ty * w[i];
      }
    }
  }
};

}  // namespace revolute
