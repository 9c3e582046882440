// States of models, tangents between them, and the workspaces of stages.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "check.hpp"
#include "model_maker.hpp"
#include "revolute/instances.hpp"

namespace revolute::check {

// What joints add to the mass matrix under the Euler integrator: armature + h damping.
inline Doubles mass_diagonal(const MujocoArrays& arrays) {
  Doubles out = arrays.dof_armature;
  for (int k = 0; k < arrays.nv; ++k) out[k] += arrays.timestep * arrays.dof_damping[k];
  return out;
}

// qpos moved by a tangent, in the model's coordinates: q exp(d) for quaternions.
template <class Real>
void displace(const Model& model, const Real* qpos, const Real* tangent, Real* out) {
  for (int j = 0; j < model.njnt; ++j) {
    const Joint& joint = model.joints[j];
    const int linear = linear_coordinates(joint.type);
    for (int i = 0; i < linear; ++i) out[joint.qpos + i] = qpos[joint.qpos + i] + tangent[joint.dof + i];
    if (joint.type > JointType::ball) continue;
    const Real* q = qpos + joint.qpos + linear;
    const Quaternion<Real> turned = normalized(Quaternion<Real>{q[0], q[1], q[2], q[3]}) *
                                    exponential(load3(tangent + joint.dof + linear));
    std::copy_n(&turned.w, 4, out + joint.qpos + linear);
  }
}
inline Doubles displaced(const Model& model, const Doubles& qpos, const Doubles& tangent) {
  Doubles out(model.nq);
  displace(model, qpos.data(), tangent.data(), out.data());
  return out;
}
// Adds the tangent that moves `from` to `to`.
template <class Real>
void tangent_between(const Model& model, const Doubles& from, const Real* to, Real* out) {
  for (int j = 0; j < model.njnt; ++j) {
    const Joint& joint = model.joints[j];
    const int linear = linear_coordinates(joint.type);
    for (int i = 0; i < linear; ++i) out[joint.dof + i] += to[joint.qpos + i] - Real(from[joint.qpos + i]);
    if (joint.type > JointType::ball) continue;
    const double* q = &from[joint.qpos + linear];
    const Quaternion<Real> start = {Real(q[0]), Real(q[1]), Real(q[2]), Real(q[3])};
    add3(out + joint.dof + linear, logarithm(conjugate(start) * load_quaternion(to + joint.qpos + linear)));
  }
}
inline Doubles random_qpos(const ModelStorage& storage, const MujocoArrays& arrays, Random& random,
                           double spread) {
  Doubles tangent = random.normals(arrays.nv);
  for (double& value : tangent) value *= spread;
  return displaced(storage.model(), arrays.qpos0, tangent);
}

// A state of crowd(): limits reached and not, shapes in touch within a millimetre, the pile falling onto what
// is below.
struct State {
  Doubles qpos, qvel;
};
inline State crowd_state(const ModelStorage& storage, const MujocoArrays& arrays, Random& random) {
  const Model& model = storage.model();
  Doubles tangent = random.normals(arrays.nv), qvel = random.normals(arrays.nv);
  for (int k = 0; k < arrays.nv; ++k) {
    tangent[k] *= 0.0005;
    qvel[k] *= 0.2;
  }
  const double legs[] = {0.05, -0.049, 0.02, 0.01};
  for (int k = 0; k < 4; ++k) tangent[6 + k] += legs[k];
  for (int j = 0; j < model.njnt; ++j)
    if (model.joints[j].type == JointType::free)
      qvel[model.joints[j].dof + 2] -= 0.8 * arrays.qpos0[model.joints[j].qpos + 2];
  qvel[6] += 0.5;
  qvel[7] -= 0.5;
  return {displaced(model, arrays.qpos0, tangent), qvel};
}

// An object that takes its arrays from an arena of its own. The memory starts as NaN: what is read unwritten
// shows up.
template <class Object>
class Owned {
 public:
  explicit Owned(const Model& model) : bytes_(measure(model)), arena_(bytes_), object_(model, poisoned()) {}
  Object* operator->() { return &object_; }
  Object& operator*() { return object_; }

 private:
  static std::size_t measure(const Model& model) {
    Arena counting;
    Object sized(model, counting);
    return counting.used();
  }
  Arena& poisoned() {
    std::memset(arena_.take<char>(0), 0xff, bytes_);
    return arena_;
  }
  std::size_t bytes_;
  Arena arena_;
  Object object_;
};

// The model's own parameters in every environment of a pack.
template <class Real>
void load_defaults(const ModelStorage& storage, Parameters<Real>& out) {
  ParameterPointers values;
  for (int p = 0; p < parameter_count; ++p) values[p] = storage.parameters().defaults[p].data();
  for (int lane = 0; lane < Width<Real>::value; ++lane)
    load_parameters(storage.parameters(), values, lane, storage.model(), out);
}

}  // namespace revolute::check
