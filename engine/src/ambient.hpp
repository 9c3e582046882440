// Cotangents by the components of qpos from those by its tangent.
#pragma once

#include "revolute/model/joints/ball.hpp"

namespace revolute {

template <class Real>
Real quaternion_length(const Real* q) {
  return sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
}

// tangent [nv], out [nq]; the model reads quaternions as q / |q|.
template <class Real>
void to_ambient(const Model& model, const Real* qpos, const Real* tangent, Real* out) {
  for (int j = 0; j < model.njnt; ++j) {
    const Joint& joint = model.joints[j];
    const int linear = linear_coordinates(joint.type);
    for (int i = 0; i < linear; ++i) out[joint.qpos + i] = tangent[joint.dof + i];
    if (joint.type > JointType::ball) continue;
    const Real* q = qpos + joint.qpos + linear;
    const Quaternion<Real> bar = ambient_cotangent(
        load_quaternion(q), (Real(1) / quaternion_length(q)) * load3(tangent + joint.dof + linear));
    Real* to = out + joint.qpos + linear;
    to[0] = bar.w;
    to[1] = bar.x;
    to[2] = bar.y;
    to[3] = bar.z;
  }
}

}  // namespace revolute
