// Adhesion: actuators that pull a body towards the bodies it touches (MuJoCo's transmission to a body).
//
//   J = -(1/n) sum over the n contacts of the body of  J_c;   the row J_c of the contact's normal drives a and b apart      (1)
// Contacts within the gap of their pair count as well. The length is zero; without a contact, so is J.
// Source: MuJoCo, mj_transmission.
//
// Adjoint. J_bar is a generalized velocity, under which the contact's links move with W_a, W_b:
//   J_bar.J = -(1/n) sum of (f_a.W_a + f_b.W_b)                                               (2)
// Not differentiated: the set of contacts.
#pragma once

#include "revolute/stages/collision_detection.hpp"
#include "revolute/stages/transmission.hpp"

namespace revolute {

namespace detail {

// Calls visit(contact, 1 if it exists, else 0) for the contacts of a body.
template <class Real, class Visit>
REVOLUTE_HD void visit_contacts_of(const Model& model, const Contacts<Real>& contacts, int body,
                                   const Visit& visit) {
  for (int i = 0; i < contacts.count; ++i) {
    const Contact<Real>& contact = contacts.list[i];
    const Candidate& candidate = *contact.candidate;
    if (model.geoms[candidate.geom_a].body == body || model.geoms[candidate.geom_b].body == body)
      visit(contact, indicator<Real>(contact.near));
  }
}
// -1/n, or 0 without contacts
template <class Real>
REVOLUTE_HD Real adhesion_scale(const Model& model, const Contacts<Real>& contacts, int body) {
  Real count(0);
  visit_contacts_of(model, contacts, body, [&](const Contact<Real>&, const Real& there) { count += there; });
  const auto none = less(count, Real(0.5));
  return select(none, Real(0), Real(-1) / select(none, Real(1), count));
}

}  // namespace detail

// Fills the rows of J that transmissions() leaves empty.
template <class Real>
REVOLUTE_HD void adhesion(const Model& model, const Kinematics<Real>& kin, const Contacts<Real>& contacts,
                          const Real* qvel, Transmissions<Real>& out) {
  for (int t = model.ntendon; model.adhesive && t < model.ntransmission; ++t) {
    const Transmission& of = model.transmissions[t];
    if (of.type != TransmissionType::body) continue;
    const TransmissionDofs dofs = dofs_of(model, of);
    Real* const J = out.J + of.entry;
    const Real scale = detail::adhesion_scale(model, contacts, of.body);
    detail::visit_contacts_of(model, contacts, of.body, [&](const Contact<Real>& contact, const Real& there) {
      const Real share = scale * there;
      const auto add = [&](int link, const Force<Real>& force) {
        visit_movers(model, dofs, link, [&](int k, int i) { J[i] += share * dot(kin.S[k], force); });  // (1)
      };
      add(contact.candidate->link_a, contact.force_a[0]);
      add(contact.candidate->link_b, contact.force_b[0]);
    });
    out.velocity[t] = row_product(dofs, J, qvel);
  }
}

// Starts from the cotangents of J that transmissions_adjoint() leaves; adds to kin_bar.
template <class Real, class Bar>
REVOLUTE_HD void adhesion_adjoint(const Model& model, const Kinematics<Real>& kin,
                                  const Contacts<Real>& contacts, TransmissionsCotangent<Bar>& bar,
                                  KinematicsCotangent<Bar>& kin_bar) {
  for (int t = model.ntendon; model.adhesive && t < model.ntransmission; ++t) {
    const Transmission& of = model.transmissions[t];
    if (of.type != TransmissionType::body) continue;
    const TransmissionDofs dofs = dofs_of(model, of);
    const Bar* const J_bar = bar.row(of);
    const Real scale = detail::adhesion_scale(model, contacts, of.body);
    detail::visit_contacts_of(model, contacts, of.body, [&](const Contact<Real>& contact, const Real& there) {
      const Real share = scale * there;
      ContactCotangent<Bar> contact_bar;
      contact_bar.clear();
      const auto pull_back = [&](int link, const Force<Real>& force, Force<Bar>& force_bar) {
        Motion<Bar> W = zero_motion<Bar>();
        visit_movers(model, dofs, link, [&](int k, int i) {
          W += J_bar[i] * kin.S[k];
          kin_bar.S[k] += (share * J_bar[i]) * force;
        });
        force_bar = share * Force<Bar>{W.w, W.v};  // (2)
      };
      pull_back(contact.candidate->link_a, contact.force_a[0], contact_bar.force_a[0]);
      pull_back(contact.candidate->link_b, contact.force_b[0], contact_bar.force_b[0]);
      collision_detection_adjoint(model, kin, contact, contact_bar, kin_bar);
    });
  }
}

}  // namespace revolute
