// Sums over the bodies of a subtree: mass centre, momentum, and the force that moves the subtree.
//
// Take the inertia I of a body, and V and A of its link, about its tree's reference point o. Moved to the world's origin,
//   h = sum m (o + c),  m = sum m,    P = sum I V,                                            (1)
//   F = sum I A + V x* I V - (wrenches of contacts, connect and weld on the bodies, and applied wrenches)  (2)
// Adjoint, from a cotangent M = (M_n; M_f) of P or F. It is a motion and becomes (M_n; M_f + M_n x o) at o:
//   P:  V_bar += I M,   I_bar += (M, V)                                                       (3)
//   F:  A_bar += I M,   V_bar -= M x* I V + I (V x M),   I_bar += (M, A) - (V x M, V)          (4)
// as bilinear forms. Source: Featherstone 2008, section 5.3.
#pragma once

#include "revolute/stages/measured_frames.hpp"

namespace revolute {

// Mass, mass times mass centre, and momentum about the world's origin.
template <class Real>
struct SubtreeSums {
  Real mass;
  Vector3<Real> h;
  Force<Real> momentum;
};

template <class Real>
REVOLUTE_HD inline RigidInertia<Real> world_inertia(const Parameters<Real>& parameters,
                                                    const Kinematics<Real>& kin, int link, int body) {
  if (is_world(link)) return parameters.bodies[body];
  return to_world(parameters.bodies[body], placement(kin, link).R, placement(kin, link).p);
}
// Moves a force from o to the world's origin, and a cotangent back.
template <class Real>
REVOLUTE_HD inline Force<Real> at_world_origin(const Vector3<Real>& o, const Force<Real>& F) {
  return {F.n + cross(o, F.f), F.f};
}
template <class Real>
REVOLUTE_HD inline Motion<Real> at_reference(const Vector3<Real>& o, const Motion<Real>& M) {
  return {M.w, M.v + cross(M.w, o)};
}

// Calls visit(body, link, inertia about the link's origin) for the bodies of the probe's subtree.
template <class Real, class Visit>
REVOLUTE_HD void visit_subtree(const Model& model, const Parameters<Real>& parameters,
                               const Kinematics<Real>& kin, const Probes& probes, const Probe& probe,
                               const Visit& visit) {
  for (int i = 0; i < probe.bodies; ++i) {
    const int b = probes.bodies[probe.first_body + i], link = model.bodies[b].link;
    visit(b, link, world_inertia(parameters, kin, link, b));
  }
}

// (1)
template <class Real>
REVOLUTE_HD SubtreeSums<Real> subtree_sums(const Model& model, const Parameters<Real>& parameters,
                                           const Kinematics<Real>& kin, const Probes& probes,
                                           const Probe& probe) {
  SubtreeSums<Real> out = {Real(0), zero3<Real>(), zero_force<Real>()};
  visit_subtree(model, parameters, kin, probes, probe, [&](int, int link, const RigidInertia<Real>& I) {
    const Vector3<Real> o = tree_origin(model, kin, link);
    out.mass += I.m;
    out.h += I.h + I.m * o;
    if (link >= 0) out.momentum += at_world_origin(o, I * kin.V[link]);
  });
  return out;
}

// Passes the cotangent of a body's inertia on.
template <class Real>
REVOLUTE_HD inline void body_inertia_adjoint(const Kinematics<Real>& kin, int link, int body,
                                             const RigidInertia<Real>& I, const RigidInertia<Real>& I_bar,
                                             LinkCotangents<Real>& out, Parameters<Real>& parameters_bar) {
  RigidInertia<Real>& own = parameters_bar.bodies[body];
  if (is_world(link)) {
    own.m += I_bar.m;
    own.h += I_bar.h;
    own.I += I_bar.I;
    return;
  }
  *out.kinematics.moment_of(link) += displacement_moment(I, I_bar);
  to_world_adjoint(I_bar, placement(kin, link).R, placement(kin, link).p, own);
}

// (3), and the cotangents of mass and h
template <class Real>
REVOLUTE_HD void subtree_adjoint(const Model& model, const Parameters<Real>& parameters,
                                 const Kinematics<Real>& kin, const Probes& probes, const Probe& probe,
                                 const Real& mass_bar, const Vector3<Real>& h_bar,
                                 const Motion<Real>& momentum_bar, LinkCotangents<Real>& out,
                                 Parameters<Real>& parameters_bar) {
  visit_subtree(model, parameters, kin, probes, probe, [&](int b, int link, const RigidInertia<Real>& I) {
    const Vector3<Real> o = tree_origin(model, kin, link);
    RigidInertia<Real> I_bar = {mass_bar + dot(o, h_bar), h_bar, zero_symmetric3<Real>()};
    if (link >= 0) {
      const Motion<Real> M = at_reference(o, momentum_bar);
      out.V[link] += I * M;
      add_bilinear_adjoint(I_bar, Real(1), M, kin.V[link]);
    }
    body_inertia_adjoint(kin, link, b, I, I_bar, out, parameters_bar);
  });
}

// (2) without the wrenches, for a subtree that moves
template <class Real>
REVOLUTE_HD Force<Real> subtree_inertial_force(const Model& model, const Parameters<Real>& parameters,
                                               const Kinematics<Real>& kin, const Motion<Real>* A,
                                               const Probes& probes, const Probe& probe) {
  Force<Real> out = zero_force<Real>();
  visit_subtree(model, parameters, kin, probes, probe, [&](int, int link, const RigidInertia<Real>& I) {
    const Force<Real> F = I * A[link] + cross_force(kin.V[link], I * kin.V[link]);
    out += at_world_origin(tree_origin(model, kin, link), F);
  });
  return out;
}
// (4)
template <class Real>
REVOLUTE_HD void subtree_inertial_force_adjoint(const Model& model, const Parameters<Real>& parameters,
                                                const Kinematics<Real>& kin, const Motion<Real>* A,
                                                const Probes& probes, const Probe& probe,
                                                const Motion<Real>& force_bar, LinkCotangents<Real>& out,
                                                Parameters<Real>& parameters_bar) {
  visit_subtree(model, parameters, kin, probes, probe, [&](int b, int link, const RigidInertia<Real>& I) {
    const Motion<Real>& V = kin.V[link];
    const Motion<Real> M = at_reference(tree_origin(model, kin, link), force_bar), VxM = cross_motion(V, M);
    RigidInertia<Real> I_bar = zero_inertia<Real>();
    out.A[link] += I * M;
    out.V[link] -= cross_force(M, I * V) + I * VxM;
    add_bilinear_adjoint(I_bar, Real(1), M, A[link]);
    add_bilinear_adjoint(I_bar, Real(-1), VxM, V);
    body_inertia_adjoint(kin, link, b, I, I_bar, out, parameters_bar);
  });
}

}  // namespace revolute
