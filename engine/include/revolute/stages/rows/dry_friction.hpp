// Dry friction of a degree of freedom: J = e_k, |impulse| <= h frictionloss, no bias.
#pragma once

#include "revolute/model/parameters.hpp"
#include "revolute/stages/constraint_row.hpp"

namespace revolute {

template <class Real>
REVOLUTE_HD inline RowValues<Real> dry_friction_row(const Parameters<Real>& parameters,
                                                    const RowContext<Real>& at, int dof) {
  return {RowKind::box, dof_row(dof, Real(1)), Real(0), at.h * parameters.frictionloss[dof], false};
}
template <class Real>
REVOLUTE_HD inline void dry_friction_row_adjoint(const RowContext<Real>& at, int dof, Real bound_bar,
                                                 Parameters<Real>& parameters_bar) {
  parameters_bar.frictionloss[dof] += at.h * bound_bar;
}

}  // namespace revolute
