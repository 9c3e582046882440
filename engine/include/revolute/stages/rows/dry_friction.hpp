// Dry friction of a degree of freedom: J = e_k, |impulse| <= h frictionloss, no bias.
//
// An environment without friction has no such row, so its frictionloss gets no cotangent. This also holds if a neighbour in
// the pack makes the row, which is then held at zero.
#pragma once

#include "revolute/model/parameters.hpp"
#include "revolute/stages/constraint_row.hpp"

namespace revolute {

template <class Real>
REVOLUTE_HD inline RowValues<Real> dry_friction_row(const Parameters<Real>& parameters,
                                                    const RowContext<Real>& at, int dof) {
  return {RowKind::box, dof_row(dof, Real(1)), Real(0), at.h * parameters.frictionloss[dof], false};
}
template <class Real, class Bar>
REVOLUTE_HD inline void dry_friction_row_adjoint(const Parameters<Real>& parameters,
                                                 const RowContext<Real>& at, int dof, Bar bound_bar,
                                                 Parameters<Bar>& parameters_bar) {
  const auto rubs = less(Real(0), parameters.frictionloss[dof]);
  parameters_bar.frictionloss[dof] += select(rubs, at.h * bound_bar, Bar(0));
}

}  // namespace revolute
