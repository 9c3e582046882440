// Compliance R on the diagonal of an island's rows: the rows of A + R always have one solution.
//
//   R_r = c A_rr,   of friction rows R_i = c sum_j m_j^2 A_jj/m_i^2                                 (1)
//
// A has a derivative through R as well. Adjoint, with s of active_set.hpp (3):
//   R_r_bar = -s_r x_r                                                                              (2)
#pragma once

#include "revolute/solvers/exact/active_set.hpp"

namespace revolute {

constexpr double compliance_share = 1e-6;  // c, of `softened`

struct Compliance : ActiveSet {
  double *R, *diagonal;    // diagonal: of A without R
  bool compliant = false;  // whether A holds A + R

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

  // The tangent of (1): adds that of R x to w_tan. diagonal_tan [n] belongs to A_rr.
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
  // Its transpose (2): fills diagonal_bar, adds to bound_bar.
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
};

}  // namespace revolute
