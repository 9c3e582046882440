// The converged solution of one island of one environment, and the linear system of its derivatives.
//
// Rounds of sweeps and Newton steps (active_set.hpp) solve most islands. A step that makes the violation larger is rejected;
// a step in which all contacts stick, or more sweeps, take its place.
//
// Rows on the same bodies need not have a solution. The corners of a face that turns as it lands are at different heights, so
// they cannot all stick: slips of 1e-9 m/s remain, and sweeps build up stress between the corners without end. Islands that
// have not converged after some rounds get a little compliance R (compliance.hpp), with which there is always a solution.
// A face that slides on more contacts than it needs has many solutions: other shares of its load have other friction, and the
// bodies move differently. Then K y = (arbitrary numbers) has an answer y whose effect A y is huge. Compliance decides there
// too. As R -> 0 it chooses the normal impulses of least x' R x: on one face, a pressure that is linear in the place.
//
// Newton's steps with A + R, which change the states of rows by the next update of each block, find this solution from that
// of the sweeps, or else from the minimum of compliant_minimum.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "revolute/solvers/exact/compliant_minimum.hpp"

namespace revolute {

constexpr int exact_rounds = 60, exact_sweeps = 10;
constexpr int compliant_after = 6;        // rounds before compliance is tried
constexpr double exact_settled = 1e3;     // a violation this many times the allowed one has not settled
constexpr double redundant_effect = 1e6;  // the A y, for K y of size 1, above which impulses are not unique
// Speed, relative to the largest entry of b, up to which an open contact may press when the load is shared differently.
constexpr double weakly_open = 10 * compliance_share;

struct ExactIsland : CompliantMinimum {
  bool settled = false;  // whether x solves its rows, and compliance has decided where it must

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

  // --- cases that need more than Newton's method --------------------------------------------------------------------------

  // Whether the rows have further solutions than x that move the bodies differently.
  bool is_redundant() {
    classify();
    if (!slides(0, n)) return false;
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
    for (int r = 0; r < n; ++r) largest = std::max(largest, std::fabs(effect(r, trial)));
    return largest > redundant_effect;
  }
  // Moves x to the solution that compliance chooses. If it finds no solution, returns false and restores x.
  bool comply() {
    std::copy(x, x + n, sweeps.start);
    find_compliance();
    add_compliance();
    if (solve_active_set()) return true;
    remove_compliance();
    std::copy(sweeps.start, sweeps.start + n, x);
    if (!minimize()) return false;
    add_compliance();
    std::copy(x, x + n, sweeps.start);
    if (!solve_active_set()) std::copy(sweeps.start, sweeps.start + n, x);
    return true;
  }
  // Rows of the same direction (both ends of a lying rod along it) can push against each other up to the bounds of friction
  // though nothing slips. Takes the smallest impulses that hold instead, if they are a solution.
  void relieve_stress() {
    classify();
    velocities(x, w);
    std::copy(x, x + n, sweeps.start);
    const double still = exact_settled * allowed();
    bool any = false;
    for (int r = 0, size; r < n; r += size) {
      size = block(r);
      if (rows[r].kind != RowKind::friction) continue;
      const bool slips =
          std::any_of(w + r, w + r + size, [&](double speed) { return std::fabs(speed) > still; });
      if (!slides(r, size) || slips) continue;
      std::fill(x + r, x + r + size, 0.0);
      any = true;
    }
    if (any && newton(1e300, true) > allowed()) std::copy(sweeps.start, sweeps.start + n, x);
  }

  // Fills x and `settled`; returns the remaining violation, with compliance that of the rows without it.
  double solve() {
    start();
    double left = violation(x);
    compliant = false;
    for (int round = 0; round < exact_rounds && left > allowed(); ++round) {
      if (round == compliant_after && comply()) break;
      run_sweeps(exact_sweeps);
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
    // more than the slips of compliance: the rows contradict each other
    settled = settled && left <= std::max(settled_speed, weakly_open * right_size());
    return left;
  }
  // Forms the system of active_set.hpp (2) at the solution x.
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
};

}  // namespace revolute
