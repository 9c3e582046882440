// Collision detection as a function of the configuration, and its adjoint, for the harness of check.hpp.
#pragma once

#include "models.hpp"
#include "packing.hpp"
#include "revolute/stages/collision_detection.hpp"

namespace revolute::check {

// in: tangent of qpos. out: gap, axes and wrenches of every contact, about reference points that stay where
// they are at zero.
struct ContactStage {
  const ModelStorage& storage;
  Doubles qpos;

  const Model& model() const { return storage.model(); }
  int n_out() const { return 46 * model().ncandidate; }
  template <class Real>
  void run(const Real* in, Parameters<Real>& parameters, Kinematics<Real>& kin,
           Contacts<Real>& contacts) const {
    load_defaults(storage, parameters);
    std::vector<Real> start(qpos.begin(), qpos.end()), moved(model().nq), still(model().nv, Real(0));
    displace(model(), start.data(), in, moved.data());
    kinematics(model(), parameters, moved.data(), still.data(), kin);
    collision_detection(model(), kin, kin.V, Real(model().timestep), contacts);
  }
  template <class Real>
  Force<Real> about_fixed_point(const Kinematics<Real>& kin, int link, const Force<Real>& force) const {
    const int address = link < 0 ? -1 : model().tree_qpos[model().dofs[link].tree];
    if (address < 0) return force;
    return {force.n + cross(tree_origin(model(), kin, link) - vector3<Real>(&qpos[address]), force.f),
            force.f};
  }
  template <class Real>
  void operator()(const Real* in, Real* out) const {
    Owned<Parameters<Real>> parameters(model());
    Owned<Kinematics<Real>> kin(model());
    Owned<Contacts<Real>> contacts(model());
    run(in, *parameters, *kin, *contacts);
    for (int c = 0; c < contacts->count; ++c) {
      const Contact<Real>& contact = contacts->list[c];
      Writer<Real> to{out + 46 * (contact.candidate - model().candidates)};
      // numbers of a masked contact may be anything
      const auto acting = [&](const Vector3<Real>& x) { return select(contact.active, x, zero3<Real>()); };
      const Candidate& candidate = *contact.candidate;
      to.add(select(contact.active, contact.gap, Real(0)));
      for (const Vector3<Real>& axis : contact.axis) to.add(acting(axis));
      const auto add_force = [&](int link, const Force<Real>& force) {
        const Force<Real> about = about_fixed_point(*kin, link, force);
        to.add(acting(about.n));
        to.add(acting(about.f));
      };
      for (const Force<Real>& force : contact.force_a) add_force(candidate.link_a, force);
      for (const Force<Real>& force : contact.force_b) add_force(candidate.link_b, force);
    }
  }
};
struct ContactStageAdjoint {
  const ContactStage& of;
  template <class Real>
  void operator()(const Real* in, const Real* out_bar, Real* in_bar) const {
    const Model& model = of.model();
    Owned<Parameters<Real>> parameters(model), parameters_bar(model);
    Owned<Kinematics<Real>> kin(model);
    Owned<Contacts<Real>> contacts(model);
    Owned<KinematicsCotangent<Real>> kin_bar(model);
    of.run(in, *parameters, *kin, *contacts);
    parameters_bar->clear(model);
    kin_bar->clear(model);
    for (int c = 0; c < contacts->count; ++c) {
      Reader<Real> from{out_bar + 46 * (contacts->list[c].candidate - model.candidates)};
      const Real active = indicator<Real>(contacts->list[c].active);
      ContactCotangent<Real> bar;
      bar.clear();
      bar.gap = active * from.scalar();
      for (Vector3<Real>& axis : bar.axis) axis = active * from.vector();
      for (Force<Real>& force : bar.force_a) force = active * from.force();
      for (Force<Real>& force : bar.force_b) force = active * from.force();
      collision_detection_adjoint(model, *kin, contacts->list[c], bar, *kin_bar);
    }
    kinematics_adjoint(model, *parameters, *kin, *kin_bar, in_bar, *parameters_bar);
  }
};

}  // namespace revolute::check
