// Free: position in the world, then a ball. Linear velocity is that of the body origin in world axes, angular velocity is
// in body axes (MuJoCo's convention). The body origin is its tree's reference point. A free joint has no spring.
#pragma once

#include "revolute/model/joints/ball.hpp"

namespace revolute {

struct FreeJoint {
  template <class Real>
  REVOLUTE_HD static void place(const Joint& joint, const Real* qpos, Placement<Real>* links,
                                Motion<Real>* S) {
    Placement<Real>& link = links[joint.dof + 5];
    link.R = rotation_matrix(load_quaternion(qpos + joint.qpos + 3));
    link.p = zero3<Real>();
    const Real o(0), l(1);
    S[joint.dof] = {zero3<Real>(), {l, o, o}};
    S[joint.dof + 1] = {zero3<Real>(), {o, l, o}};
    S[joint.dof + 2] = {zero3<Real>(), {o, o, l}};
    BallJoint::place_axes(link, S + joint.dof + 3);
  }
  template <class Real>
  REVOLUTE_HD static void integrate(const Joint& joint, Real h, const Real* qpos, const Real* qvel,
                                    Real* qpos_next) {
    for (int i = 0; i < 3; ++i) qpos_next[joint.qpos + i] = qpos[joint.qpos + i] + h * qvel[joint.dof + i];
    BallJoint::turn(h, qpos + joint.qpos + 3, qvel + joint.dof + 3, qpos_next + joint.qpos + 3);
  }
  template <class Real, class Bar>
  REVOLUTE_HD static void integrate_adjoint(const Joint& joint, Real h, const Real* qvel, const Bar* next_bar,
                                            Bar* qpos_bar, Bar* qvel_bar) {
    const int k = joint.dof;
    for (int i = 0; i < 3; ++i) {
      qpos_bar[k + i] += next_bar[k + i];
      qvel_bar[k + i] += h * next_bar[k + i];
    }
    BallJoint::turn_adjoint(h, qvel + k + 3, next_bar + k + 3, qpos_bar + k + 3, qvel_bar + k + 3);
  }
};

}  // namespace revolute
