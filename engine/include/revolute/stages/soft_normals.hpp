// Softness of the contacts that give back a depth.
//
// A link in the floor that turns about an almost upright axis moves almost only along the floor. Its depth would be given back
// by turning at any speed, with a huge impulse, and where two contacts ask for opposite speeds, impulses would have no bounds.
// So a normal n that gives back a depth is soft, by a share e_n of the mobility along its sliding rows f, and asks for the less
// speed the less it can move:
//   gamma = e_n sum_f A_ff,   A_nn+ = A_nn + gamma,   b_n+ = b_n - rho bias_n,   rho = gamma/A_nn+                (1)
// Reads rows' bias and softness. Changes rows' b, and A.
//
// Adjoint:  bias_bar -= rho b_bar,   rho_bar = -bias b_bar,
//   gamma_bar = A_nn_bar + rho_bar (1 - rho)/A_nn+,   A_nn_bar -= rho_bar rho/A_nn+,
//   e_n_bar += gamma_bar sum_f A_ff,   A_ff_bar += e_n gamma_bar                                                  (2)
#pragma once

#include "revolute/stages/delassus.hpp"

namespace revolute {

// Calls visit(n, nn, first, count) for each normal that is soft in any environment: nn is the place of A_nn, and rows
// first ... first + count - 1 are its sliding rows.
template <class Real, class Visit>
REVOLUTE_HD inline void for_soft_normals(const ConstraintRows<Real>& rows, const Visit& visit) {
  constexpr int sliding_rows = 2;
  for (int n = 0; n < rows.count; ++n) {
    if (!any(less(Real(0), rows.softness[n]))) continue;
    int count = 0;
    while (count < sliding_rows && n + 1 + count < rows.solver[n].end &&
           rows.solver[n + 1 + count].kind == RowKind::friction && rows.solver[n + 1 + count].normal == n)
      ++count;
    visit(n, rows.diagonal(n), n + 1, count);
  }
}
template <class Real>
REVOLUTE_HD inline Real sliding_mobility(const ConstraintRows<Real>& rows, const Real* A, int first,
                                         int count) {
  Real sum(0);
  for (int f = first; f < first + count; ++f) sum += A[rows.diagonal(f)];
  return sum;
}
// 1/A_nn, or 0 for a contact that nothing can move
template <class Real>
REVOLUTE_HD inline Real inverse_mobility(const Real& diagonal) {
  const auto moves = less(Real(0), diagonal);
  return select(moves, Real(1) / select(moves, diagonal, Real(1)), Real(0));
}

// (1)
template <class Real>
REVOLUTE_HD void soften_normals(ConstraintRows<Real>& rows, Real* A) {
  for_soft_normals(rows, [&](int n, std::size_t nn, int first, int count) {
    const Real gamma = rows.softness[n] * sliding_mobility(rows, A, first, count);
    A[nn] += gamma;
    rows.b[n] -= gamma * inverse_mobility(A[nn]) * rows.bias[n];
  });
}

// (2)
template <class Real, class Bar>
REVOLUTE_HD void soften_normals_adjoint(const ConstraintRows<Real>& rows, const Real* A,
                                        ConstraintRowsCotangent<Bar>& bar, Bar* A_bar) {
  for_soft_normals(rows, [&](int n, std::size_t nn, int first, int count) {
    const Real mobility = sliding_mobility(rows, A, first, count), gamma = rows.softness[n] * mobility;
    const Real inverse = inverse_mobility(A[nn]), rho = gamma * inverse;
    bar.bias[n] -= rho * bar.b[n];
    const Bar rho_bar = -rows.bias[n] * bar.b[n], by_sum = inverse * rho_bar;
    const Bar gamma_bar = A_bar[nn] + (Real(1) - rho) * by_sum;
    A_bar[nn] -= rho * by_sum;
    bar.softness[n] += mobility * gamma_bar;
    for (int f = first; f < first + count; ++f) A_bar[rows.diagonal(f)] += rows.softness[n] * gamma_bar;
  });
}

}  // namespace revolute
