// Hinge: one angle about the z axis of the joint frame.
#pragma once

#include "revolute/model/joints/placement.hpp"
#include "revolute/scalar/math.hpp"

namespace revolute {

struct RevoluteJoint {
  // R = R_p E R_z(q),  p = p_p + R_p r,  S = (z; p x z)
  template <class Real>
  REVOLUTE_HD static void place(const Joint& joint, const Placement<Real>& parent, const Real* qpos,
                                Placement<Real>* links, Motion<Real>* S) {
    const Matrix3<Real> E = parent.R * matrix3<Real>(joint.rotation);
    Real s, c;
    sincos(qpos[joint.qpos] - Real(joint.reference), s, c);
    Placement<Real>& link = links[joint.dof];
    for (int i = 0; i < 3; ++i) {
      link.R(i, 0) = c * E(i, 0) + s * E(i, 1);
      link.R(i, 1) = c * E(i, 1) - s * E(i, 0);
      link.R(i, 2) = E(i, 2);
    }
    link.p = parent.p + parent.R * vector3<Real>(joint.position);
    const Vector3<Real> axis = E.column(2);
    S[joint.dof] = {axis, cross(link.p, axis)};
  }

  template <class Real>
  REVOLUTE_HD static void integrate(const Joint& joint, Real h, const Real* qpos, const Real* qvel,
                                    Real* qpos_next) {
    qpos_next[joint.qpos] = qpos[joint.qpos] + h * qvel[joint.dof];
  }
  // cotangents are by the tangent of the configuration (nv)
  template <class Real, class Bar>
  REVOLUTE_HD static void integrate_adjoint(const Joint& joint, Real h, const Real*, const Bar* next_bar,
                                            Bar* qpos_bar, Bar* qvel_bar) {
    qpos_bar[joint.dof] += next_bar[joint.dof];
    qvel_bar[joint.dof] += h * next_bar[joint.dof];
  }

  // generalized spring force -stiffness (q - rest), `rest` as qpos
  template <class Real>
  REVOLUTE_HD static void add_spring(const Joint& joint, Real stiffness, const Real* rest, const Real* qpos,
                                     Real* force) {
    force[joint.dof] -= stiffness * (qpos[joint.qpos] - rest[joint.qpos]);
  }
  template <class Real, class Bar>
  REVOLUTE_HD static void add_spring_adjoint(const Joint& joint, Real stiffness, const Real* rest,
                                             const Real* qpos, const Bar* force_bar, Bar* qpos_bar,
                                             Bar& stiffness_bar, Bar* rest_bar) {
    stiffness_bar -= force_bar[joint.dof] * (qpos[joint.qpos] - rest[joint.qpos]);
    qpos_bar[joint.dof] -= stiffness * force_bar[joint.dof];
    rest_bar[joint.qpos] += stiffness * force_bar[joint.dof];
  }
};

}  // namespace revolute
