// The friction rows of one contact, solved together: the best impulse within a disc, or an ellipsoid with condim 4 and 6.
//
// With all other rows held, z = -A_ff^-1 (b_f + A_fj x_j) is the block's value without its bound. The update is
//   x+ = argmin 1/2 x' A x - u' x  over  sum (x_i/m_i)^2 <= r^2,   u = A_ff z                  (1)
// One or two rows have m_i = 1 and r = mu x_n, more rows have m_i = mu_i and r = x_n. Inside the bound the contact sticks,
// x+ = z. On the bound, with a unit vector e,
//   x+ = r m e,   (r m A m + sigma) e = m u,   |e| = 1,   sigma >= 0                           (2)
// so friction points against the remaining slip: A x+ - u = -sigma e/m.
// Newton's method solves 1/|e(sigma)| = 1. The left side is concave and grows: a start on the left never overshoots.
//   sigma += |e|^2 (|e| - 1)/(e . B^-1 e),   B = r m A m + sigma                               (3)
// An environment that has converged keeps its number, so bits do not depend on neighbours.
//
// Adjoint of a sliding block, g = x+_bar:
//   r_bar = rho = (e . B^-1 m g)/(e . B^-1 e),   s = r m B^-1 (m g - rho e)                    (4)
//   b_f_bar -= s,   A_fj_bar -= s x_j,   A_ff_bar -= s x+',   x_j_bar -= A_jf s,
//   m_i_bar += r e_i (g - A s)_i + sigma e_i s_i/m_i^2                                         (5)
// and of a sticking block: s = A_ff^-1 g. A block exactly on its bound counts as sliding. If the normal has no impulse the
// block is open: x+ = 0, and no cotangent passes.
#pragma once

#include <cstddef>

#include "revolute/solvers/solver.hpp"

namespace revolute {

constexpr int most_friction_rows = 5;
constexpr double least_mobility = 1e-15;  // 1/kg; a smaller value is rounding of a Jacobian that is zero
// Rows that move the same way make A_ff singular. Among impulses with the same effect, the solution is the one of least
// sum (x_i/m_i)^2: this share of the trace of m A m is added to the diagonal,
//   A_ii += softness trace/m_i^2,   trace = sum_j m_j^2 A_jj                                  (6)
// Derivatives of the block lose as many digits to rounding as the share has; what sticks creeps by the share of its slip.
constexpr double block_softness = 1e-9;
constexpr int friction_iterations = 40;
constexpr double friction_tolerance = 1e-13;  // of |e| = 1

// A block's update keeps, beside x+, sigma and e if it slides; otherwise sigma holds one of these marks.
constexpr double block_sticks = -1.0, block_is_open = 0.0;

// B = L D L' of a small symmetric positive definite matrix.
template <int N, class Real>
struct SmallFactors {
  Real L[N][N], D_inverse[N];

  REVOLUTE_HD explicit SmallFactors(const Real (&B)[N][N]) {
    for (int i = 0; i < N; ++i) {
      Real LD[N], d = B[i][i];
      for (int k = 0; k < i; ++k) {
        LD[k] = B[i][k];
        for (int l = 0; l < k; ++l) LD[k] -= LD[l] * L[k][l];
        L[i][k] = LD[k] * D_inverse[k];
        d -= LD[k] * L[i][k];
      }
      D_inverse[i] = Real(1) / d;
    }
  }
  template <class X>
  REVOLUTE_HD void solve(const X (&in)[N], X (&out)[N]) const {
    for (int i = 0; i < N; ++i) {
      out[i] = in[i];
      for (int k = 0; k < i; ++k) out[i] -= L[i][k] * out[k];
    }
    for (int i = N - 1; i >= 0; --i) {
      out[i] = out[i] * D_inverse[i];
      for (int k = i + 1; k < N; ++k) out[i] -= L[k][i] * out[k];
    }
  }
};
template <int N, class A, class B>
REVOLUTE_HD inline Combined<A, B> dot_product(const A (&a)[N], const B (&b)[N]) {
  Combined<A, B> sum = a[0] * b[0];
  for (int i = 1; i < N; ++i) sum += a[i] * b[i];
  return sum;
}

// A block as the functions below see it: its bounds, and its part of A with `stride` numbers a row.
template <class Real>
struct FrictionBlock {
  const Real *A, *bound;
  int stride;

  // A_ff with (6)
  template <int N>
  REVOLUTE_HD Real entry(int i, int j) const {
    const Real a = A[i * stride + j];
    if (i != j) return a;
    const Real inverse = inverse_scale<N>(i);
    return a + Real(block_softness) * (inverse * inverse) * trace<N>();
  }
  template <int N>
  REVOLUTE_HD Real trace() const {
    Real sum(0);
    for (int i = 0; i < N; ++i) {
      const Real m = scale<N>(i);
      sum = multiply_add(m * m, A[i * stride + i], sum);
    }
    return sum;
  }
  // m_i of (1), and r
  template <int N>
  REVOLUTE_HD Real scale(int i) const {
    return N <= 2 ? Real(1) : bound[i];
  }
  template <int N>
  REVOLUTE_HD Real radius(const Real& normal) const {
    return N <= 2 ? bound[0] * normal : normal;
  }
  // 1/m_i, or 0 if the row has no friction
  template <int N>
  REVOLUTE_HD Real inverse_scale(int i) const {
    if (N <= 2) return Real(1);
    const auto rubs = less(Real(0), bound[i]);
    return select(rubs, Real(1) / select(rubs, bound[i], Real(1)), Real(0));
  }
};

// A_ff^-1, in rows of `most_friction_rows` numbers. Rows that nothing can move, or that have no friction, stay at zero.
template <int N, class Real>
REVOLUTE_HD void invert_block(const FrictionBlock<Real>& block, Real* inverse) {
  Real B[N][N];
  MaskOf<Real> movable[N];
  for (int i = 0; i < N; ++i) {
    movable[i] = less(Real(least_mobility), block.A[i * block.stride + i]);
    if (N > 2) movable[i] = movable[i] & less(Real(0), block.bound[i]);
    for (int j = 0; j <= i; ++j)
      B[i][j] = B[j][i] = select(movable[i] & movable[j], block.template entry<N>(i, j), Real(i == j));
  }
  const SmallFactors<N, Real> factors(B);
  for (int i = 0; i < N; ++i) {
    Real unit[N], column[N];
    for (int j = 0; j < N; ++j) unit[j] = Real(i == j);
    factors.solve(unit, column);
    for (int j = 0; j < N; ++j)
      inverse[j * most_friction_rows + i] = select(movable[i] & movable[j], column[j], Real(0));
  }
}

// Sum of (z_i/m_i)^2, for comparison with r^2.
template <int N, class Real>
REVOLUTE_HD inline Real block_reach(const FrictionBlock<Real>& block, const Real* z) {
  if constexpr (N == 1) return z[0] * z[0];
  if constexpr (N == 2) return multiply_add(z[1], z[1], z[0] * z[0]);
  Real sum(0);
  for (int i = 0; i < N; ++i) {
    const Real part = z[i] * block.template inverse_scale<N>(i);
    sum = multiply_add(part, part, sum);
  }
  return sum;
}

// B of (3)
template <int N, class Real>
REVOLUTE_HD inline void sliding_matrix(const FrictionBlock<Real>& block, const Real& radius,
                                       const Real& sigma, Real (&B)[N][N]) {
  for (int i = 0; i < N; ++i)
    for (int j = 0; j <= i; ++j) {
      const Real weight = radius * block.template scale<N>(i) * block.template scale<N>(j);
      B[i][j] = B[j][i] = i == j ? multiply_add(weight, block.template entry<N>(i, j), sigma)
                                 : weight * block.template entry<N>(i, j);
    }
}

// Solves (2) by (3) where `slides`: fills e, 0 elsewhere, and returns sigma.
template <int N, class Real>
REVOLUTE_NOINLINE Real slide(const FrictionBlock<Real>& block, Real normal, const Real* z,
                             MaskOf<Real> slides, Real* e_out) {
  const Real radius = block.template radius<N>(normal);
  Real u[N], trace(0);
  for (int i = 0; i < N; ++i) {
    const Real scale = block.template scale<N>(i);
    u[i] = block.template entry<N>(i, 0) * z[0];
    for (int j = 1; j < N; ++j) u[i] = multiply_add(block.template entry<N>(i, j), z[j], u[i]);
    u[i] = scale * u[i];
    trace = multiply_add(scale * scale, block.template entry<N>(i, i), trace);
  }
  // |e| sigma + |B e - sigma e| is at most |m u|: a bound from the left
  const Real square = without_tangents(dot_product(u, u));
  const auto pulled = less(Real(Precision<Real>::tiny_square), square);
  const Real least = Real(1e-15) * (without_tangents(radius * trace) + sqrt(square));
  Real sigma = maximum(sqrt(square) - without_tangents(radius * trace), least);
  sigma = select(slides & pulled, sigma, Real(1));
  Real e[N], f[N], B[N][N], length, step;
  for (int iteration = 0;; ++iteration) {
    sliding_matrix(block, radius, sigma, B);
    const SmallFactors<N, Real> factors(B);
    factors.solve(u, e);
    length = sqrt(dot_product(e, e));
    const auto open = slides & pulled & less(Real(1 + friction_tolerance), length);
    if (!HasTangents<Real>::value && (!any(open) || iteration == friction_iterations)) break;
    factors.solve(e, f);
    step = length * length * (length - Real(1)) / dot_product(e, f);
    if (HasTangents<Real>::value && (!any(open) || iteration == friction_iterations)) break;
    sigma = select(open, without_tangents(sigma + step), sigma);
  }
  if constexpr (HasTangents<Real>::value) {
    sigma = sigma + select(pulled, tangents_of(step), Real(0));
    sliding_matrix(block, radius, sigma, B);
    SmallFactors<N, Real>(B).solve(u, e);
    length = sqrt(dot_product(e, e));
  }
  const Real inverse_length = select(pulled, Real(1) / select(pulled, length, Real(1)), Real(0));
  for (int i = 0; i < N; ++i) e_out[i] = select(slides, e[i] * inverse_length, Real(0));
  return sigma;
}

// Updates a block: fills x+ in `next`, and sigma; and e if it slides somewhere. slide() gets the address of a copy: numbers
// whose address a call gets do not stay in registers.
template <int N, class Real>
REVOLUTE_HD REVOLUTE_INLINE void project_block(const FrictionBlock<Real>& block, const Real& normal,
                                               const Real* z, Real* next, Real* e, Real& sigma) {
  const Real radius = block.template radius<N>(normal);
  const auto sticks = less(block_reach<N>(block, z), radius * radius);
  if (all(sticks)) {  // no mask between z and x+
    sigma = Real(block_sticks);
    copy_numbers<N>(z, next);
    return;
  }
  sigma = select(sticks, Real(block_sticks), Real(block_is_open));
  unrolled<0, N>([&](int i) REVOLUTE_INLINE_LAMBDA { next[i] = select(sticks, z[i], Real(0)); });
  const auto slides = (!sticks) & less(Real(0), normal);
  if (!any(slides)) return;
  Real own_z[N];
  copy_numbers<N>(z, own_z);
  sigma = select(slides, slide<N>(block, normal, own_z, slides, e), sigma);
  unrolled<0, N>([&](int i) REVOLUTE_INLINE_LAMBDA {
    next[i] = select(slides, radius * block.template scale<N>(i) * e[i], next[i]);
  });
}

// (4), (5) where sigma > 0: computes s from g, adds to the cotangents of the bounds, and returns what it adds to the cotangent of
// the normal impulse.
template <int N, class Real, class Bar>
REVOLUTE_NOINLINE Bar slide_adjoint(const FrictionBlock<Real>& block, const Real& normal, const Real* e,
                                    const Real& sigma, const Bar* g, Bar* s, Bar* bound_bar) {
  const auto slides = less(Real(0), sigma);
  const Real radius = block.template radius<N>(normal);
  Real B[N][N], unit[N], f[N];
  sliding_matrix(block, radius, select(slides, sigma, Real(1)), B);
  const SmallFactors<N, Real> factors(B);
  Bar scaled[N], y[N];
  for (int i = 0; i < N; ++i) {
    unit[i] = select(slides, e[i], Real(0));
    scaled[i] = block.template scale<N>(i) * g[i];
  }
  factors.solve(unit, f);
  factors.solve(scaled, y);
  const Real along = dot_product(unit, f);
  const auto pulled = less(Real(0), along);
  const Bar rho = dot_product(unit, y) * select(pulled, Real(1) / select(pulled, along, Real(1)), Real(0));
  const auto wide = less(Bar(0), Bar(sigma));
  Bar sliding[N];
  for (int i = 0; i < N; ++i) {
    sliding[i] = radius * block.template scale<N>(i) * (y[i] - f[i] * rho);
    s[i] = select(wide, sliding[i], s[i]);
  }
  if constexpr (N <= 2) {
    bound_bar[0] += select(wide, rho * normal, Bar(0));
  } else {
    for (int i = 0; i < N; ++i) {
      const Real inverse = block.template inverse_scale<N>(i);
      Bar rest = g[i];
      for (int j = 0; j < N; ++j) rest -= block.template entry<N>(i, j) * sliding[j];
      bound_bar[i] +=
          select(wide, radius * unit[i] * rest + (sigma * unit[i] * inverse * inverse) * sliding[i], Bar(0));
    }
  }
  return select(wide, N <= 2 ? rho * block.bound[0] : rho, Bar(0));
}

// Adjoint of (6): passes the cotangents of the diagonal's entries on to A_jj and m_j.
template <int N>
struct SoftenBlockAdjoint {
  template <class Real, class Bar>
  REVOLUTE_HD static void run(const FrictionBlock<Real>& block, const Bar* diagonal_bar, Bar* A_bar,
                              Bar* bound_bar) {
    const Real soft(block_softness), trace = block.template trace<N>();
    Bar trace_bar(0);
    for (int i = 0; i < N; ++i) {
      const Real inverse = block.template inverse_scale<N>(i), square = inverse * inverse;
      trace_bar += (soft * square) * diagonal_bar[i];
      if (N > 2) bound_bar[i] -= (Real(2) * soft * trace * square * inverse) * diagonal_bar[i];
    }
    for (int j = 0; j < N; ++j) {
      const Real m = block.template scale<N>(j);
      A_bar[j * block.stride + j] += (m * m) * trace_bar;
      if (N > 2) bound_bar[j] += (Real(2) * m * block.A[j * block.stride + j]) * trace_bar;
    }
  }
};

// Calls Task<N>::run; N is the number of a block's rows.
template <template <int> class Task, class... Arguments>
REVOLUTE_HD inline void dispatch_block(int rows, Arguments&&... arguments) {
  switch (rows) {
    case 1:
      return Task<1>::run(arguments...);
    case 2:
      return Task<2>::run(arguments...);
    case 3:
      return Task<3>::run(arguments...);
    default:
      return Task<most_friction_rows>::run(arguments...);
  }
}

}  // namespace revolute
