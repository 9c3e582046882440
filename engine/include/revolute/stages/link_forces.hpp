// Forces on links from other sources than joints and constraints: gravity compensation and a medium's resistance (medium.hpp).
//
//   compensation:  the force -m g at the mass centre, for the compensated masses m (body_mass gravcomp)                (1)
// Source: MuJoCo, Computation, section Passive forces.
//
// Adjoint. Under the cotangent tau_bar of generalized forces, links move with T:  L = sum over links of T . (wrench).
#pragma once

#include "revolute/stages/medium.hpp"

namespace revolute {

template <class Real>
struct LinkForceSums {
  Force<Real>* compensation;  // [nv] on a link and those beyond it
  Force<Real>* medium;        // [nv]
  Force<Real>* applied;       // [nv] from applied_wrenches.hpp
  Real* lift;                 // [nv] generalized forces of the compensation

  LinkForceSums(const Model& model, Arena& arena)
      : compensation(arena.take<Force<Real>>(model.compensated ? model.nv : 0)),
        medium(arena.take<Force<Real>>(any_medium(model) ? model.nv : 0)),
        applied(arena.take<Force<Real>>(model.nv)),
        lift(arena.take<Real>(model.compensated ? model.nv : 0)) {}
};

REVOLUTE_HD inline bool any_link_forces(const Model& model) { return model.compensated || any_medium(model); }

template <class Real>
REVOLUTE_HD void link_forces(const Model& model, const Parameters<Real>& parameters,
                             const Kinematics<Real>& kin, LinkForceSums<Real>& out) {
  const Vector3<Real> up = -*parameters.gravity;
  if (model.compensated) {
    for (int k = 0; k < model.nv; ++k) {
      out.compensation[k] = zero_force<Real>();
      if (!model.dofs[k].has_inertia) continue;
      const MassMoment<Real>& carried = parameters.compensation[k];
      const Placement<Real>& link = kin.links[k];
      out.compensation[k] = {cross(link.R * carried.h + carried.m * link.p, up), carried.m * up};  // (1)
    }
    sum_towards_root(model, out.compensation);
    for (int k = 0; k < model.nv; ++k) out.lift[k] = dot(kin.S[k], out.compensation[k]);
  }
  if (!any_medium(model)) return;
  for (int k = 0; k < model.nv; ++k) out.medium[k] = zero_force<Real>();
  medium_wrenches(model, parameters, kin, out.medium);
  sum_towards_root(model, out.medium);
}

template <class Real>
REVOLUTE_HD void add_medium_forces(const Model& model, const Kinematics<Real>& kin,
                                   const LinkForceSums<Real>& forces, Real* tau) {
  for (int k = 0; any_medium(model) && k < model.nv; ++k) tau[k] += dot(kin.S[k], forces.medium[k]);
}

// Starts from the cotangent of lift; T is scratch. Adds to kin_bar and parameters_bar.
template <class Real, class Bar>
REVOLUTE_HD void compensation_adjoint(const Model& model, const Parameters<Real>& parameters,
                                      const Kinematics<Real>& kin, const LinkForceSums<Real>& at,
                                      const Bar* lift_bar, Motion<Bar>* T, KinematicsCotangent<Bar>& kin_bar,
                                      Parameters<Bar>& parameters_bar) {
  if (!model.compensated) return;
  const Vector3<Real> up = -*parameters.gravity;
  link_velocities(model, kin.S, lift_bar, T);
  for (int k = 0; k < model.nv; ++k) {
    kin_bar.S[k] += lift_bar[k] * at.compensation[k];
    if (!model.dofs[k].has_inertia) continue;
    const MassMoment<Real>& carried = parameters.compensation[k];
    const Placement<Real>& link = kin.links[k];
    const Vector3<Real> h = link.R * carried.h + carried.m * link.p;
    // T.w . (h x up) + m T.v . up
    const Vector3<Bar> h_bar = cross(up, T[k].w);
    parameters_bar.gravity[0] -= cross(T[k].w, h) + carried.m * T[k].v;
    MassMoment<Bar>& bar = parameters_bar.compensation[k];
    bar.m += dot(T[k].v, up) + dot(link.p, h_bar);
    bar.h += transpose_times(link.R, h_bar);
    kin_bar.moment[k] += Force<Bar>{cross(h, h_bar), carried.m * h_bar};
  }
}

}  // namespace revolute
