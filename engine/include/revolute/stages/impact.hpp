// Impact: when within the step a contact with restitution is reached, and the configuration at that moment.
//
// For a contact that bounces (rows/contact.hpp) with gap g and normal speed v < 0 at the start of the step
//   t_c = g/|v|  (0 where it is closed already),   t = min over contacts, at most h            (1)
//   qpos_t = qpos (+) t qvel                                                                   (2)
// The step is then taken from qpos_t, and its end velocity moves it for the rest of the time, h - t. Impulses act where and
// when the bodies meet, so momenta are kept as in any step, and derivatives see the time of the impact: with a bounce at
// the start of the step they would be those of a frozen event.
//
// Adjoint: t_bar goes to the contacts that are first, in equal parts where several are (a box that lands flat):
//   g_bar += t_bar/|v|,   v_bar += t_bar t/|v|                                                 (3)
// Tangents go the same way: that of t is the mean of those of the contacts that are first.
// Not differentiated: which contacts are first; t = h and t = 0 are kinks.
#pragma once

#include "revolute/stages/constraint_rows.hpp"
#include "revolute/stages/integration.hpp"

namespace revolute {

template <class Real>
struct Impact {
  bool any;    // some environment has an impact inside of this step
  Real time;   // 0 where there is none
  Real* qpos;  // [nq] at that time

  Impact(const Model& model, Arena& arena) : any(false), time(0), qpos(arena.take<Real>(model.nq)) {}
};

// (1) for one contact; h where it does not bounce.
template <class Real>
REVOLUTE_HD inline Real time_of_impact(const Parameters<Real>& parameters, const RowContext<Real>& at,
                                       const Contact<Real>& contact, const RowJacobian<Real>& J,
                                       Bounce<Real>& hit) {
  hit = bounce(parameters, at, contact.gap, J);
  const Real speed = select(hit.happens, -hit.before, Real(1));
  return select(hit.happens, minimum(maximum(contact.gap, Real(0)) / speed, at.h), at.h);
}

// Whether the time of impact depends on a contact that is reached at t: it is one of the first, and at no kink.
template <class Real>
REVOLUTE_HD inline MaskOf<Real> is_first(const RowContext<Real>& at, const Contact<Real>& contact,
                                         const Bounce<Real>& hit, Real t, Real first) {
  return hit.happens & less(Real(0), contact.gap) & less(t, at.h) & less_equal(t, first);
}

// The transpose of (3): a time of impact with its tangents.
template <class Real>
Real with_tangents(const Model& model, const Parameters<Real>& parameters, const RowContext<Real>& at,
                   const Contacts<Real>& contacts, double time) {
  Real firsts(0), changes(0);
  Bounce<Real> hit;
  for (int c = 0; c < contacts.count; ++c) {
    const Contact<Real>& contact = contacts.list[c];
    const RowJacobian<Real> J = contact_jacobian(model.candidates[contact.candidate], contact, 0);
    const Real t = time_of_impact(parameters, at, contact, J, hit);
    const auto first = is_first(at, contact, hit, t, Real(time));
    firsts += indicator<Real>(first);
    changes += select(first, tangents_of(t), Real(0));
  }
  return Real(time) + changes / maximum(firsts, Real(1));
}

// `rows` are those at qpos. Fills out.any, out.time and, when there is an impact, out.qpos.
template <class Real>
REVOLUTE_HD void find_impact(const Model& model, const Parameters<Real>& parameters,
                             const RowContext<Real>& at, const Contacts<Real>& contacts,
                             const ConstraintRows<Real>& rows, Impact<Real>& out) {
  out.any = false;
  out.time = Real(0);
  if (!rows.any_bounce) return;
  Real first = at.h;
  MaskOf<Real> bounces = less(at.h, Real(0));
  for (int r = 0; r < rows.count; ++r) {
    if (rows.origin[r].source != RowSource::contact || rows.origin[r].component != 0) continue;
    Bounce<Real> hit;
    first =
        minimum(first, time_of_impact(parameters, at, contacts.list[rows.origin[r].index], rows.J[r], hit));
    bounces = bounces | hit.happens;
  }
  out.time = select(bounces, first, Real(0));
  if constexpr (HasTangents<Real>::value)
    out.time = with_tangents(model, parameters, at, contacts, get_lane(out.time, 0));
  const auto inside = less(Real(0), out.time);
  out.any = any(inside);
  if (!out.any) return;
  integration(model, out.time, at.qpos, at.qvel, out.qpos);  // (2)
  for (int i = 0; i < model.nq; ++i) out.qpos[i] = select(inside, out.qpos[i], at.qpos[i]);
}

// (3). `at`, `contacts` are those at the start of the step. Adds to qpos_bar and qvel_bar; uses up kin_bar and V_bar.
template <class Real, class Bar>
REVOLUTE_HD void find_impact_adjoint(const Model& model, const Parameters<Real>& parameters,
                                     const RowContext<Real>& at, const Contacts<Real>& contacts,
                                     const Impact<Real>& impact, Bar time_bar,
                                     KinematicsCotangent<Bar>& kin_bar, Force<Bar>* V_bar, Bar* qpos_bar,
                                     Bar* qvel_bar, Parameters<Bar>& parameters_bar) {
  const auto sets_time = [&](int c, RowJacobian<Real>& J, Bounce<Real>& hit) {
    const Contact<Real>& contact = contacts.list[c];
    J = contact_jacobian(model.candidates[contact.candidate], contact, 0);
    const Real t = time_of_impact(parameters, at, contact, J, hit);
    return is_first(at, contact, hit, t, impact.time);
  };
  Real firsts(0);
  RowJacobian<Real> J;
  Bounce<Real> hit;
  for (int c = 0; c < contacts.count; ++c) firsts += indicator<Real>(sets_time(c, J, hit));
  const Bar share = time_bar / maximum(firsts, Real(1));
  kin_bar.clear(model);
  for (int k = 0; k < model.nv; ++k) V_bar[k] = zero_force<Bar>();
  for (int c = 0; c < contacts.count; ++c) {
    const auto first = sets_time(c, J, hit);
    if (!any(first)) continue;
    const Bar gap_bar = select(first, share / select(first, -hit.before, Real(1)), Bar(0)),
              speed_bar = impact.time * gap_bar;
    RowJacobianCotangent<Bar> J_bar = {zero_force<Bar>(), zero_force<Bar>(), {}};
    add_row_cotangent(J, speed_bar, at.qvel, at.kinematics->V, J_bar);
    add_row_transpose(J, speed_bar, static_cast<Bar*>(nullptr), V_bar);
    ContactCotangent<Bar> contact_bar;
    contact_bar.clear();
    contact_bar.gap = gap_bar;
    contact_bar.force_a[0] = J_bar.force_a;
    contact_bar.force_b[0] = J_bar.force_b;
    collision_detection_adjoint(model, *at.kinematics, contacts.list[c], contact_bar, kin_bar);
  }
  sum_towards_root(model, V_bar);
  for (int k = 0; k < model.nv; ++k) {
    qvel_bar[k] += dot(at.kinematics->S[k], V_bar[k]);
    kin_bar.S[k] += at.qvel[k] * V_bar[k];
  }
  kinematics_adjoint(model, *at.kinematics, kin_bar, qpos_bar, parameters_bar);
}

}  // namespace revolute
