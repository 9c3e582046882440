// Forces and torques that a caller applies to bodies (xfrc_applied), in world axes at the bodies' mass centres x.
//
// A body with f, n gets the wrench (n + x x f; f) about the reference point of its tree,      tau += S' wrench      (1)
// Source: MuJoCo, mj_xfrcAccumulate. These wrenches do not move the world and mocap bodies.
//
// Adjoint. Under the cotangent tau_bar links move with T = (w; v):  L = sum of T . wrench, so
//   f_bar = v + w x x,   n_bar = w,   x_bar = f x w                                           (2)
// and S_bar is tau_bar times the sum of the wrenches beyond the joint. The axes of f and n do not turn with the body.
#pragma once

#include "revolute/stages/link_points.hpp"

namespace revolute {

// A body's mass centre in its link's frame.
template <class Real>
REVOLUTE_HD inline Vector3<Real> mass_centre_in_link(const Model& model, const Parameters<Real>& parameters,
                                                     int body) {
  const Body& of = model.bodies[body];
  return vector3<Real>(of.position) + matrix3<Real>(of.rotation) * load3(parameters.ipos + 3 * body);
}

namespace detail {

template <class Real>
struct AppliedWrench {
  Vector3<Real> x, f, n;

  REVOLUTE_HD Force<Real> at_reference() const {
    Force<Real> out = force_at(x, f);
    out.n += n;
    return out;
  }
};
template <class Real>
REVOLUTE_HD AppliedWrench<Real> applied_wrench(const Model& model, const Parameters<Real>& parameters,
                                               const Kinematics<Real>& kin, int body) {
  const Placement<Real>& link = kin.links[model.bodies[body].link];
  const Real* const given = parameters.input(Input::xfrc_applied) + 6 * body;
  return {link.p + link.R * mass_centre_in_link(model, parameters, body), load3(given), load3(given + 3)};
}

}  // namespace detail

// Calls visit(body, link, wrench about the link's reference point) for the bodies that can be pushed.
template <class Real, class Visit>
REVOLUTE_HD void visit_applied_wrenches(const Model& model, const Parameters<Real>& parameters,
                                        const Kinematics<Real>& kin, const Visit& visit) {
  if (!parameters.input(Input::xfrc_applied)) return;
  for (int b = 1; b < model.nbody; ++b)
    if (model.bodies[b].link >= 0)
      visit(b, model.bodies[b].link, detail::applied_wrench(model, parameters, kin, b).at_reference());
}

// (1); F [nv] gets the sums of the wrenches beyond the joints. Without any applied wrench F is not touched.
template <class Real>
REVOLUTE_HD void add_applied_wrenches(const Model& model, const Parameters<Real>& parameters,
                                      const Kinematics<Real>& kin, Force<Real>* F, Real* tau) {
  if (!parameters.input(Input::xfrc_applied)) return;
  for (int k = 0; k < model.nv; ++k) F[k] = zero_force<Real>();
  visit_applied_wrenches(model, parameters, kin,
                         [&](int, int link, const Force<Real>& wrench) { F[link] += wrench; });
  sum_towards_root(model, F);
  for (int k = 0; k < model.nv; ++k) tau[k] += dot(kin.S[k], F[k]);
}

// (2) for one body that moves with T. Adds to kin_bar and parameters_bar.
template <class Real, class Bar>
REVOLUTE_HD void applied_wrench_adjoint(const Model& model, const Parameters<Real>& parameters,
                                        const Kinematics<Real>& kin, int body, const Motion<Bar>& T,
                                        KinematicsCotangent<Bar>& kin_bar, Parameters<Bar>& parameters_bar) {
  const int link = model.bodies[body].link;
  const detail::AppliedWrench<Real> at = detail::applied_wrench(model, parameters, kin, body);
  Bar* const bar = parameters_bar.input(Input::xfrc_applied) + 6 * body;
  add3(bar, T.v + cross(T.w, at.x));
  add3(bar + 3, T.w);
  const Vector3<Bar> x_bar = cross(at.f, T.w);
  kin_bar.moment[link] += force_at(at.x, x_bar);
  add3(parameters_bar.ipos + 3 * body, transpose_times(matrix3<Real>(model.bodies[body].rotation),
                                                       transpose_times(kin.links[link].R, x_bar)));
}

// Starts from the cotangent of tau. F must be as the forward pass left it; T is scratch.
template <class Real, class Bar>
REVOLUTE_HD void applied_wrenches_adjoint(const Model& model, const Parameters<Real>& parameters,
                                          const Kinematics<Real>& kin, const Force<Real>* F,
                                          const Bar* tau_bar, Motion<Bar>* T,
                                          KinematicsCotangent<Bar>& kin_bar,
                                          Parameters<Bar>& parameters_bar) {
  if (!parameters.input(Input::xfrc_applied)) return;
  link_velocities(model, kin.S, tau_bar, T);
  for (int k = 0; k < model.nv; ++k) kin_bar.S[k] += tau_bar[k] * F[k];
  for (int b = 1; b < model.nbody; ++b)
    if (model.bodies[b].link >= 0)
      applied_wrench_adjoint(model, parameters, kin, b, T[model.bodies[b].link], kin_bar, parameters_bar);
}

}  // namespace revolute
