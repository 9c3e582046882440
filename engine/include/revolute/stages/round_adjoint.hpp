// The reverse of the formulae that both contact models have in common: a sphere against a sphere, a capsule or a box.
#pragma once

#include "revolute/collision/sphere_box.hpp"
#include "revolute/collision/sphere_capsule.hpp"
#include "revolute/collision/sphere_sphere.hpp"
#include "revolute/stages/contact_list.hpp"

namespace revolute {

// Moments about the world's origin. Reads links.
template <class Real, class Bar>
REVOLUTE_HD PairMoments<Bar> round_adjoint(const Model& model, const Kinematics<Real>& kin,
                                           const Contact<Real>& contact, const ContactPoint<Bar>& bar) {
  const Candidate& candidate = *contact.candidate;
  const Geom &a = model.geoms[candidate.geom_a], &b = model.geoms[candidate.geom_b];
  const Vector3<Real> at_a = world_point(model, kin, a.link, a.position);
  const Real radius_a(a.radius);
  switch (candidate.pair) {
    case Pair::sphere_sphere: {
      const Vector3<Real> at_b = world_point(model, kin, b.link, b.position);
      Vector3<Bar> a_bar, b_bar;
      sphere_sphere_adjoint(at_a, radius_a, at_b, contact.at, bar, a_bar, b_bar);
      return {force_at(at_a, a_bar), force_at(at_b, b_bar)};
    }
    case Pair::sphere_capsule:
      return sphere_capsule_adjoint(at_a, radius_a, segment(model, kin, b), contact.at, bar);
    default:
      return sphere_box_adjoint(at_a, radius_a, box(model, kin, b), contact.at, bar);
  }
}

}  // namespace revolute
