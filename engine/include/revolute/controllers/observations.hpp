// The observations of a policy: one struct per kind, each with
//   size       number of values in all
//   observe    writes them
//   adjoint    adds their cotangents to those of the state (in tangent coordinates) and of the other inputs.
// Measurements (stages/measurement.hpp) are one kind: a further probe needs no change here. Another new kind needs one
// struct, one case of with_observation(), and its name in client/revolute/contract/controllers.py.
#pragma once

#include "revolute/model/joints/ball.hpp"
#include "revolute/model/model.hpp"

namespace revolute {

enum class ObservationKind : int { qpos, qvel, previous_ctrl, goal, measured };

// One part of a policy's observations: `size` numbers of its kind, from `first` on.
struct Observed {
  ObservationKind kind;
  int first, size;
};

// All that can be observed at the start of a period.
template <class Real>
struct Observable {
  const Real *qpos, *qvel, *previous_ctrl, *goal, *measured;
};
template <class Real>
struct ObservableCotangent {
  Real *qpos, *qvel, *previous_ctrl, *goal, *measured;  // qpos by its tangent
};

// Coordinates of hinges and slides and positions of free joints as they are. For each quaternion the first two columns of its
// rotation matrix R, which q and -q share. A tangent d of q moves column R e by R (d x e), so d_bar += e x R' column_bar.
struct QposObservation {
  static int size(const Model& model) {
    int count = model.nq;
    for (int j = 0; j < model.njnt; ++j) count += model.joints[j].type <= JointType::ball ? 2 : 0;
    return count;
  }
  template <class Real>
  static void observe(const Model& model, const Observable<Real>& at, const Observed&, Real* out) {
    for (int j = 0; j < model.njnt; ++j) {
      const Joint& joint = model.joints[j];
      const int linear = linear_coordinates(joint.type);
      for (int i = 0; i < linear; ++i) *out++ = at.qpos[joint.qpos + i];
      if (joint.type > JointType::ball) continue;
      const Matrix3<Real> R = rotation_matrix(load_quaternion(at.qpos + joint.qpos + linear));
      for (int axis = 0; axis < 2; ++axis)
        for (int row = 0; row < 3; ++row) *out++ = R(row, axis);
    }
  }
  template <class Real>
  static void adjoint(const Model& model, const Observable<Real>& at, const Observed&, const Real* out_bar,
                      const ObservableCotangent<Real>& bar) {
    const Real zero(0), one(1);
    const Vector3<Real> axes[2] = {{one, zero, zero}, {zero, one, zero}};
    for (int j = 0; j < model.njnt; ++j) {
      const Joint& joint = model.joints[j];
      const int linear = linear_coordinates(joint.type);
      for (int i = 0; i < linear; ++i) bar.qpos[joint.dof + i] += *out_bar++;
      if (joint.type > JointType::ball) continue;
      const Matrix3<Real> R = rotation_matrix(load_quaternion(at.qpos + joint.qpos + linear));
      for (const Vector3<Real>& axis : axes) {
        add3(bar.qpos + joint.dof + linear, cross(axis, transpose_times(R, load3(out_bar))));
        out_bar += 3;
      }
    }
  }
};

// Copies the numbers of an array. Derived::of gives the array, or its cotangent.
template <class Derived>
struct PlainObservation {
  template <class Real>
  static void observe(const Model&, const Observable<Real>& at, const Observed& part, Real* out) {
    const Real* from = Derived::of(at) + part.first;
    for (int i = 0; i < part.size; ++i) out[i] = from[i];
  }
  template <class Real>
  static void adjoint(const Model&, const Observable<Real>&, const Observed& part, const Real* out_bar,
                      const ObservableCotangent<Real>& bar) {
    Real* to = Derived::of(bar) + part.first;
    for (int i = 0; i < part.size; ++i) to[i] += out_bar[i];
  }
};
struct QvelObservation : PlainObservation<QvelObservation> {
  static int size(const Model& model) { return velocities(model); }
  template <class Arrays>
  static auto of(const Arrays& arrays) {
    return arrays.qvel;
  }
};
// The control of the previous period; zero in the first period.
struct PreviousCtrlObservation : PlainObservation<PreviousCtrlObservation> {
  static int size(const Model& model) { return model.nu; }
  template <class Arrays>
  static auto of(const Arrays& arrays) {
    return arrays.previous_ctrl;
  }
};
// The caller's own numbers, such as a phase or a target; as many as the caller gives.
struct GoalObservation : PlainObservation<GoalObservation> {
  template <class Arrays>
  static auto of(const Arrays& arrays) {
    return arrays.goal;
  }
};
// Poses, velocities and sensors; as many numbers as the probes give. Those that depend on the control use the control of the
// previous period, which acts until the policy answers.
struct MeasuredObservation : PlainObservation<MeasuredObservation> {
  template <class Arrays>
  static auto of(const Arrays& arrays) {
    return arrays.measured;
  }
};

template <class Call>
auto with_observation(ObservationKind kind, const Call& call) {
  switch (kind) {
    case ObservationKind::qpos:
      return call(QposObservation());
    case ObservationKind::qvel:
      return call(QvelObservation());
    case ObservationKind::previous_ctrl:
      return call(PreviousCtrlObservation());
    case ObservationKind::goal:
      return call(GoalObservation());
    default:
      return call(MeasuredObservation());
  }
}

// All observations of one kind; `given` is the number of values of a goal or of the probes.
inline Observed whole(const Model& model, ObservationKind kind, int first, int given) {
  switch (kind) {
    case ObservationKind::qpos:
      return {kind, 0, QposObservation::size(model)};
    case ObservationKind::qvel:
      return {kind, 0, QvelObservation::size(model)};
    case ObservationKind::previous_ctrl:
      return {kind, 0, PreviousCtrlObservation::size(model)};
    default:
      return {kind, first, given};
  }
}

}  // namespace revolute
