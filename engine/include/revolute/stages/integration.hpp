// Integration: qpos+ = qpos (+) h qvel+, joint by joint (semi-implicit Euler; exponential map for quaternions).
//
// Adjoint: qvel+_bar += h (d/dv)' qpos+_bar, and qpos_bar is qpos+_bar carried back, all in tangent coordinates.
#pragma once

#include "revolute/model/joints/free.hpp"
#include "revolute/model/joints/prismatic.hpp"

namespace revolute {

// How long each tree moves: `all`, plus `sign` times the tree's own number if `of_trees` is given.
template <class Real>
struct Duration {
  Real all;
  const Real* of_trees;
  double sign;

  REVOLUTE_HD Real of(const Model& model, const Joint& joint) const {
    return of_trees ? all + Real(sign) * of_trees[model.dofs[joint.dof].tree] : all;
  }
};

template <class Real>
REVOLUTE_HD void integration(const Model& model, const Duration<Real>& duration, const Real* qpos,
                             const Real* qvel_next, Real* qpos_next) {
  for (int j = 0; j < model.njnt; ++j) {
    const Joint& joint = model.joints[j];
    const Real h = duration.of(model, joint);
    switch (joint.type) {
      case JointType::free:
        FreeJoint::integrate(joint, h, qpos, qvel_next, qpos_next);
        break;
      case JointType::ball:
        BallJoint::integrate(joint, h, qpos, qvel_next, qpos_next);
        break;
      default:
        RevoluteJoint::integrate(joint, h, qpos, qvel_next, qpos_next);
    }
  }
}

template <class Real>
REVOLUTE_HD void integration(const Model& model, Real h, const Real* qpos, const Real* qvel_next,
                             Real* qpos_next) {
  integration(model, Duration<Real>{h, nullptr, 0}, qpos, qvel_next, qpos_next);
}

template <class Real, class Bar>
REVOLUTE_HD void integration_adjoint(const Model& model, const Duration<Real>& duration,
                                     const Real* qvel_next, const Bar* qpos_next_bar, Bar* qpos_bar,
                                     Bar* qvel_next_bar) {
  for (int j = 0; j < model.njnt; ++j) {
    const Joint& joint = model.joints[j];
    const Real h = duration.of(model, joint);
    switch (joint.type) {
      case JointType::free:
        FreeJoint::integrate_adjoint(joint, h, qvel_next, qpos_next_bar, qpos_bar, qvel_next_bar);
        break;
      case JointType::ball:
        BallJoint::integrate_adjoint(joint, h, qvel_next, qpos_next_bar, qpos_bar, qvel_next_bar);
        break;
      default:
        RevoluteJoint::integrate_adjoint(joint, h, qvel_next, qpos_next_bar, qpos_bar, qvel_next_bar);
    }
  }
}

template <class Real, class Bar>
REVOLUTE_HD void integration_adjoint(const Model& model, Real h, const Real* qvel_next,
                                     const Bar* qpos_next_bar, Bar* qpos_bar, Bar* qvel_next_bar) {
  integration_adjoint(model, Duration<Real>{h, nullptr, 0}, qvel_next, qpos_next_bar, qpos_bar,
                      qvel_next_bar);
}

}  // namespace revolute
