// LU factors of a dense square matrix with partial pivoting, P M = L U, for M x = y and M' x = y.
#pragma once

#include <algorithm>
#include <cmath>

namespace revolute {

// Zeros are skipped, so a chain of bodies costs only its band.
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

}  // namespace revolute
