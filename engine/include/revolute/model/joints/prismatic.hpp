// Slide: one length along the z axis of the joint frame. Its motion, spring and integration are those of a hinge.
#pragma once

#include "revolute/model/joints/revolute.hpp"

namespace revolute {

struct PrismaticJoint : RevoluteJoint {
  // R = R_p E,  p = p_p + R_p r + q z,  S = (0; z)
  template <class Real>
  REVOLUTE_HD static void place(const Joint& joint, const Placement<Real>& parent, const Real* qpos,
                                Placement<Real>* links, Motion<Real>* S) {
    Placement<Real>& link = links[joint.dof];
    link.R = parent.R * matrix3<Real>(joint.rotation);
    const Vector3<Real> axis = link.R.column(2);
    link.p = parent.p + parent.R * vector3<Real>(joint.position) +
             (qpos[joint.qpos] - Real(joint.reference)) * axis;
    S[joint.dof] = {zero3<Real>(), axis};
  }
};

}  // namespace revolute
