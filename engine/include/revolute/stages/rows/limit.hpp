// Joint limits as one-sided rows.
//   hinge, slide:  gap = sign (q - bound),            J = sign e_k                            (1)
//   ball:          gap = bound - |r|,  r = log(q),    J = -(r/|r|) on its three degrees of freedom        (2)
// The angle of a ball joint changes at the rate (r/|r|) . omega; at r = 0 the limit is far and the axis is arbitrary.
#pragma once

#include "revolute/collision/contact_point.hpp"
#include "revolute/model/joints/ball.hpp"
#include "revolute/model/parameters.hpp"
#include "revolute/stages/constraint_row.hpp"

namespace revolute {

template <class Real>
REVOLUTE_HD inline Vector3<Real> ball_rotation(const Limit& limit, const Real* qpos) {
  return logarithm(load_quaternion(qpos + limit.qpos));
}

template <class Real>
REVOLUTE_HD inline RowJacobian<Real> limit_jacobian(const Parameters<Real>& parameters, const Limit& limit,
                                                    const Real* qpos, Real& gap) {
  const Real bound = parameters.range[limit.bound];
  if (!limit.ball) {
    gap = Real(limit.sign) * (qpos[limit.qpos] - bound);
    return dof_row(limit.dof, Real(limit.sign));
  }
  Real angle, inverse;
  const Vector3<Real> axis = direction(ball_rotation(limit, qpos), angle, inverse);
  gap = bound - angle;
  RowJacobian<Real> J = dof_row(limit.dof, -axis.x);
  J.dofs = 3;
  J.dof[1] = limit.dof + 1;
  J.dof[2] = limit.dof + 2;
  J.coefficient[1] = -axis.y;
  J.coefficient[2] = -axis.z;
  return J;
}

template <class Real>
REVOLUTE_HD inline RowValues<Real> limit_row(const Model& model, const Parameters<Real>& parameters,
                                             const RowContext<Real>& at, const Limit& limit) {
  Real gap;
  const RowJacobian<Real> J = limit_jacobian(parameters, limit, at.qpos, gap);
  const auto active = may_act(model, at.h, gap, row_times(J, at.v_free, at.V_free));
  return {RowKind::unilateral, J, gap_bias(model, at.h, gap), indicator<Real>(active), false};
}

// Starts from the cotangents of gap and J.
template <class Real, class Bar>
REVOLUTE_HD inline void limit_gap_adjoint(const Limit& limit, const Real* qpos, const Bar& gap_bar,
                                          const RowJacobianCotangent<Bar>& J_bar, Bar* qpos_bar,
                                          Parameters<Bar>& parameters_bar) {
  if (limit.ball)
    parameters_bar.range[limit.bound] += gap_bar;
  else
    parameters_bar.range[limit.bound] -= Real(limit.sign) * gap_bar;
  if (!limit.ball) {
    qpos_bar[limit.dof] += Real(limit.sign) * gap_bar;
    return;
  }
  Real angle, inverse;
  const Vector3<Real> r = ball_rotation(limit, qpos), axis = direction(r, angle, inverse);
  const Vector3<Bar> axis_bar = {-J_bar.coefficient[0], -J_bar.coefficient[1], -J_bar.coefficient[2]};
  const Vector3<Bar> r_bar = direction_adjoint(axis, inverse, axis_bar) - gap_bar * axis;
  add3(qpos_bar + limit.dof, left_jacobian_inverse_times(r, r_bar));
}

template <class Real, class Bar>
REVOLUTE_HD inline void limit_row_adjoint(const Model& model, const Parameters<Real>& parameters,
                                          const RowContext<Real>& at, const Limit& limit, Bar bias_bar,
                                          const RowJacobianCotangent<Bar>& J_bar, Bar* qpos_bar,
                                          Parameters<Bar>& parameters_bar) {
  Real gap;
  limit_jacobian(parameters, limit, at.qpos, gap);
  limit_gap_adjoint(limit, at.qpos, Bar(gap_slope(model, at.h, gap) * bias_bar), J_bar, qpos_bar,
                    parameters_bar);
}

}  // namespace revolute
