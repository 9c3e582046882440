// The solution of the rows of A + R as the minimum of a smooth convex function.
//
// With the radii r of the friction discs held, x minimizes
//   P(x) = 1/2 x' A x + s(w),   w = A x + b,   -ds/dw = law(w): -w/R within the bounds             (1)
// which Newton's method with a line search finds. Then r follows from the new normal impulses, until it stays.
#pragma once

#include <algorithm>
#include <cmath>

#include "revolute/solvers/exact/compliance.hpp"

namespace revolute {

// Residual of (1) and of the radii, relative to the largest entry of b.
constexpr double compliant_tolerance = 1e-8;
// Steps for the impulses and for the radii; after some of them only a share of a radius's change is taken.
constexpr int impulse_steps = 100, radius_steps = 200, whole_radius_steps = 8;
constexpr double radius_share = 0.2;
constexpr int slope_steps = 40;  // of the line search
constexpr double slope_tolerance = 1e-6;

struct CompliantMinimum : Compliance {
  double *radii, *direction, *Ad;  // the radius of a friction block stands at its first row

  // The impulses -ds/dw of (1); sets the states and e.
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
  // Fills `trial` with the impulses at which (1), linearized at x, is least; w and the states must belong to x, `next` to law(w).
  void newton_target() {
    for (int r = 0, size; r < n; r += size) {
      size = block(r);
      for (int i = r; i < r + size; ++i) {
        double* const row = K + std::size_t(i) * n;
        if (state[i] != RowState::sliding) {
          fill_plain_row(i, R[i]);
          trial[i] = state[i] == RowState::free ? -b[i] : row[i] * next[i];
          continue;
        }
        std::fill(row, row + n, 0.0);
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
  // Finds the minimum of (1), for fixed radii, from x; returns the largest A_ii (x - law(w))_i that is left.
  double minimize_at_radii(double tolerance) {
    double left = 0;
    for (int step = 0; step < impulse_steps; ++step) {
      velocities(x, w);
      law(w, next);
      left = 0;
      for (int i = 0; i < n; ++i) left = std::max(left, A[i * n + i] * std::fabs(x[i] - next[i]));
      if (step > 0 && !(left > tolerance)) break;
      newton_target();
      for (int i = 0; i < n; ++i) direction[i] = trial[i] - x[i];
      for (int i = 0; i < n; ++i) Ad[i] = effect(i, direction);
      const double alpha = least_along();
      for (int i = 0; i < n; ++i) x[i] += alpha * direction[i];
    }
    return left;
  }
  // Fills x with the solution of the rows of A + R; if it finds none, returns false and restores x.
  bool minimize() {
    std::copy(x, x + n, sweeps.start);
    const double tolerance = compliant_tolerance * right_size();
    for (int r = 0, size; r < n; r += size) {
      size = block(r);
      if (rows[r].kind == RowKind::friction) radii[r] = std::max(radius(r, size, x), 0.0);
    }
    for (int step = 0; step < radius_steps; ++step) {
      double left = minimize_at_radii(tolerance);
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
};

}  // namespace revolute
