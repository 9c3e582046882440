// Rows of a contact: normal, two sliding directions, and with condim 4 and 6 torsion about the normal and rolling.
//   normal:   0 <= impulse,  bias(gap); a contact that is approached and reached within the step bounces:
//               bias = min(bias, e J v)   where  e > 0,  J v < 0  and  gap + h J v* < 0       (1)
//   sliding:  |impulse| <= mu normal impulse, wrenches of collision_detection.hpp
//   torsion, rolling:  |impulse| <= coefficient times normal impulse, wrenches -+(axis; 0)    (2)
#pragma once

#include "revolute/model/parameters.hpp"
#include "revolute/stages/collision_detection.hpp"
#include "revolute/stages/constraint_row.hpp"

namespace revolute {

// The axis of a rotational row, and its friction coefficient.
REVOLUTE_HD inline int rotation_axis(int component) { return component - 3; }
REVOLUTE_HD inline double rotation_friction(const Candidate& candidate, int component) {
  return component == 3 ? candidate.torsional : candidate.rolling;
}

template <class Real>
REVOLUTE_HD inline RowJacobian<Real> contact_jacobian(const Candidate& candidate, const Contact<Real>& contact, int component) {
  if (component < 3)
    return wrench_row(candidate.link_a, contact.force_a[component], candidate.link_b, contact.force_b[component]);
  const Force<Real> force = {contact.axis[rotation_axis(component)], zero3<Real>()};
  return wrench_row(candidate.link_a, -force, candidate.link_b, force);
}

// (1): whether the contact bounces, and the normal speed it comes with.
template <class Real>
REVOLUTE_HD inline MaskOf<Real> bounces(const Model& model, const Parameters<Real>& parameters, const RowContext<Real>& at, Real gap,
                                        const RowJacobian<Real>& J, Real& before) {
  const Real e = *parameters.restitution, free = row_times(J, at.v_free, at.V_free);
  before = row_times(J, at.qvel, at.kinematics->V);
  return less(Real(0), e) & less(before, Real(0)) & less(gap + at.h * free, Real(0)) & less(e * before, gap_bias(model, at.h, gap));
}

template <class Real>
REVOLUTE_HD RowValues<Real> contact_row(const Model& model, const Parameters<Real>& parameters, const RowContext<Real>& at,
                                        const Contact<Real>& contact, int component) {
  const Candidate& candidate = model.candidates[contact.candidate];
  RowValues<Real> row;
  row.J = contact_jacobian(candidate, contact, component);
  row.bias = Real(0);
  row.kind = component == 0 ? RowKind::unilateral : RowKind::friction;
  if (component > 0) {
    row.bound = component < 3 ? parameters.friction[candidate.friction] : Real(rotation_friction(candidate, component));
    return row;
  }
  Real before;
  const auto bounced = bounces(model, parameters, at, contact.gap, row.J, before);
  row.bias = select(bounced, *parameters.restitution * before, gap_bias(model, at.h, contact.gap));
  row.bound = indicator<Real>(contact.active);
  return row;
}

// J_bar of the row is complete but for the bounce, which is added here. V_bar: cotangent of the start velocities of links.
template <class Real>
REVOLUTE_HD void contact_row_adjoint(const Model& model, const Parameters<Real>& parameters, const RowContext<Real>& at,
                                     const Contact<Real>& contact, int component, Real bias_bar, Real bound_bar,
                                     RowJacobianCotangent<Real>& J_bar, ContactCotangent<Real>& contact_bar, Force<Real>* V_bar,
                                     Parameters<Real>& parameters_bar) {
  const Candidate& candidate = model.candidates[contact.candidate];
  if (component >= 3) {
    contact_bar.axis[rotation_axis(component)] += J_bar.force_b.n - J_bar.force_a.n;
    return;
  }
  if (component == 0) {
    const RowJacobian<Real> J = contact_jacobian(candidate, contact, 0);
    Real before;
    const auto bounced = bounces(model, parameters, at, contact.gap, J, before);
    contact_bar.gap += select(bounced, Real(0), gap_slope(model, at.h, contact.gap) * bias_bar);
    const Real bounce_bar = select(bounced, bias_bar, Real(0)), speed_bar = *parameters.restitution * bounce_bar;
    *parameters_bar.restitution += bounce_bar * before;
    add_row_transpose(J, speed_bar, static_cast<Real*>(nullptr), V_bar);
    add_row_cotangent(J, speed_bar, at.qvel, at.kinematics->V, J_bar);
  } else {
    parameters_bar.friction[candidate.friction] += bound_bar;
  }
  contact_bar.force_a[component] += J_bar.force_a;
  contact_bar.force_b[component] += J_bar.force_b;
}

}  // namespace revolute
