// Rows of a contact: normal, two sliding directions, and with condim 4 and 6 torsion about the normal and rolling.
//   normal:   0 <= impulse, bias(gap), or that of a bounce.
//   A contact bounces when it is approached faster than one step's acceleration and reached within the step:
//     e > 0,   v < 0,   |v| > h |a|,   gap + h v* < 0,    v = J v, v* = J v*, a = (v* - v)/h      (1)
//   The impact lies at the time t within the step (impact.hpp). The bodies are faster by a t when they meet, and
//   accelerated once more after it, so that the step, which moves with its end velocity, gets
//     v+ = -e (v + a t) - a t                                                                  (2)
//   With it a bounce with e = 1 keeps the energy.
//   sliding:  |impulse| <= mu normal impulse, wrenches of collision_detection.hpp
//   torsion, rolling:  |impulse| <= coefficient times normal impulse, wrenches -+(axis; 0)    (3)
#pragma once

#include "revolute/model/parameters.hpp"
#include "revolute/stages/collision_detection.hpp"
#include "revolute/stages/constraint_row.hpp"

namespace revolute {

// The axis of a rotational row, and its friction coefficient.
REVOLUTE_HD inline int rotation_axis(int component) { return component - 3; }
template <class Real>
REVOLUTE_HD inline Real& rotation_friction(const Parameters<Real>& parameters, const Candidate& candidate,
                                           int component) {
  return parameters.rotational_friction[2 * candidate.friction + (component == 3 ? 0 : 1)];
}

template <class Real>
REVOLUTE_HD inline RowJacobian<Real> contact_jacobian(const Candidate& candidate,
                                                      const Contact<Real>& contact, int component) {
  if (component < 3)
    return wrench_row(candidate.link_a, contact.force_a[component], candidate.link_b,
                      contact.force_b[component]);
  const Force<Real> force = {contact.axis[rotation_axis(component)], zero3<Real>()};
  return wrench_row(candidate.link_a, -force, candidate.link_b, force);
}

// The bounce of a contact's normal row.
template <class Real>
struct Bounce {
  MaskOf<Real> happens;
  Real before, acceleration;  // v, a
};

template <class Real>
REVOLUTE_HD inline Bounce<Real> bounce(const Parameters<Real>& parameters, const RowContext<Real>& at,
                                       Real gap, const RowJacobian<Real>& J) {
  Bounce<Real> out;
  const Real free = row_times(J, at.v_free, at.V_free);
  out.before = row_times(J, at.qvel, at.kinematics->V);
  out.acceleration = (free - out.before) / at.h;
  out.happens = less(Real(0), *parameters.restitution) & less(out.before, -(at.h * abs(out.acceleration))) &
                less(gap + at.h * free, Real(0));  // (1)
  return out;
}

template <class Real>
REVOLUTE_HD RowValues<Real> contact_row(const Model& model, const Parameters<Real>& parameters,
                                        const RowContext<Real>& at, const Contact<Real>& contact,
                                        int component) {
  const Candidate& candidate = model.candidates[contact.candidate];
  RowValues<Real> row;
  row.J = contact_jacobian(candidate, contact, component);
  row.bias = Real(0);
  row.bounces = false;
  row.kind = component == 0 ? RowKind::unilateral : RowKind::friction;
  if (component > 0) {
    row.bound = component < 3 ? parameters.friction[candidate.friction]
                              : rotation_friction(parameters, candidate, component);
    return row;
  }
  const Bounce<Real> hit = bounce(parameters, at, contact.gap, row.J);
  const Real gained = hit.acceleration * at.impact_time;
  const Real parting = *parameters.restitution * (hit.before + gained) + gained;  // (2): -v+
  row.bias = select(hit.happens, parting, gap_bias(model, at.h, contact.gap));
  row.bound = indicator<Real>(contact.active);
  row.bounces = any(hit.happens);
  return row;
}

// Reverse of (2); adds to J_bar, to the velocities' cotangents and to that of the impact's time.
template <class Real, class Bar>
REVOLUTE_HD void bounce_adjoint(const Parameters<Real>& parameters, const RowContext<Real>& at,
                                const RowJacobian<Real>& J, const Bounce<Real>& hit, Bar bias_bar,
                                RowJacobianCotangent<Bar>& J_bar, Force<Bar>* V_bar, Force<Bar>* V_free_bar,
                                Bar& time_bar, Parameters<Bar>& parameters_bar) {
  const Real e = *parameters.restitution;
  const Bar parting_bar = select(hit.happens, bias_bar, Bar(0));
  *parameters_bar.restitution += parting_bar * (hit.before + hit.acceleration * at.impact_time);
  const Bar gained_bar = (Real(1) + e) * parting_bar;
  time_bar += hit.acceleration * gained_bar;
  const Bar free_bar = at.impact_time * gained_bar / at.h, before_bar = e * parting_bar - free_bar;
  add_row_transpose(J, before_bar, static_cast<Bar*>(nullptr), V_bar);
  add_row_transpose(J, free_bar, static_cast<Bar*>(nullptr), V_free_bar);
  add_row_cotangent(J, before_bar, at.qvel, at.kinematics->V, J_bar);
  add_row_cotangent(J, free_bar, at.v_free, at.V_free, J_bar);
}

// J_bar of the row is complete but for the bounce, which is added here. V_bar, V_free_bar: cotangents of the links' velocities
// at the start of the step, and without contact; time_bar: of the impact's time.
template <class Real, class Bar>
REVOLUTE_HD void contact_row_adjoint(const Model& model, const Parameters<Real>& parameters,
                                     const RowContext<Real>& at, const Contact<Real>& contact, int component,
                                     Bar bias_bar, Bar bound_bar, RowJacobianCotangent<Bar>& J_bar,
                                     ContactCotangent<Bar>& contact_bar, Force<Bar>* V_bar,
                                     Force<Bar>* V_free_bar, Bar& time_bar, Parameters<Bar>& parameters_bar) {
  const Candidate& candidate = model.candidates[contact.candidate];
  if (component >= 3) {
    rotation_friction(parameters_bar, candidate, component) += bound_bar;
    contact_bar.axis[rotation_axis(component)] += J_bar.force_b.n - J_bar.force_a.n;
    return;
  }
  if (component == 0) {
    const RowJacobian<Real> J = contact_jacobian(candidate, contact, 0);
    const Bounce<Real> hit = bounce(parameters, at, contact.gap, J);
    contact_bar.gap += select(hit.happens, Bar(0), gap_slope(model, at.h, contact.gap) * bias_bar);
    if (any(hit.happens))
      bounce_adjoint(parameters, at, J, hit, bias_bar, J_bar, V_bar, V_free_bar, time_bar, parameters_bar);
  } else {
    parameters_bar.friction[candidate.friction] += bound_bar;
  }
  contact_bar.force_a[component] += J_bar.force_a;
  contact_bar.force_b[component] += J_bar.force_b;
}

}  // namespace revolute
