// Cotangents by the numbers of qpos, from those by its tangent.
#pragma once

#include "revolute/model/joints/ball.hpp"
#include "revolute/model/model.hpp"

namespace revolute {

template <class Real>
Real quaternion_length(const Real* q) {
  return sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
}

// The cotangent by the tangent of qpos as one by qpos, where qpos / |qpos| is read.
template <class Real>
void ambient_cotangents(const Model& model, const Real* qpos, const Real* tangent, Real* ambient) {
  for (int j = 0; j < model.njnt; ++j) {
    const Joint& joint = model.joints[j];
    const int linear = linear_coordinates(joint.type);
    for (int i = 0; i < linear; ++i) ambient[joint.qpos + i] = tangent[joint.dof + i];
    if (joint.type > JointType::ball) continue;
    const Real* q = qpos + joint.qpos + linear;
    const Quaternion<Real> bar = ambient_cotangent(
        load_quaternion(q), (Real(1) / quaternion_length(q)) * load3(tangent + joint.dof + linear));
    Real* out = ambient + joint.qpos + linear;
    out[0] = bar.w;
    out[1] = bar.x;
    out[2] = bar.y;
    out[3] = bar.z;
  }
}

}  // namespace revolute
