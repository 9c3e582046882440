// Feedback: a control that depends on the state.
//
//   e = [qpos (-) qpos_ref; qvel - qvel_ref]     in tangent coordinates, nv + nqvel numbers            (1)
//   u = ctrl + K e                                                                                      (2)
//
// The difference of two quaternions is d = log(conj(q_ref) q), the rotation vector of the shorter way. With the left Jacobian
// J_l of the rotation group, the cotangent by the tangent of q is J_l(d)^-1 times that by d, and the one of q_ref is
// -J_l(-d)^-1 times it. (3)
//
// Adjoint of (2):  e_bar = K' u_bar,  K_bar += u_bar e'.                                                (4)
#pragma once

#include "revolute/arena.hpp"
#include "revolute/model/joints/ball.hpp"
#include "revolute/model/model.hpp"

namespace revolute {

// Length of e. Its part of qvel includes the activations.
inline int error_size(const Model& model) { return model.nv + velocities(model); }

// The arrays of one period, and the error that (1) leaves for the adjoint.
template <class Real>
struct Feedback {
  Real *gain, *qpos, *qvel;  // [nu, nv + nqvel], [nq], [nqvel]
  Real* error;               // [nv + nqvel]

  Feedback(const Model& model, Arena& arena)
      : gain(arena.take<Real>(model.nu * error_size(model))),
        qpos(arena.take<Real>(model.nq)),
        qvel(arena.take<Real>(velocities(model))),
        error(arena.take<Real>(error_size(model))) {}
};

// Cotangents of the arrays of one period; qpos by its tangent.
template <class Real>
struct FeedbackCotangent {
  Real *gain, *qpos, *qvel;  // [nu, nv + nqvel], [nv], [nqvel]
};

// (1)
template <class Real>
REVOLUTE_HD void feedback_error(const Model& model, const Real* qpos, const Real* qvel, Feedback<Real>& at) {
  for (int k = 0; k < velocities(model); ++k) at.error[model.nv + k] = qvel[k] - at.qvel[k];
  for (int j = 0; j < model.njnt; ++j) {
    const Joint& joint = model.joints[j];
    const int linear = linear_coordinates(joint.type);
    for (int i = 0; i < linear; ++i) at.error[joint.dof + i] = qpos[joint.qpos + i] - at.qpos[joint.qpos + i];
    if (joint.type > JointType::ball) continue;
    const Quaternion<Real> start = load_quaternion(at.qpos + joint.qpos + linear);
    const Quaternion<Real> end = load_quaternion(qpos + joint.qpos + linear);
    const Vector3<Real> d = logarithm(conjugate(start) * end);
    Real* out = at.error + joint.dof + linear;
    out[0] = d.x;
    out[1] = d.y;
    out[2] = d.z;
  }
}

// (2)
template <class Real>
REVOLUTE_HD void add_feedback(const Model& model, const Feedback<Real>& at, Real* ctrl) {
  const int size = error_size(model);
  for (int a = 0; a < model.nu; ++a)
    for (int i = 0; i < size; ++i) ctrl[a] = multiply_add(at.gain[a * size + i], at.error[i], ctrl[a]);
}

// (3) and (4): adds to the cotangents of the state, in tangent coordinates, and of the arrays.
template <class Real>
REVOLUTE_HD void feedback_adjoint(const Model& model, const Feedback<Real>& at, const Real* ctrl_bar,
                                  Real* error_bar, Real* qpos_bar, Real* qvel_bar,
                                  const FeedbackCotangent<Real>& bar) {
  const int size = error_size(model);
  for (int i = 0; i < size; ++i) error_bar[i] = Real(0);
  for (int a = 0; a < model.nu; ++a)
    for (int i = 0; i < size; ++i) {
      error_bar[i] = multiply_add(at.gain[a * size + i], ctrl_bar[a], error_bar[i]);
      bar.gain[a * size + i] = multiply_add(ctrl_bar[a], at.error[i], bar.gain[a * size + i]);
    }
  for (int k = 0; k < velocities(model); ++k) {
    qvel_bar[k] += error_bar[model.nv + k];
    bar.qvel[k] -= error_bar[model.nv + k];
  }
  for (int j = 0; j < model.njnt; ++j) {
    const Joint& joint = model.joints[j];
    const int linear = linear_coordinates(joint.type);
    for (int i = joint.dof; i < joint.dof + linear; ++i) {
      qpos_bar[i] += error_bar[i];
      bar.qpos[i] -= error_bar[i];
    }
    if (joint.type > JointType::ball) continue;
    const int turn = joint.dof + linear;
    const Vector3<Real> d = load3(at.error + turn), d_bar = load3(error_bar + turn);
    add3(qpos_bar + turn, left_jacobian_inverse_times(d, d_bar));
    add3(bar.qpos + turn, Real(-1) * left_jacobian_inverse_times(Real(-1) * d, d_bar));
  }
}

}  // namespace revolute
