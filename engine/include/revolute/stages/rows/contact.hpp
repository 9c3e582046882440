// Rows of a contact: normal, two sliding directions, and with condim 4 and 6 torsion about the normal and rolling.
//   normal:   0 <= impulse, bias(gap), or that of an impact.
//   A contact is reached at speed if its approach is faster than one step's acceleration and it closes within the step:
//     v < 0,   |v| > h max(|a|, 0.1 m/s^2),   gap + h v* < 0,    v = J v, v* = J v*, a = (v* - v)/h   (1)
//   (Bodies that fall together have a = 0 between them. Without the second number, rounding of 1e-15 m/s in a stack at rest
//   would count as an impact, at a time gap/|v| that means nothing.)
//   The impact lies at the time t within the step (impact.hpp). With restitution e > 0 the bodies are faster by a t when they
//   meet, and accelerate again after the impact. The step moves with its end velocity, so that it gets
//     v+ = -e (v + a t) - a t                                                                  (2)
//   Thus a bounce with e = 1 keeps the energy. With e = 0, a contact that is reached at t with its gap within the depth s of
//   constraint_row.hpp stays closed, v+ = 0. Any other contact may close its gap, not more, and gives back its depth.
//   A normal that gives back its depth is a little soft (soft_normals.hpp), in proportion to the speed.
//   friction: the rows below together, bounded by the normal impulse and a coefficient each (solvers/friction_block.hpp)
//     sliding: wrenches of collision_detection.hpp;   torsion, rolling: wrenches -+(axis; 0)    (3)
#pragma once

#include "revolute/model/parameters.hpp"
#include "revolute/stages/collision_detection.hpp"
#include "revolute/stages/constraint_row.hpp"
#include "revolute/stages/pair_softness.hpp"

namespace revolute {

// The axis of a rotational row.
REVOLUTE_HD inline int rotation_axis(int component) { return component - 3; }

template <class Real>
REVOLUTE_HD inline RowJacobian<Real> contact_jacobian(const Candidate& candidate,
                                                      const Contact<Real>& contact, int component) {
  if (component < 3)
    return wrench_row(candidate.link_a, contact.force_a[component], candidate.link_b,
                      contact.force_b[component]);
  const Force<Real> force = {contact.axis[rotation_axis(component)], zero3<Real>()};
  return wrench_row(candidate.link_a, -force, candidate.link_b, force);
}

// A tree that the contact moves, or -1 if both shapes are fixed.
REVOLUTE_HD inline int contact_tree(const Model& model, const Candidate& candidate) {
  const int link = candidate.link_b >= 0 ? candidate.link_b : candidate.link_a;
  return link < 0 ? -1 : model.dofs[link].tree;
}
template <class Real>
REVOLUTE_HD inline Real contact_time(const Model& model, const RowContext<Real>& at,
                                     const Candidate& candidate) {
  return at.impact_time ? at.impact_time[contact_tree(model, candidate)] : Real(0);
}

constexpr double least_acceleration = 0.1;  // of (1), in m/s^2
constexpr double most_softness = 0.01;      // of a normal that gives back its depth at full speed

// The impact of a contact's normal row.
template <class Real>
struct Bounce {
  MaskOf<Real> happens;
  Real before, acceleration;  // v, a
};

template <class Real>
REVOLUTE_HD inline Bounce<Real> bounce(const RowContext<Real>& at, Real gap, const RowJacobian<Real>& J) {
  Bounce<Real> out;
  const Real free = row_times(J, at.v_free, at.V_free);
  out.before = row_times(J, at.qvel, at.kinematics->V);
  out.acceleration = (free - out.before) / at.h;
  const Real least = maximum(abs(out.acceleration), Real(least_acceleration));
  out.happens = less(out.before, -(at.h * least)) & less(gap + at.h * free, Real(0));  // (1)
  return out;
}

// Whether the impact decides, rather than the gap.
template <class Real>
REVOLUTE_HD inline MaskOf<Real> is_reached(const Parameters<Real>& parameters, const RowContext<Real>& at,
                                           Real gap, const Bounce<Real>& hit, Real time) {
  const auto at_the_moment = less(Real(0), time) & less(abs(gap), free_fall_depth(at.h));
  return hit.happens & (less(Real(0), *parameters.restitution) | at_the_moment);
}
template <class Real>
REVOLUTE_HD inline Real gained_speed(const Parameters<Real>& parameters, const Bounce<Real>& hit, Real time) {
  return select(less(Real(0), *parameters.restitution), hit.acceleration * time, Real(0));
}

template <class Real>
REVOLUTE_HD RowValues<Real> contact_row(const Model& model, const Parameters<Real>& parameters,
                                        const RowContext<Real>& at, const Contact<Real>& contact,
                                        int component) {
  const Candidate& candidate = *contact.candidate;
  RowValues<Real> row;
  row.J = contact_jacobian(candidate, contact, component);
  row.bias = Real(0);
  row.bounces = false;
  row.kind = component == 0 ? RowKind::unilateral : RowKind::friction;
  if (component > 0) {
    row.bound = pair_friction(model, parameters, candidate, component - 1);
    return row;
  }
  const Bounce<Real> hit = bounce(at, contact.gap, row.J);
  const Real time = contact_time(model, at, candidate);
  const Real parting = *parameters.restitution * (hit.before + hit.acceleration * time) +
                       gained_speed(parameters, hit, time);  // (2): -v+
  const auto reached = is_reached(parameters, at, contact.gap, hit, time);
  row.bias = select(reached, parting, gap_bias(model, at.h, contact.gap));
  row.softness = select(reached, Real(0), Real(most_softness) * repair_share(model, at.h, contact.gap));
  row.bound = indicator<Real>(contact.active);
  row.bounces = any(hit.happens);
  return row;
}

// Reverse of (2); adds to J_bar, to the velocities' cotangents and to the cotangent of the impact's time.
template <class Real, class Bar>
REVOLUTE_HD void bounce_adjoint(const Parameters<Real>& parameters, const RowContext<Real>& at,
                                const RowJacobian<Real>& J, const Bounce<Real>& hit, Real time,
                                Bar parting_bar, RowJacobianCotangent<Bar>& J_bar, Force<Bar>* V_bar,
                                Force<Bar>* V_free_bar, Bar& time_bar, Parameters<Bar>& parameters_bar) {
  const Real e = *parameters.restitution;
  *parameters_bar.restitution += parting_bar * (hit.before + hit.acceleration * time);
  const Bar gained_bar = (indicator<Real>(less(Real(0), e)) + e) * parting_bar;
  time_bar += hit.acceleration * gained_bar;
  const Bar free_bar = time * gained_bar / at.h, before_bar = e * parting_bar - free_bar;
  add_row_transpose(J, before_bar, static_cast<Bar*>(nullptr), V_bar);
  add_row_transpose(J, free_bar, static_cast<Bar*>(nullptr), V_free_bar);
  add_row_cotangent(J, before_bar, at.qvel, at.kinematics->V, J_bar);
  add_row_cotangent(J, free_bar, at.v_free, at.V_free, J_bar);
}

// On entry J_bar of the row is complete except for the bounce, which is added here. V_bar and V_free_bar are cotangents of the
// links' velocities at the start of the step and without contact; time_bar [ntree] is that of the impact's times.
template <class Real, class Bar>
REVOLUTE_HD void contact_row_adjoint(const Model& model, const Parameters<Real>& parameters,
                                     const RowContext<Real>& at, const Contact<Real>& contact, int component,
                                     Bar bias_bar, Bar softness_bar, Bar bound_bar,
                                     RowJacobianCotangent<Bar>& J_bar, ContactCotangent<Bar>& contact_bar,
                                     Force<Bar>* V_bar, Force<Bar>* V_free_bar, Bar* time_bar,
                                     Parameters<Bar>& parameters_bar) {
  const Candidate& candidate = *contact.candidate;
  if (component > 0) pair_friction_adjoint(parameters, candidate, component - 1, bound_bar, parameters_bar);
  if (component >= 3) {
    contact_bar.axis[rotation_axis(component)] += J_bar.force_b.n - J_bar.force_a.n;
    return;
  }
  if (component == 0) {
    const RowJacobian<Real> J = contact_jacobian(candidate, contact, 0);
    const Bounce<Real> hit = bounce(at, contact.gap, J);
    const Real time = contact_time(model, at, candidate);
    const auto reached = is_reached(parameters, at, contact.gap, hit, time);
    const Real softness_slope = Real(most_softness) * repair_share_slope(model, at.h, contact.gap);
    contact_bar.gap +=
        select(reached, Bar(0),
               multiply_add(softness_slope, softness_bar, gap_slope(model, at.h, contact.gap) * bias_bar));
    if (any(reached))
      bounce_adjoint(parameters, at, J, hit, time, select(reached, bias_bar, Bar(0)), J_bar, V_bar,
                     V_free_bar, time_bar[contact_tree(model, candidate)], parameters_bar);
  }
  contact_bar.force_a[component] += J_bar.force_a;
  contact_bar.force_b[component] += J_bar.force_b;
}

}  // namespace revolute
