// The converged solution of one island of one environment, and the linear system of its derivatives.
//
// Sweeps (projected_gauss_seidel.hpp) find which rows press, stick and slide. A Newton step then solves the remaining rows:
// with w = A x + b,
//   free (two-sided, pressed, sticking, box inside):   w_r = 0
//   fixed (open, box at its bound):                    x_r = 0 or +-bound
//   sliding, unit e = x_f/(r m) (friction_block.hpp):  T (m w_f + sigma e) = 0,  e . x_f/m = r,   T = I - e e'     (1)
// Linearized in x, with dT e = -de and k of the size of m A m:
//   K dx = -F:   free A_r;   fixed A_rr;   sliding T (m A_f + sigma/(r m)) + k e (e'/m - dr/dx_n)         (2)
// A step that makes the violation larger is rejected; a step in which all contacts stick, or more sweeps, take its place.
// Rows on the same bodies (four corners of a box) make K singular: a small part of the diagonal is added to free rows, so
// that dx is the smallest, and the steps repeat.
// Such rows need not have a solution. The corners of a face that turns as it lands are at different heights, so they cannot
// all stick: slips of 1e-9 m/s remain, and sweeps build up stress between the corners without end. Islands that have not
// converged after some rounds get a little compliance R, a share of the diagonal: the rows of A + R always have a solution.
// With the radii r of the friction discs held, it is the minimum of a smooth convex function,
//   P(x) = 1/2 x' A x + s(w),   w = A x + b,   -ds/dw = law(w): -w/R within the bounds             (4)
// which Newton's method with a line search finds; then r follows from the new normal impulses, until it stays.
// A face that slides on more contacts than it needs has many solutions as well: other shares of its load have other friction,
// and the bodies move otherwise. Then K y = (arbitrary numbers) has an answer y whose effect A y is huge. Compliance decides
// there too. As R -> 0 it chooses the normal impulses of least x' R x: on one face, a pressure that is linear in the place.
// Newton's steps with A + R, which change the states of rows by the next update of each block, find it from the sweeps'
// solution, or else from that of (4).
// The violation is the largest change of velocity that one more update of a block would make, A_bb (project(z_b) - x_b).
//
// Adjoint (implicit-function theorem on the active set): y = K^-T x_bar, s = y of free rows, m T y of sliding blocks,
//   b_bar -= s,   A_rj_bar -= s_r x_j,   bounds by the derivatives of (1)                      (3)
// With compliance the system is that of A + R, and R, which decides on shares of a load, has a derivative as well:
//   R_r = c A_rr,   of friction rows R_i = c sum_j m_j^2 A_jj/m_i^2,   R_r_bar = -s_r x_r           (5)
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "revolute/solvers/projected_gauss_seidel.hpp"

namespace revolute {

constexpr int exact_rounds = 60, exact_sweeps = 10, exact_newton_steps = 4;
constexpr double exact_tolerance = 1e-12;  // of the violation, relative to the largest entry of b
constexpr double exact_settled = 1e3;      // a violation this many times the allowed one has not settled
constexpr double exact_rounding = 1e-14;   // relative to the largest A_rr x_r
constexpr double exact_softness = 1e-10;   // share of `softened`, on the diagonal of free rows in K
constexpr int exact_refinements = 3;
constexpr double redundant_effect = 1e6;  // the A y, for K y of size 1, above which impulses are not unique
// Compliance as a share of `softened`; what is left of (4) and of the radii, relative to the largest entry of b; rounds before
// (4) is tried, its steps for the radii and the impulses, and the share of a change of the radii that is taken after some steps.
constexpr double compliance_share = 1e-6, compliant_tolerance = 1e-8, radius_share = 0.2;
constexpr int compliant_after = 6, radius_steps = 200, impulse_steps = 100, whole_radius_steps = 8;
constexpr int slope_steps = 40, active_set_steps = 40;
// Relative to the largest entry of b: the speed up to which an open contact may press when the load is shared otherwise, and
// the slip below which a contact that closes sticks.
constexpr double weakly_open = 10 * compliance_share, least_slip = 1e-6;
constexpr double slope_tolerance = 1e-6;

enum class RowState : int { free, fixed, sliding };

// LU factors with partial pivoting. Zeros are skipped, so a chain of bodies costs only its band.
struct LuFactors {
  int n;
  double* lu;
  int *pivot, *last;  // last: last nonzero entry of a row of U

  void factor() {
    for (int k = 0; k < n; ++k) {
      pivot[k] = k;
      for (int i = k + 1; i < n; ++i)
        if (std::fabs(lu[i * n + k]) > std::fabs(lu[pivot[k] * n + k])) pivot[k] = i;
      if (pivot[k] != k) std::swap_ranges(lu + k * n, lu + (k + 1) * n, lu + pivot[k] * n);
      last[k] = n - 1;
      while (last[k] > k && lu[k * n + last[k]] == 0) --last[k];
      if (lu[k * n + k] == 0) lu[k * n + k] = 1;
      const double inverse = 1 / lu[k * n + k];
      for (int i = k + 1; i < n; ++i) {
        if (lu[i * n + k] == 0) continue;
        const double factor = lu[i * n + k] *= inverse;
        for (int j = k + 1; j <= last[k]; ++j) lu[i * n + j] -= factor * lu[k * n + j];
      }
    }
  }
  void solve(double* x) const {
    for (int k = 0; k < n; ++k) std::swap(x[k], x[pivot[k]]);
    for (int i = 1; i < n; ++i)
      for (int k = 0; k < i; ++k) x[i] -= lu[i * n + k] * x[k];
    for (int i = n - 1; i >= 0; --i) {
      for (int k = i + 1; k <= last[i]; ++k) x[i] -= lu[i * n + k] * x[k];
      x[i] /= lu[i * n + i];
    }
  }
  void solve_transposed(double* x) const {
    for (int i = 0; i < n; ++i) {
      x[i] /= lu[i * n + i];
      for (int k = i + 1; k <= last[i]; ++k) x[k] -= lu[i * n + k] * x[i];
    }
    for (int i = n - 1; i > 0; --i)
      for (int k = 0; k < i; ++k) x[k] -= lu[i * n + k] * x[i];
    for (int k = n - 1; k >= 0; --k) std::swap(x[k], x[pivot[k]]);
  }
};

// One island of one environment in double, with scratch. Arrays are [n] and [n, n].
struct ExactIsland {
  int n;
  SolverRow* rows;  // numbered as one island that begins at 0
  double *A, *b, *bound, *x;
  double *K, *e, *w, *next, *trial;    // e: unit direction of sliding rows
  double *R, *radii, *direction, *Ad;  // of (4); the radius of a friction block at its first row
  double* diagonal;                    // of A without R
  RowState* state;
  bool compliant = false;  // whether A holds A + R
  bool settled = false;    // whether x solves its rows, and compliance has decided where it must
  LuFactors factors;
  SolverWorkspace<double> sweeps;  // without tape

  Island<double> island(int iterations) const {
    return {rows, n, iterations, A, bound, sweeps.scaled, sweeps.inverse};
  }
  int block(int r) const { return block_rows<0>(rows, n, r); }
  double scale(int r, int size) const { return size <= 2 ? 1.0 : bound[r]; }
  double radius(int first, int size, const double* at) const {
    const double normal = at[rows[first].normal];
    return size <= 2 ? bound[first] * normal : normal;
  }
  void velocities(const double* at, double* out) const {
    for (int r = 0; r < n; ++r) {
      out[r] = b[r];
      for (int j = 0; j < n; ++j) out[r] += A[r * n + j] * at[j];
    }
  }

  // --- sweeps ------------------------------------------------------------------------------------------------------------

  void invert_blocks() {
    // `movable` reads whole rows, but a block fills only its own entries
    std::fill(sweeps.inverse, sweeps.inverse + std::size_t(n) * most_friction_rows, 0.0);
    scale_island<0>(island(0), sweeps.inverse, sweeps.scaled);
  }
  void prepare() {
    invert_blocks();
    start_direction<0>(island(0), b, x, sweeps.z);
    for (int r = 0; r < n; ++r) x[r] = start_of_row(b[r], x[r], sweeps.z[r]);
  }
  // Fills z of every block: its solution without bounds while the other blocks keep the values of `at`.
  void relax(const double* at) {
    velocities(at, w);
    for (int r = 0, size; r < n; r += size) {
      size = block(r);
      for (int c = 0; c < size; ++c) {
        double change = 0;
        for (int d = 0; d < size; ++d) change += sweeps.inverse[(r + c) * most_friction_rows + d] * w[r + d];
        sweeps.z[r + c] = movable(r + c) ? at[r + c] - change : 0.0;
      }
    }
  }
  bool movable(int r) const {
    for (int d = 0; d < most_friction_rows; ++d)
      if (sweeps.inverse[r * most_friction_rows + d] != 0) return true;
    return false;
  }
  void sweep_on(int count) {
    relax(x);
    sweep<0>(island(count), x, sweeps.z, static_cast<double*>(nullptr), static_cast<double*>(nullptr));
  }
  // Writes one more update of each block, taken alone, into `next`, and returns the violation.
  double violation(const double* at) {
    relax(at);
    double largest = 0;
    for (int r = 0, size; r < n; r += size) {
      size = block(r);
      double normal = rows[r].kind == RowKind::friction ? at[rows[r].normal] : 0.0;
      double unit[most_friction_rows], sigma;
      if (rows[r].kind == RowKind::friction)
        dispatch_block<ProjectBlock>(size, island(0).block(r), normal, sweeps.z + r, next + r, unit, sigma);
      else
        next[r] = project(rows[r].kind, bound[r], sweeps.z[r], normal);
      for (int i = r; i < r + size; ++i) {
        double speed = 0;
        for (int j = r; j < r + size; ++j) speed += A[i * n + j] * (next[j] - at[j]);
        largest = std::max(largest, std::fabs(speed));
      }
    }
    return largest;
  }

  // --- Newton ------------------------------------------------------------------------------------------------------------

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

  // The only entry of K in the row of what is fixed: of the size of other rows.
  double fixed_entry(int i) const { return A[i * n + i] > 0 ? A[i * n + i] : 1.0; }
  void factor_K() {
    std::copy(K, K + std::size_t(n) * n, factors.lu);
    factors.n = n;
    factors.factor();
  }

  // Fills K by (2); w must belong to x.
  void linearize() {
    std::fill(K, K + std::size_t(n) * n, 0.0);
    for (int r = 0, size; r < n; r += size) {
      size = block(r);
      for (int i = r; i < r + size; ++i) {
        double* const row = K + std::size_t(i) * n;
        if (state[i] == RowState::fixed) {
          row[i] = fixed_entry(i);
        } else if (state[i] == RowState::free) {
          std::copy(A + i * n, A + (i + 1) * n, row);
          row[i] += exact_softness * softened(r, size, i);
        } else {
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
  // The length of a friction block's impulses at `at`, measured as its radius.
  double reach(int first, int size, const double* at) const {
    double sum = 0;
    for (int i = first; i < first + size; ++i) {
      const double m = scale(i, size);
      sum += m > 0 ? at[i] * at[i] / (m * m) : 0.0;
    }
    return std::sqrt(sum);
  }
  void put_on_disc(int first, int size, double r_now, double* at) const {
    const double length = reach(first, size, at);
    for (int i = first; i < first + size; ++i) at[i] = length > 0 ? at[i] * (r_now / length) : 0.0;
  }
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

  double right_size() const {
    double largest = 0;
    for (int r = 0; r < n; ++r) largest = std::max(largest, std::fabs(b[r]));
    return largest;
  }
  // The violation that counts as converged: a share of the right side, and the rounding of A x.
  double allowed() const {
    double rounding = 0;
    for (int r = 0; r < n; ++r) rounding = std::max(rounding, A[r * n + r] * std::fabs(x[r]));
    return exact_tolerance * right_size() + exact_rounding * rounding;
  }

  // --- compliance ----------------------------------------------------------------------------------------------------------

  // Fills R, zero for rows that stay at zero.
  void find_compliance() {
    for (int r = 0, size; r < n; r += size) {
      size = block(r);
      for (int i = r; i < r + size; ++i)
        R[i] = movable(i) && scale(i, size) > 0 ? compliance_share * softened(r, size, i) : 0.0;
    }
  }
  void add_compliance() {
    for (int i = 0; i < n; ++i) {
      diagonal[i] = A[std::size_t(i) * n + i];
      A[std::size_t(i) * n + i] += R[i];
    }
    compliant = true;
    invert_blocks();
  }
  void remove_compliance() {
    for (int i = 0; i < n; ++i) A[std::size_t(i) * n + i] = diagonal[i];
    compliant = false;
    invert_blocks();
  }
  // The impulses -ds/dw of (4); sets the states and e.
  void law(const double* velocity, double* out) {
    for (int r = 0, size; r < n; r += size) {
      size = block(r);
      const RowKind kind = rows[r].kind;
      if (kind != RowKind::friction) {
        const double wanted = R[r] > 0 ? -velocity[r] / R[r] : 0.0;
        const double least = kind == RowKind::unilateral ? 0.0
                             : kind == RowKind::box      ? -bound[r]
                                                         : wanted,
                     most = kind == RowKind::box ? bound[r] : wanted;
        out[r] = std::max(least, std::min(wanted, most));
        state[r] = R[r] > 0 && out[r] == wanted ? RowState::free : RowState::fixed;
        continue;
      }
      double pull = 0, softness = 0;
      for (int i = r; i < r + size; ++i) {
        if (R[i] == 0) continue;
        const double m = scale(i, size);
        pull += m * m * velocity[i] * velocity[i];
        softness = m * m * R[i];
      }
      pull = std::sqrt(pull);
      const bool slides = pull > radii[r] * softness;
      const RowState all = radii[r] <= 0 ? RowState::fixed : slides ? RowState::sliding : RowState::free;
      for (int i = r; i < r + size; ++i) {
        const double m = scale(i, size);
        state[i] = R[i] > 0 ? all : RowState::fixed;
        e[i] = state[i] == RowState::sliding ? -m * velocity[i] / pull : 0.0;
        out[i] = state[i] == RowState::fixed  ? 0.0
                 : state[i] == RowState::free ? -velocity[i] / R[i]
                                              : radii[r] * m * e[i];
      }
    }
  }
  // Sets the states and e at a solution x of A + R: a row sticks if the velocity b + A x that compliance leaves asks for no
  // more than its bound. (Its impulse alone does not tell: on the disc it may stick or slide.)
  void classify_compliant() {
    velocities(x, w);
    for (int r = 0, size; r < n; r += size) {
      size = block(r);
      if (rows[r].kind == RowKind::friction) radii[r] = std::max(radius(r, size, x), 0.0);
      for (int i = r; i < r + size; ++i) trial[i] = w[i] - R[i] * x[i];
    }
    law(trial, next);
  }
  // Fills `trial` with the impulses at which (4), linearized at x, is least; w and the states must belong to x, `next` to law(w).
  void compliant_target() {
    std::fill(K, K + std::size_t(n) * n, 0.0);
    for (int r = 0, size; r < n; r += size) {
      size = block(r);
      for (int i = r; i < r + size; ++i) {
        double* const row = K + std::size_t(i) * n;
        if (state[i] == RowState::fixed) {
          row[i] = fixed_entry(i);
          trial[i] = row[i] * next[i];
        } else if (state[i] == RowState::free) {
          std::copy(A + i * n, A + (i + 1) * n, row);
          row[i] += R[i];
          trial[i] = -b[i];
        } else {
          const double m = scale(i, size);
          double pull = 0;
          for (int c = r; c < r + size; ++c) pull -= e[c] * scale(c, size) * w[c];
          for (int c = r; c < r + size; ++c) {
            if (state[c] == RowState::fixed) continue;
            const double weight = projector(e, i, c) * scale(c, size) / m;
            for (int j = 0; j < n; ++j) row[j] += weight * A[c * n + j];
          }
          const double turn = pull / (radii[r] * m * m);
          trial[i] = turn * next[i];
          for (int j = 0; j < n; ++j) trial[i] += row[j] * x[j];
          row[i] += turn;
        }
      }
    }
    factor_K();
    factors.solve(trial);
  }
  // dP/d alpha along `direction`, which changes w by Ad; uses `trial` and `next`
  double slope(double alpha) {
    for (int i = 0; i < n; ++i) trial[i] = w[i] + alpha * Ad[i];
    law(trial, next);
    double sum = 0;
    for (int i = 0; i < n; ++i) sum += Ad[i] * (x[i] + alpha * direction[i] - next[i]);
    return sum;
  }
  // The step in 0 ... 1 at which the slope vanishes, by false position; 1 if P still falls there.
  double least_along() {
    const double at_start = slope(0), small = slope_tolerance * std::fabs(at_start);
    double low = 0, at_low = at_start, high = 1, at_high = slope(1), alpha = 1;
    if (!(at_start < 0) || at_high <= small) return 1;
    for (int step = 0; step < slope_steps; ++step) {
      const double guess = low - at_low * (high - low) / (at_high - at_low), margin = 0.02 * (high - low);
      alpha = std::clamp(guess, low + margin, high - margin);
      const double there = slope(alpha);
      if (std::fabs(there) <= small) break;
      (there > 0 ? high : low) = alpha;
      (there > 0 ? at_high : at_low) = there;
    }
    return alpha;
  }
  // Finds the minimum of (4) from x; returns the largest A_ii (x - law(w))_i that is left.
  double solve_convex(double tolerance) {
    double left = 0;
    for (int step = 0; step < impulse_steps; ++step) {
      velocities(x, w);
      law(w, next);
      left = 0;
      for (int i = 0; i < n; ++i) left = std::max(left, A[i * n + i] * std::fabs(x[i] - next[i]));
      if (step > 0 && !(left > tolerance)) break;
      compliant_target();
      for (int i = 0; i < n; ++i) direction[i] = trial[i] - x[i];
      for (int i = 0; i < n; ++i) {
        Ad[i] = 0;
        for (int j = 0; j < n; ++j) Ad[i] += A[i * n + j] * direction[j];
      }
      const double alpha = least_along();
      for (int i = 0; i < n; ++i) x[i] += alpha * direction[i];
    }
    return left;
  }
  // Fills x with the solution of the rows of A + R; if there is none within reach, returns false and restores x.
  bool solve_with_compliance() {
    std::copy(x, x + n, sweeps.start);
    const double tolerance = compliant_tolerance * right_size();
    for (int r = 0, size; r < n; r += size) {
      size = block(r);
      if (rows[r].kind == RowKind::friction) radii[r] = std::max(radius(r, size, x), 0.0);
    }
    for (int step = 0; step < radius_steps; ++step) {
      double left = solve_convex(tolerance);
      std::copy(next, next + n, x);
      for (int r = 0, size; r < n; r += size) {
        size = block(r);
        if (rows[r].kind != RowKind::friction) continue;
        const double wanted = std::max(radius(r, size, x), 0.0);
        for (int i = r; i < r + size; ++i) {
          const double m = scale(i, size);
          left = std::max(left, A[i * n + i] * m * std::fabs(wanted - radii[r]));
          // on the disc of the new normal impulse, so that it counts as sliding
          if (state[i] == RowState::sliding) x[i] = wanted * m * e[i];
        }
        radii[r] += (step < whole_radius_steps ? 1.0 : radius_share) * (wanted - radii[r]);
      }
      if (left <= tolerance) return true;
    }
    std::copy(sweeps.start, sweeps.start + n, x);
    return false;
  }

  // Whether other solutions move the bodies otherwise; of a solution x of A.
  bool is_redundant() {
    classify();
    if (std::none_of(state, state + n, [](RowState at) { return at == RowState::sliding; })) return false;
    velocities(x, w);
    const double weak = weakly_open * right_size();
    for (int r = 0; r < n; ++r)
      if (rows[r].kind == RowKind::unilateral && state[r] == RowState::fixed && movable(r) && w[r] < weak)
        state[r] = RowState::free;
    linearize();
    // numbers from -1/2 to 1/2 without a pattern that a null vector could have
    std::uint32_t bits = 1;
    for (int r = 0; r < n; ++r) {
      bits = bits * 1664525u + 1013904223u;
      trial[r] = bits / 4294967296.0 - 0.5;
    }
    factors.solve(trial);
    double largest = 0;
    for (int r = 0; r < n; ++r) {
      double speed = 0;
      for (int j = 0; j < n; ++j) speed += A[std::size_t(r) * n + j] * trial[j];
      largest = std::max(largest, std::fabs(speed));
    }
    return largest > redundant_effect;
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
        if (std::find(state + r, state + r + size, RowState::sliding) != state + r + size)
          put_on_disc(r, size, std::max(radius(r, size, x), 0.0), x);
      }
      if (violation(x) <= allowed()) return true;
    }
    return false;
  }
  // Lets compliance decide, from x. If it finds no solution, returns false and restores x.
  bool comply() {
    std::copy(x, x + n, sweeps.start);
    find_compliance();
    add_compliance();
    if (solve_active_set()) return true;
    remove_compliance();
    std::copy(sweeps.start, sweeps.start + n, x);
    if (!solve_with_compliance()) return false;
    add_compliance();
    std::copy(x, x + n, sweeps.start);
    if (!solve_active_set()) std::copy(sweeps.start, sweeps.start + n, x);
    return true;
  }

  // Rows of the same direction (both ends of a lying rod along it) can hold each other at the bounds of friction though nothing
  // slips. Their impulses become the smallest that hold, if these are a solution.
  void relieve_stress() {
    classify();
    velocities(x, w);
    std::copy(x, x + n, sweeps.start);
    const double still = exact_settled * allowed();
    bool any = false;
    for (int r = 0, size; r < n; r += size) {
      size = block(r);
      if (rows[r].kind != RowKind::friction) continue;
      bool slides = false, slips = false;
      for (int i = r; i < r + size; ++i) {
        slides = slides || state[i] == RowState::sliding;
        slips = slips || std::fabs(w[i]) > still;
      }
      if (!slides || slips) continue;
      std::fill(x + r, x + r + size, 0.0);
      any = true;
    }
    if (any && newton(1e300, true) > allowed()) std::copy(sweeps.start, sweeps.start + n, x);
  }

  // --- all of it -----------------------------------------------------------------------------------------------------------

  // Opens contacts that one more update would open. Sweeps leave such a contact an impulse of, say, 1e-26 N s, with which it
  // would count as pressed. Returns the violation.
  double open_contacts() {
    const double left = violation(x);
    for (int r = 0; r < n; ++r)
      if (rows[r].kind == RowKind::friction ? x[rows[r].normal] == 0
                                            : rows[r].kind == RowKind::unilateral && next[r] == 0)
        x[r] = 0;
    return left;
  }
  // Fills x and `settled`; returns the remaining violation, with compliance that of the rows without it.
  double solve() {
    prepare();
    double left = violation(x);
    compliant = false;
    for (int round = 0; round < exact_rounds && left > allowed(); ++round) {
      if (round == compliant_after && comply()) break;
      sweep_on(exact_sweeps);
      const double swept = violation(x);
      left = newton(swept, false);
      if (!(left < swept)) left = newton(swept, true);
    }
    settled = compliant || left <= exact_settled * allowed();
    if (settled && !compliant) {
      relieve_stress();
      open_contacts();
      if (is_redundant()) settled = comply();
    }
    if (!compliant) return left;
    remove_compliance();
    left = open_contacts();
    add_compliance();
    return left;
  }

  // --- derivatives -------------------------------------------------------------------------------------------------------

  // Forms the system of (2) at the solution x.
  void prepare_derivatives() {
    invert_blocks();
    if (!compliant && (violation(x) > exact_settled * allowed() || is_redundant())) {
      find_compliance();
      add_compliance();
    }
    if (compliant)
      classify_compliant();
    else
      classify();
    velocities(x, w);
    linearize();
  }
  // Solves K y = y or K' y = y in place. Where K has an answer, the effect of the softness is taken out again: corrections end
  // when what is left no longer falls, because without softness the rows of an aligned face may contradict each other.
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

  // (5): adds to w_tan the change of R x. diagonal_tan [n] is that of A_rr.
  void add_compliance_tangent(const double* diagonal_tan, const double* bound_tan, double* w_tan) const {
    for (int r = 0, size; r < n; r += size) {
      size = block(r);
      if (rows[r].kind != RowKind::friction) {
        w_tan[r] += R[r] > 0 ? compliance_share * diagonal_tan[r] * x[r] : 0.0;
        continue;
      }
      const bool scaled = size > 2;  // by bounds, m_i = bound_i
      double trace_tan = 0;
      for (int j = r; j < r + size; ++j) {
        const double m = scale(j, size);
        trace_tan += m * m * diagonal_tan[j] + (scaled ? 2 * m * bound_tan[j] * diagonal[j] : 0.0);
      }
      for (int i = r; i < r + size; ++i) {
        const double m = scale(i, size);
        if (R[i] == 0) continue;
        w_tan[i] += compliance_share * trace_tan / (m * m) * x[i];
        if (scaled) w_tan[i] -= 2 * R[i] * bound_tan[i] / m * x[i];
      }
    }
  }
  // The transpose: fills diagonal_bar, adds to bound_bar.
  void compliance_adjoint(const double* s, double* diagonal_bar, double* bound_bar) const {
    for (int r = 0, size; r < n; r += size) {
      size = block(r);
      if (rows[r].kind != RowKind::friction) {
        diagonal_bar[r] = R[r] > 0 ? -compliance_share * s[r] * x[r] : 0.0;
        continue;
      }
      const bool scaled = size > 2;
      double trace_bar = 0;
      for (int i = r; i < r + size; ++i) {
        const double m = scale(i, size);
        if (R[i] == 0) continue;
        trace_bar -= compliance_share * s[i] * x[i] / (m * m);
        if (scaled) bound_bar[i] += 2 * R[i] * s[i] * x[i] / m;
      }
      for (int j = r; j < r + size; ++j) {
        const double m = scale(j, size);
        diagonal_bar[j] = m * m * trace_bar;
        if (scaled) bound_bar[j] += 2 * m * diagonal[j] * trace_bar;
      }
    }
  }

  // Evaluates (3) from x_bar in y, which is used up: fills s and the cotangents of the bounds.
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
  // The transpose: fills dx [n] from d(b + A x) at constant x in w_tan [n], and from bound_tan [n].
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
};

}  // namespace revolute
