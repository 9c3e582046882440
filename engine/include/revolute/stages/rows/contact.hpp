// Rows of a contact: normal, two sliding directions, and with condim 4 and 6 torsion about the normal and rolling.
//   normal:   0 <= impulse, bias(gap), or that of a bounce.
//   A contact bounces when it is approached faster than one step's acceleration and reached within the step:
//     e > 0,   v < 0,   |v| > h |a|,   gap + h v* < 0,    v = J v, v* = J v*, a = (v* - v)/h      (1)
//   The impact lies at the time t = gap/|v| within the step (0 when the gap is closed already). Before it the bodies
//   approach with v, faster by a t when they meet; after it they part, so (the step moves with its end velocity)
//     v+ = -e (v + a t) - a t,    gap+ = (h - t) v+, nearly                                    (2)
//   The velocity alone would end at gap + h v+; the rest is a displacement along the row,
//     h shift = -(1 + e) gap                                                                  (3)
//   With (2) and (3) a bounce with e = 1 keeps the energy, and derivatives see when the impact happens, not only in
//   which step.
//   sliding:  |impulse| <= mu normal impulse, wrenches of collision_detection.hpp
//   torsion, rolling:  |impulse| <= coefficient times normal impulse, wrenches -+(axis; 0)    (4)
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

// The bounce of a contact's normal row.
template <class Real>
struct Bounce {
  MaskOf<Real> happens;
  Real before, free;   // v, v*
  Real acceleration, time;
  MaskOf<Real> timed;  // the gap is open: t depends on it
};

template <class Real>
REVOLUTE_HD inline Bounce<Real> bounce(const Parameters<Real>& parameters, const RowContext<Real>& at, Real gap, const RowJacobian<Real>& J) {
  Bounce<Real> out;
  out.free = row_times(J, at.v_free, at.V_free);
  out.before = row_times(J, at.qvel, at.kinematics->V);
  out.acceleration = (out.free - out.before) / at.h;
  out.happens = less(Real(0), *parameters.restitution) & less(out.before, -(at.h * abs(out.acceleration))) &
                less(gap + at.h * out.free, Real(0));  // (1)
  out.timed = out.happens & less(Real(0), gap);
  out.time = select(out.timed, gap / select(out.timed, -out.before, Real(1)), Real(0));
  return out;
}

template <class Real>
REVOLUTE_HD RowValues<Real> contact_row(const Model& model, const Parameters<Real>& parameters, const RowContext<Real>& at,
                                        const Contact<Real>& contact, int component) {
  const Candidate& candidate = model.candidates[contact.candidate];
  RowValues<Real> row;
  row.J = contact_jacobian(candidate, contact, component);
  row.bias = row.bounced = row.shift = Real(0);
  row.kind = component == 0 ? RowKind::unilateral : RowKind::friction;
  if (component > 0) {
    row.bound = component < 3 ? parameters.friction[candidate.friction] : Real(rotation_friction(candidate, component));
    return row;
  }
  const Bounce<Real> hit = bounce(parameters, at, contact.gap, row.J);
  const Real e = *parameters.restitution;
  const Real parting = e * (hit.before + hit.acceleration * hit.time) + hit.acceleration * hit.time;  // -v+ of (2)
  row.bias = select(hit.happens, parting, gap_bias(model, at.h, contact.gap));
  row.bound = indicator<Real>(contact.active);
  row.bounced = indicator<Real>(hit.happens);
  row.shift = row.bounced * (-(Real(1) + e) * contact.gap / at.h);  // (3)
  return row;
}

// Reverse of (2) and (3).
template <class Real>
REVOLUTE_HD void bounce_adjoint(const Parameters<Real>& parameters, const RowContext<Real>& at, Real gap, const RowJacobian<Real>& J,
                                const Bounce<Real>& hit, Real bias_bar, Real shift_bar, RowJacobianCotangent<Real>& J_bar, Real& gap_bar,
                                Force<Real>* V_bar, Force<Real>* V_free_bar, Parameters<Real>& parameters_bar) {
  const Real e = *parameters.restitution;
  const Real parting_bar = select(hit.happens, bias_bar, Real(0)), displacement_bar = select(hit.happens, shift_bar, Real(0)) / at.h;
  *parameters_bar.restitution += parting_bar * (hit.before + hit.acceleration * hit.time) - displacement_bar * gap;
  const Real by_both = (Real(1) + e) * parting_bar;
  const Real acceleration_bar = hit.time * by_both / at.h;  // by v* and -v
  const Real time_bar = select(hit.timed, hit.acceleration * by_both / select(hit.timed, hit.before, Real(1)), Real(0));  // by -gap and -t v
  gap_bar -= (Real(1) + e) * displacement_bar + time_bar;
  const Real before_bar = e * parting_bar - acceleration_bar - hit.time * time_bar;
  add_row_transpose(J, before_bar, static_cast<Real*>(nullptr), V_bar);
  add_row_transpose(J, acceleration_bar, static_cast<Real*>(nullptr), V_free_bar);
  add_row_cotangent(J, before_bar, at.qvel, at.kinematics->V, J_bar);
  add_row_cotangent(J, acceleration_bar, at.v_free, at.V_free, J_bar);
}

// J_bar of the row is complete but for the bounce, which is added here. V_bar, V_free_bar: cotangents of the links' velocities
// at the start of the step, and without contact.
template <class Real>
REVOLUTE_HD void contact_row_adjoint(const Model& model, const Parameters<Real>& parameters, const RowContext<Real>& at,
                                     const Contact<Real>& contact, int component, Real bias_bar, Real bound_bar, Real shift_bar,
                                     RowJacobianCotangent<Real>& J_bar, ContactCotangent<Real>& contact_bar, Force<Real>* V_bar,
                                     Force<Real>* V_free_bar,                                     Parameters<Real>& parameters_bar) {
  const Candidate& candidate = model.candidates[contact.candidate];
  if (component >= 3) {
    contact_bar.axis[rotation_axis(component)] += J_bar.force_b.n - J_bar.force_a.n;
    return;
  }
  if (component == 0) {
    const RowJacobian<Real> J = contact_jacobian(candidate, contact, 0);
    const Bounce<Real> hit = bounce(parameters, at, contact.gap, J);
    contact_bar.gap += select(hit.happens, Real(0), gap_slope(model, at.h, contact.gap) * bias_bar);
    if (any(hit.happens)) bounce_adjoint(parameters, at, contact.gap, J, hit, bias_bar, shift_bar, J_bar, contact_bar.gap, V_bar, V_free_bar, parameters_bar);
  } else {
    parameters_bar.friction[candidate.friction] += bound_bar;
  }
  contact_bar.force_a[component] += J_bar.force_a;
  contact_bar.force_b[component] += J_bar.force_b;
}

}  // namespace revolute
