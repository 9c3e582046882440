// Plain dense matrices: the independent side of the comparisons. Slow and obvious on purpose.
#pragma once

#include <cmath>
#include <utility>
#include <vector>

#include "revolute/spatial/inertia.hpp"

namespace revolute::check {

struct Dense {
  int rows, columns;
  std::vector<double> entries;

  Dense(int rows, int columns) : rows(rows), columns(columns), entries(std::size_t(rows) * columns, 0.0) {}
  double& operator()(int i, int j) { return entries[i * columns + j]; }
  double operator()(int i, int j) const { return entries[i * columns + j]; }
};

inline Dense operator*(const Dense& A, const Dense& B) {
  Dense C(A.rows, B.columns);
  for (int i = 0; i < A.rows; ++i)
    for (int k = 0; k < A.columns; ++k)
      for (int j = 0; j < B.columns; ++j) C(i, j) += A(i, k) * B(k, j);
  return C;
}
inline Dense operator+(Dense A, const Dense& B) {
  for (std::size_t i = 0; i < A.entries.size(); ++i) A.entries[i] += B.entries[i];
  return A;
}
inline Dense operator*(double s, Dense A) {
  for (double& entry : A.entries) entry *= s;
  return A;
}
inline Dense transposed(const Dense& A) {
  Dense out(A.columns, A.rows);
  for (int i = 0; i < A.rows; ++i)
    for (int j = 0; j < A.columns; ++j) out(j, i) = A(i, j);
  return out;
}
inline Dense identity(int n) {
  Dense out(n, n);
  for (int i = 0; i < n; ++i) out(i, i) = 1;
  return out;
}
// exp(A) by its series after halving A often enough for sizes up to ten
inline Dense matrix_exponential(const Dense& A) {
  constexpr int halvings = 4;
  const Dense small = std::ldexp(1.0, -halvings) * A;
  Dense sum = identity(A.rows), term = identity(A.rows);
  for (int n = 1; n < 24; ++n) {
    term = (1.0 / n) * (term * small);
    sum = sum + term;
  }
  for (int i = 0; i < halvings; ++i) sum = sum * sum;
  return sum;
}
// A^-1 B by elimination with pivots
inline Dense solve_dense(Dense A, Dense B) {
  const int n = A.rows;
  for (int i = 0; i < n; ++i) {
    int pivot = i;
    for (int r = i + 1; r < n; ++r)
      if (std::fabs(A(r, i)) > std::fabs(A(pivot, i))) pivot = r;
    for (int j = 0; j < n; ++j) std::swap(A(i, j), A(pivot, j));
    for (int j = 0; j < B.columns; ++j) std::swap(B(i, j), B(pivot, j));
    for (int r = 0; r < n; ++r) {
      if (r == i) continue;
      const double factor = A(r, i) / A(i, i);
      for (int j = i; j < n; ++j) A(r, j) -= factor * A(i, j);
      for (int j = 0; j < B.columns; ++j) B(r, j) -= factor * B(i, j);
    }
  }
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < B.columns; ++j) B(i, j) /= A(i, i);
  return B;
}

inline Dense column(const std::vector<double>& values) {
  Dense out(int(values.size()), 1);
  out.entries = values;
  return out;
}
inline std::vector<double> numbers(const Vector3<double>& a) { return {a.x, a.y, a.z}; }
inline std::vector<double> numbers(const Matrix3<double>& A) { return {A.m, A.m + 9}; }
inline std::vector<double> numbers(const Motion<double>& a) {
  return {a.w.x, a.w.y, a.w.z, a.v.x, a.v.y, a.v.z};
}
inline std::vector<double> numbers(const Force<double>& a) {
  return {a.n.x, a.n.y, a.n.z, a.f.x, a.f.y, a.f.z};
}
inline Dense dense(const Matrix3<double>& A) {
  Dense out(3, 3);
  out.entries = numbers(A);
  return out;
}
inline Dense dense(const Symmetric3<double>& A) {
  Dense out(3, 3);
  out.entries = {A.xx, A.xy, A.xz, A.xy, A.yy, A.yz, A.xz, A.yz, A.zz};
  return out;
}
// a -> [a]x
inline Dense cross_matrix(const Vector3<double>& a) {
  Dense out(3, 3);
  out.entries = {0, -a.z, a.y, a.z, 0, -a.x, -a.y, a.x, 0};
  return out;
}
inline Dense blocks(const Dense& A, const Dense& B, const Dense& C, const Dense& D) {
  Dense out(6, 6);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      out(i, j) = A(i, j);
      out(i, 3 + j) = B(i, j);
      out(3 + i, j) = C(i, j);
      out(3 + i, 3 + j) = D(i, j);
    }
  return out;
}

}  // namespace revolute::check
