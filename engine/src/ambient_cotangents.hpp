// Turns cotangents by the tangent of qpos into cotangents by the numbers of qpos.
#pragma once

#include "revolute/model/joints/ball.hpp"
#include "revolute/model/model.hpp"

namespace revolute {

// Turns a cotangent by the tangent of qpos into one by qpos; the loss is taken to read quaternions as qpos / |qpos|.
template <class Real>
void ambient_cotangents(const Model& model, const Real* qpos, const Real* tangent, Real* ambient) {
  for (int j = 0; j < model.njnt; ++j) {
    const Joint& joint = model.joints[j];
    const int linear = linear_coordinates(joint.type);
    for (int i = 0; i < linear; ++i) ambient[joint.qpos + i] = tangent[joint.dof + i];
    if (joint.type > JointType::ball) continue;
    const Quaternion<Real> bar =
        raw_cotangent(qpos + joint.qpos + linear, load3(tangent + joint.dof + linear));
    Real* out = ambient + joint.qpos + linear;
    out[0] = bar.w;
    out[1] = bar.x;
    out[2] = bar.y;
    out[3] = bar.z;
  }
}

}  // namespace revolute
