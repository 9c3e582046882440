// Multibody quantities straight from MuJoCo's arrays: no links, no reference points, no recursion over
// inertias.
//
// Poses follow MuJoCo's documentation of joints: a body starts at its parent's pose times (body_pos,
// body_quat); each of its joints then slides it along, or turns it about the anchor. A degree of freedom is a
// twist (w; v) at the world's origin.
#pragma once

#include "dense.hpp"
#include "models.hpp"

namespace revolute::check {

struct ReferenceBody {
  Matrix3<double> R;
  Point position;
  std::vector<int> dofs;  // all that move it
};

struct ReferencePose {
  std::vector<ReferenceBody> bodies;
  std::vector<Motion<double>> axes;  // [nv], at the world's origin
};

inline Matrix3<double> rotation_of(const double* q) {
  return rotation_matrix(normalized(Quaternion<double>{q[0], q[1], q[2], q[3]}));
}

inline void reference_joint(const MujocoArrays& a, int j, const Doubles& qpos, ReferenceBody& body,
                            ReferencePose& pose) {
  const double* q = &qpos[a.jnt_qposadr[j]];
  const auto add_axis = [&](const Point& w, const Point& v) {
    body.dofs.push_back(int(pose.axes.size()));
    pose.axes.push_back({w, v});
  };
  const Point anchor = vector3<double>(&a.jnt_pos[3 * j]), at = body.position + body.R * anchor;
  const Point axis = body.R * vector3<double>(&a.jnt_axis[3 * j]);
  const double moved = q[0] - a.qpos0[a.jnt_qposadr[j]];
  switch (JointType(a.jnt_type[j])) {
    case JointType::free:
      body.position = {q[0], q[1], q[2]};
      body.R = rotation_of(q + 3);
      for (int i = 0; i < 3; ++i)
        add_axis({0, 0, 0}, {i == 0 ? 1.0 : 0.0, i == 1 ? 1.0 : 0.0, i == 2 ? 1.0 : 0.0});
      for (int i = 0; i < 3; ++i) add_axis(body.R.column(i), cross(body.position, body.R.column(i)));
      return;
    case JointType::ball:
      body.R = body.R * rotation_of(q);
      for (int i = 0; i < 3; ++i) add_axis(body.R.column(i), cross(at, body.R.column(i)));
      break;
    case JointType::prismatic:
      body.position += moved * axis;
      return add_axis({0, 0, 0}, axis);
    case JointType::revolute:
      body.R = rotation_matrix(exponential(moved * axis)) * body.R;
      add_axis(axis, cross(at, axis));
  }
  body.position = at - body.R * anchor;
}

inline ReferencePose reference_pose(const MujocoArrays& a, const Doubles& qpos) {
  ReferencePose pose;
  pose.bodies.push_back({{{1, 0, 0, 0, 1, 0, 0, 0, 1}}, {0, 0, 0}, {}});
  int joint = 0;
  for (int b = 1; b < a.nbody; ++b) {
    ReferenceBody body = pose.bodies[a.body_parentid[b]];
    body.position += body.R * vector3<double>(&a.body_pos[3 * b]);
    body.R = body.R * rotation_of(&a.body_quat[4 * b]);
    for (; joint < a.njnt && a.jnt_bodyid[joint] == b; ++joint) reference_joint(a, joint, qpos, body, pose);
    pose.bodies.push_back(body);
  }
  return pose;
}

inline Point mass_centre(const MujocoArrays& a, const ReferencePose& pose, int b) {
  return pose.bodies[b].position + pose.bodies[b].R * vector3<double>(&a.body_ipos[3 * b]);
}
// rotational inertia about the mass centre, world axes
inline Dense rotational_inertia(const MujocoArrays& a, const ReferencePose& pose, int b) {
  const Dense R = dense(pose.bodies[b].R * rotation_of(&a.body_iquat[4 * b]));
  Dense principal(3, 3);
  for (int i = 0; i < 3; ++i) principal(i, i) = a.body_inertia[3 * b + i];
  return R * principal * transposed(R);
}
// 6 x nv: angular velocity of the body, velocity of its point that is now at `point`
inline Dense jacobian(const ReferencePose& pose, int b, const Point& point) {
  Dense J(6, int(pose.axes.size()));
  for (int k : pose.bodies[b].dofs) {
    const Motion<double>& S = pose.axes[k];
    const Doubles entries = numbers(Motion<double>{S.w, S.v + cross(S.w, point)});
    for (int i = 0; i < 6; ++i) J(i, k) = entries[i];
  }
  return J;
}
// about the mass centre
inline Dense body_inertia_matrix(const MujocoArrays& a, const ReferencePose& pose, int b) {
  return blocks(rotational_inertia(a, pose, b), Dense(3, 3), Dense(3, 3), a.body_mass[b] * identity(3));
}
// sum of J' I J over the bodies, with armature and h damping on the diagonal
inline Dense mass_matrix(const MujocoArrays& a, const ReferencePose& pose) {
  Dense M(a.nv, a.nv);
  for (int b = 1; b < a.nbody; ++b) {
    const Dense J = jacobian(pose, b, mass_centre(a, pose, b));
    M = M + transposed(J) * body_inertia_matrix(a, pose, b) * J;
  }
  const Doubles diagonal = mass_diagonal(a);
  for (int k = 0; k < a.nv; ++k) M(k, k) += diagonal[k];
  return M;
}
// Momentum of each body: about its mass centre, and linear.
inline Dense body_momentum(const MujocoArrays& a, const ReferencePose& pose, int b, const Doubles& qvel) {
  return body_inertia_matrix(a, pose, b) * (jacobian(pose, b, mass_centre(a, pose, b)) * column(qvel));
}
// Sum over all bodies, moment about the world's origin.
inline Doubles total_momentum(const MujocoArrays& a, const Doubles& qpos, const Doubles& qvel) {
  const ReferencePose pose = reference_pose(a, qpos);
  Doubles total(6, 0.0);
  for (int b = 1; b < a.nbody; ++b) {
    const Dense own = body_momentum(a, pose, b, qvel);
    const Point linear = vector3<double>(&own.entries[3]);
    const Doubles moved = numbers(
        Force<double>{vector3<double>(&own.entries[0]) + cross(mass_centre(a, pose, b), linear), linear});
    for (int i = 0; i < 6; ++i) total[i] += moved[i];
  }
  return total;
}
inline double kinetic_energy(const MujocoArrays& a, const Doubles& qpos, const Doubles& qvel) {
  const ReferencePose pose = reference_pose(a, qpos);
  double sum = 0;
  for (int b = 1; b < a.nbody; ++b)
    sum += 0.5 * inner((jacobian(pose, b, mass_centre(a, pose, b)) * column(qvel)).entries,
                       body_momentum(a, pose, b, qvel).entries);
  return sum;
}
inline double potential_energy(const MujocoArrays& a, const Doubles& qpos) {
  const ReferencePose pose = reference_pose(a, qpos);
  double sum = 0;
  for (int b = 1; b < a.nbody; ++b)
    sum -= a.body_mass[b] * dot(vector3<double>(a.gravity.data()), mass_centre(a, pose, b));
  return sum;
}

}  // namespace revolute::check
