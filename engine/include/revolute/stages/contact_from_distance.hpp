// Contact from a distance: a weak force between shapes that are near each other but do not touch. Only the backward pass of the
// contact model "mujoco" sees it, so that a gradient shows a way to a contact that the motion has not made.
//
// The motion has no such force. Its derivative is that of a spring and damper along the normal. For a pair with gap g between
// its margin m and m + d, and with I(0), K, B of the pair's solimp and solref at no violation (impedance.hpp),
//   df = -(I(0) s^2/weight) (K dg + B J dv),   s = 1 - (g - m)/d                             (1)
// This is the answer of the pair's own soft contact at g = m. It falls to zero, with its slope, at g = m + d. It has no
// friction, and acts at fixed normal and point. Adjoint, with w of soft_stage.hpp (1):
//   t = -(I(0) s^2/weight) J w,   g_bar += K t,   v_bar += J' B t                              (2)
// Pairs that touch (g < m) have their own derivative and no part of this one.
// Source: Paulus et al., Hard Contacts with Soft Gradients, arXiv 2506.14186, for the idea; (1) is ours.
#pragma once

#include "revolute/stages/acceleration.hpp"
#include "revolute/stages/collision_detection.hpp"
#include "revolute/stages/impedance.hpp"
#include "revolute/stages/pair_softness.hpp"
#include "revolute/stages/rows/contact.hpp"

namespace revolute {

template <class Real>
struct ContactFromDistance {
  double distance;       // d
  const Model* widened;  // the model with d added to the margins of its pairs
  mutable Contacts<Real> contacts;

  ContactFromDistance(double reach, const Model& model, Arena& arena)
      : distance(reach), widened(&model), contacts(model, arena) {}
};

// Adds to F_v (cotangents of the links' velocities), qvel_bar and kin_bar; W are the links' motions under w.
template <class Real, class Bar>
REVOLUTE_HD void contact_from_distance_adjoint(const Model& model, const Parameters<Real>& parameters,
                                               const Real& h, const Kinematics<Real>& kin,
                                               const ContactFromDistance<Real>& far, const Bar* w,
                                               const Motion<Bar>* W, Force<Bar>* F_v, Bar* qvel_bar,
                                               KinematicsCotangent<Bar>& kin_bar) {
  Contacts<Real>& contacts = far.contacts;
  collision_detection(*far.widened, kin, kin.V, Real(0), contacts);
  for (int i = 0; i < contacts.count; ++i) {
    const Contact<Real>& contact = contacts.list[i];
    const Candidate& candidate = *contact.candidate;
    const double margin = candidate.margin - far.distance;
    const auto apart = contact.active & !less(contact.gap, Real(margin));
    if (!any(apart) || !(candidate.weight > 0)) continue;
    const PairSoftness<Real> softness = pair_softness(model, parameters, candidate);
    const Impedance<Real> I =
        impedance(softness.solimp, Real(0), static_cast<ImpedanceSlopes<Real>*>(nullptr));
    const Reference<Real> of = reference(model, h, softness.solref, I.most);
    const Real s = Real(1) - (contact.gap - Real(margin)) / Real(far.distance);
    const Real strength = select(apart, I.value * s * s / Real(candidate.weight), Real(0));
    const RowJacobian<Real> J = contact_jacobian(candidate, contact, 0);
    const Bar t = -(strength * row_times(J, w, W));  // (2)
    add_row_transpose(J, Bar(of.damping * t), qvel_bar, F_v);
    ContactCotangent<Bar> contact_bar;
    contact_bar.clear();
    contact_bar.gap = of.stiffness * t;
    collision_detection_adjoint(*far.widened, kin, contact, contact_bar, kin_bar);
  }
}

}  // namespace revolute
