// The rows of one island of one environment in double, and how far impulses are from solving them.
//
// The velocities of the rows are w = A x + b. One more update of a block, alone, gives project(z_b), where z_b is the block's
// solution without bounds (friction_block.hpp). The violation is the largest change of velocity that such an update makes,
//   max |A_bb (project(z_b) - x_b)|                                                                 (1)
#pragma once

#include <algorithm>
#include <cmath>

#include "revolute/solvers/projected_gauss_seidel.hpp"

namespace revolute {

constexpr double exact_tolerance = 1e-12;  // of the violation, relative to the largest entry of b
constexpr double exact_rounding = 1e-14;   // relative to the largest A_rr x_r

// Arrays are [n] and [n, n].
struct IslandRows {
  int n;
  SolverRow* rows;  // numbered as one island that begins at 0
  double *A, *b, *bound, *x;
  double *w, *next;                // velocities A x + b; impulses after one more update of each block
  SolverWorkspace<double> sweeps;  // without tape

  Island<double> island(int iterations) const {
    return {rows, n, iterations, A, bound, sweeps.scaled, sweeps.inverse};
  }
  int block(int r) const { return block_rows<0>(rows, n, r); }
  double scale(int r, int size) const { return size <= 2 ? 1.0 : bound[r]; }
  // The radius of a friction block's disc or ellipsoid, for the normal impulse in `at`.
  double radius(int first, int size, const double* at) const {
    const double normal = at[rows[first].normal];
    return size <= 2 ? bound[first] * normal : normal;
  }
  // The length of a friction block's impulses, measured as its radius.
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
  // entry i of A v
  double effect(int i, const double* v) const {
    double sum = 0;
    for (int j = 0; j < n; ++j) sum += A[std::size_t(i) * n + j] * v[j];
    return sum;
  }
  void velocities(const double* at, double* out) const {
    for (int r = 0; r < n; ++r) {
      out[r] = b[r];
      for (int j = 0; j < n; ++j) out[r] += A[r * n + j] * at[j];
    }
  }
  void invert_blocks() {
    // `movable` reads whole rows, but a block fills only its own entries
    std::fill(sweeps.inverse, sweeps.inverse + std::size_t(n) * most_friction_rows, 0.0);
    scale_island<0>(island(0), sweeps.inverse, sweeps.scaled);
  }
  bool movable(int r) const {
    for (int d = 0; d < most_friction_rows; ++d)
      if (sweeps.inverse[r * most_friction_rows + d] != 0) return true;
    return false;
  }
  // Fills x with the start of the sweeps.
  void start() {
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
  void run_sweeps(int count) {
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
};

}  // namespace revolute
