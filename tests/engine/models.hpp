// Small models for the tests, built from MuJoCo's arrays as the loader would give them, and the workspaces to
// run them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <vector>

#include "check.hpp"
#include "revolute/model/model_storage.hpp"
#include "revolute/step.hpp"

namespace revolute::check {

using Point = Vector3<double>;

constexpr int plane_geom = 0, sphere_geom = 2, capsule_geom = 3, ellipsoid_geom = 4, cylinder_geom = 5,
              box_geom = 6, mesh_geom = 7;  // MuJoCo's numbers

// Appends bodies, joints, shapes in MuJoCo's order: depth first, a body's joints directly after it.
class ModelMaker {
 public:
  MujocoArrays arrays;

  ModelMaker() {
    arrays.timestep = 0.01;
    arrays.iterations = 30;
    arrays.erp = 0.2;
    arrays.margin = 0.01;
    arrays.gravity = {0, 0, -9.81};
    add_body(-1, {0, 0, 0}, {0, 0, 0}, 0);
  }

  // A body with a mass centre off its origin and turned axes of inertia; `turn` is a rotation vector.
  int add_body(int parent, Point position, Point turn, double mass) {
    MujocoArrays& a = arrays;
    a.body_parentid.push_back(std::max(parent, 0));
    append(a.body_pos, position);
    append(a.body_quat, exponential(turn));
    append(a.body_ipos, Point{0.03, -0.02, 0.04});
    append(a.body_iquat, exponential(Point{0.3, -0.4, 0.2}));
    a.body_mass.push_back(mass);
    append(a.body_inertia, mass * Point{0.02, 0.03, 0.04});
    return a.nbody++;
  }
  void centre_mass(int body, Point inertia) {
    for (int i = 0; i < 3; ++i) arrays.body_ipos[3 * body + i] = 0;
    set(arrays.body_inertia, body, inertia);
  }

  // A joint on the body that was added last.
  int add_joint(JointType type, Point anchor, Point axis) {
    MujocoArrays& a = arrays;
    const int body = a.nbody - 1;
    a.jnt_type.push_back(int(type));
    a.jnt_bodyid.push_back(body);
    a.jnt_qposadr.push_back(a.nq);
    a.jnt_dofadr.push_back(a.nv);
    append(a.jnt_pos, anchor);
    append(a.jnt_axis, axis);
    a.jnt_stiffness.push_back(0);
    a.jnt_limited.push_back(0);
    a.jnt_range.insert(a.jnt_range.end(), {0, 0});
    if (type == JointType::free)
      append(a.qpos0, Point{a.body_pos[3 * body], a.body_pos[3 * body + 1], a.body_pos[3 * body + 2]});
    if (type == JointType::free || type == JointType::ball) {
      append(a.qpos0, Quaternion<double>{1, 0, 0, 0});
    } else {
      a.qpos0.push_back(0);
    }
    a.nq = int(a.qpos0.size());
    a.nv += type == JointType::free ? 6 : type == JointType::ball ? 3 : 1;
    a.qpos_spring.resize(a.nq);
    std::copy(a.qpos0.begin() + a.jnt_qposadr.back(), a.qpos0.end(),
              a.qpos_spring.begin() + a.jnt_qposadr.back());
    for (Doubles* array : {&a.dof_armature, &a.dof_damping, &a.dof_frictionloss}) array->resize(a.nv, 0.0);
    return a.njnt++;
  }
  int dof(int joint) const { return arrays.jnt_dofadr[joint]; }
  void limit(int joint, double lower, double upper) {
    arrays.jnt_limited[joint] = 1;
    arrays.jnt_range[2 * joint] = lower;
    arrays.jnt_range[2 * joint + 1] = upper;
  }
  // Distinct, non-zero values of all that acts along single degrees of freedom; free joints stay free.
  void add_joint_dynamics() {
    for (int j = 0; j < arrays.njnt; ++j) {
      if (arrays.jnt_type[j] == int(JointType::free)) continue;
      arrays.jnt_stiffness[j] = 2 + j;
      const int last = j + 1 < arrays.njnt ? arrays.jnt_dofadr[j + 1] : arrays.nv;
      for (int k = arrays.jnt_dofadr[j]; k < last; ++k) {
        arrays.dof_armature[k] = 0.01 + 0.002 * k;
        arrays.dof_damping[k] = 0.1 + 0.03 * k;
      }
    }
  }

  int add_geom(int body, int type, Point size, Point position = {0, 0, 0}, Point turn = {0, 0, 0},
               double friction = 0.5) {
    MujocoArrays& a = arrays;
    a.geom_type.push_back(type);
    a.geom_bodyid.push_back(body);
    append(a.geom_pos, position);
    append(a.geom_quat, exponential(turn));
    append(a.geom_size, size);
    a.geom_friction.push_back(friction);
    a.geom_rbound.push_back(std::sqrt(dot(size, size)));
    a.hull_adr.push_back(int(a.hull_vert.size() / 3));
    a.hull_num.push_back(0);
    a.hull_polyadr.push_back(int(a.hull_polyvertnum.size()));
    a.hull_polynum.push_back(0);
    return a.ngeom++;
  }
  int add_mesh(int body, std::initializer_list<Point> vertices, Point position, Point turn,
               double friction = 0.5) {
    const int geom = add_geom(body, mesh_geom, {0, 0, 0}, position, turn, friction);
    for (const Point& vertex : vertices) {
      append(arrays.hull_vert, vertex);
      arrays.geom_rbound[geom] = std::max(arrays.geom_rbound[geom], std::sqrt(dot(vertex, vertex)));
    }
    arrays.hull_num[geom] = int(vertices.size());
    return geom;
  }
  // The faces of the mesh that was added last: corners in order, turning either way.
  void add_faces(std::initializer_list<std::initializer_list<int>> faces) {
    for (const auto& face : faces) {
      arrays.hull_polyvertnum.push_back(int(face.size()));
      arrays.hull_polyvert.insert(arrays.hull_polyvert.end(), face.begin(), face.end());
      ++arrays.hull_polynum.back();
    }
  }
  // friction NaN: the larger of the two coefficients
  void add_pair(int geom_a, int geom_b, double friction = std::numeric_limits<double>::quiet_NaN(),
                int from = 0, int condim = 3) {
    arrays.pair_geom1.push_back(geom_a);
    arrays.pair_geom2.push_back(geom_b);
    append(arrays.pair_friction, Point{friction, 0.02, 0.003});
    arrays.pair_mu_from.push_back(from);
    arrays.pair_condim.push_back(condim);
  }
  // MuJoCo's data: connect, weld: by bodies; joint: polynomial of joint b, which may be -1
  void add_equality(EqualityType type, int a, int b, Doubles data) {
    data.resize(11, 0.0);
    arrays.eq_type.push_back(int(type));
    arrays.eq_obj1.push_back(a);
    arrays.eq_obj2.push_back(b);
    arrays.eq_data.insert(arrays.eq_data.end(), data.begin(), data.end());
  }

  // MuJoCo's affine actuator: force = gain.(1, length, velocity) ctrl + bias.(1, length, velocity)
  int add_actuator(int joint, double gear, Point gain, Point bias) {
    MujocoArrays& a = arrays;
    a.act_dof.push_back(a.jnt_dofadr[joint]);
    a.act_qpos.push_back(a.jnt_qposadr[joint]);
    a.act_gear.push_back(gear);
    append(a.act_gain, gain);
    append(a.act_bias, bias);
    a.act_ctrllimited.push_back(0);
    a.act_forcelimited.push_back(0);
    for (Doubles* range : {&a.act_ctrlrange, &a.act_forcerange}) range->insert(range->end(), {0, 0});
    return a.nu++;
  }
  void limit_ctrl(int actuator, double lower, double upper) {
    arrays.act_ctrllimited[actuator] = 1;
    arrays.act_ctrlrange[2 * actuator] = lower;
    arrays.act_ctrlrange[2 * actuator + 1] = upper;
  }
  void limit_force(int actuator, double lower, double upper) {
    arrays.act_forcelimited[actuator] = 1;
    arrays.act_forcerange[2 * actuator] = lower;
    arrays.act_forcerange[2 * actuator + 1] = upper;
  }

 private:
  static void append(Doubles& array, const Point& a) { array.insert(array.end(), {a.x, a.y, a.z}); }
  static void append(Doubles& array, const Quaternion<double>& q) {
    array.insert(array.end(), {q.w, q.x, q.y, q.z});
  }
  static void set(Doubles& array, int row, const Point& a) {
    array[3 * row] = a.x;
    array[3 * row + 1] = a.y;
    array[3 * row + 2] = a.z;
  }
};

// A floating tree without shapes: every joint type, anchors off the origin, tilted axes, references and
// springs off zero, three joints on one body, a welded body, actuators of every kind.
inline void add_floating_tree(ModelMaker& m) {
  const int trunk = m.add_body(0, {0.1, 0.2, 0.9}, {0.2, 0.1, -0.3}, 3.0);
  m.add_joint(JointType::free, {0, 0, 0}, {0, 0, 1});
  const int arm = m.add_body(trunk, {0.2, -0.1, 0.1}, {0.5, 0.2, 0.1}, 1.2);
  const int shoulder = m.add_joint(JointType::ball, {0.05, -0.04, 0.02}, {0, 0, 1});
  const int forearm = m.add_body(arm, {0.3, 0.0, -0.1}, {-0.2, 0.4, 0.3}, 0.8);
  const int elbow = m.add_joint(JointType::revolute, {-0.05, 0.03, 0.02}, {0.6, 0, 0.8});
  m.add_body(forearm, {0.1, 0.2, 0.05}, {0.1, -0.1, 0.6}, 0.5);
  const int finger = m.add_joint(JointType::prismatic, {0.02, 0.01, -0.03}, {0, 0.6, -0.8});
  m.add_body(trunk, {-0.3, 0.1, 0.0}, {0.3, 0.3, 0.3}, 0.7);
  const int hip = m.add_joint(JointType::revolute, {0.02, 0.05, 0.0}, {1, 0, 0});
  m.add_joint(JointType::revolute, {0.0, -0.02, 0.04}, {0, 0.8, 0.6});
  m.add_joint(JointType::prismatic, {0.01, 0.0, 0.0}, {0.48, 0.6, 0.64});
  m.add_body(trunk, {0.0, 0.3, 0.1}, {0.1, 0.7, 0.2}, 0.4);  // welded

  MujocoArrays& a = m.arrays;
  for (int j : {elbow, finger, hip}) {
    a.qpos0[a.jnt_qposadr[j]] = 0.1 + 0.05 * j;
    a.qpos_spring[a.jnt_qposadr[j]] = 0.2 - 0.03 * j;
  }
  const Quaternion<double> rest = exponential(Point{0.3, -0.2, 0.5});
  std::copy_n(&rest.w, 4, &a.qpos_spring[a.jnt_qposadr[shoulder]]);
  m.add_actuator(elbow, 2.0, {1.0, 0, 0}, {0, 0, 0});  // motor
  m.limit_ctrl(m.add_actuator(hip, 0.7, {3.0, 0, 0}, {0.2, -3.0, -0.4}), -1.0, 1.0);
  m.limit_ctrl(m.add_actuator(finger, -1.0, {1.0, 0.4, -0.2}, {0, 0.1, -0.3}), -1.0, 1.0);
}
inline MujocoArrays floating_tree() {
  ModelMaker m;
  add_floating_tree(m);
  m.add_joint_dynamics();
  return m.arrays;
}
// The same next to a tree on a fixed base.
inline MujocoArrays two_trees() {
  ModelMaker m;
  add_floating_tree(m);
  const int pole = m.add_body(0, {1.0, 0.5, 0.3}, {0.4, 0.1, 0.2}, 0.9);
  const int swing = m.add_joint(JointType::revolute, {0.1, 0.1, -0.1}, {0, -0.6, 0.8});
  m.add_body(pole, {0.2, 0.2, 0.2}, {0.1, 0.1, 0.1}, 0.6);
  m.add_joint(JointType::prismatic, {0.0, 0.02, 0.01}, {1, 0, 0});
  m.add_joint(JointType::ball, {0.04, 0.0, 0.03}, {0, 0, 1});
  m.limit_force(m.add_actuator(swing, 1.5, {2.0, 0, 0}, {0.1, -2.0, -0.3}), -4.0, 4.0);
  m.add_joint_dynamics();
  return m.arrays;
}

// A free body with a box on a plane.
inline MujocoArrays box_on_plane() {
  ModelMaker m;
  const int plane = m.add_geom(0, plane_geom, {0, 0, 1}, {0.1, 0.2, 0.05}, {0.1, -0.05, 0.3}, 0.3);
  const int body = m.add_body(0, {0, 0, 0.3}, {0, 0, 0}, 2.0);
  m.add_joint(JointType::free, {0, 0, 0}, {0, 0, 1});
  m.add_pair(plane, m.add_geom(body, box_geom, {0.2, 0.15, 0.1}, {0.02, 0.01, 0.0}, {0.0, 0.0, 0.2}, 0.4));
  return m.arrays;
}

// Two free bodies with one shape each, of types with type_a <= type_b.
inline MujocoArrays two_shapes(int type_a, int type_b) {
  const auto size = [](int type) {
    return type == sphere_geom    ? Point{0.15, 0, 0}
           : type == capsule_geom ? Point{0.08, 0.25, 0}
                                  : Point{0.2, 0.15, 0.1};
  };
  ModelMaker m;
  m.arrays.gravity = {0, 0, 0};
  const int a = m.add_body(0, {0, 0, 0}, {0, 0, 0}, 1.5);
  m.add_joint(JointType::free, {0, 0, 0}, {0, 0, 1});
  const int geom_a = m.add_geom(a, type_a, size(type_a), {0.02, -0.01, 0.03}, {0.2, 0.5, 0.1}, 0.6);
  const int b = m.add_body(0, {0, 0, 0}, {0, 0, 0}, 0.8);
  m.add_joint(JointType::free, {0, 0, 0}, {0, 0, 1});
  m.add_pair(geom_a, m.add_geom(b, type_b, size(type_b), {-0.01, 0.02, 0.01}, {0.7, -0.2, 0.3}, 0.4));
  return m.arrays;
}

// A two-legged robot under a pile of free bodies: every pair of shapes, several trees that touch and one that
// does not, limits, dry friction, restitution, actuators. crowd_state() gives a state in which all of them
// touch.
inline MujocoArrays crowd() {
  ModelMaker m;
  m.arrays.restitution = 0.3;
  const int plane = m.add_geom(0, plane_geom, {0, 0, 1}, {0, 0, 0}, {0, 0, 0}, 0.4);
  const int trunk = m.add_body(0, {0, 0, 0.479}, {0, 0, 0}, 3.0);
  m.add_joint(JointType::free, {0, 0, 0}, {0, 0, 1});
  const int back = m.add_geom(trunk, box_geom, {0.3, 0.2, 0.1}, {0, 0, 0}, {0, 0, 0}, 0.6);
  for (double side : {1.0, -1.0}) {
    const int leg = m.add_body(trunk, {0.25 * side, 0, -0.1}, {0, 0, 0}, 0.6);
    const int swing = m.add_joint(JointType::revolute, {0, 0, 0}, {0, 1, 0});
    const int spread = m.add_joint(JointType::revolute, {0, 0, -0.02}, {1, 0, 0});
    m.add_pair(plane, m.add_geom(leg, capsule_geom, {0.04, 0.15, 0}, {0, 0, -0.19}, {0, 0, 0},
                                 side > 0 ? 0.3 : 0.9));
    m.limit(swing, -0.5, 0.0505);
    m.limit(spread, -0.0495, 0.5);
    m.add_actuator(swing, 1.5, {20.0, 0, 0}, {0, -20.0, -1.0});
    m.arrays.dof_frictionloss[m.dof(swing)] = side > 0 ? 0.02 : 50.0;  // slips, sticks
    m.arrays.dof_frictionloss[m.dof(spread)] = 0.03;
  }
  m.add_joint_dynamics();

  const auto add_free = [&](int type, Point size, Point position) {
    const int body = m.add_body(0, position, {0, 0, 0}, 0.5);
    m.add_joint(JointType::free, {0, 0, 0}, {0, 0, 1});
    return type == mesh_geom ? body : m.add_geom(body, type, size, {0, 0, 0}, {0, 0, 0}, 0.5);
  };
  const int ball = add_free(sphere_geom, {0.1, 0, 0}, {0.05, 0.02, 0.678});
  const int other_ball = add_free(sphere_geom, {0.08, 0, 0}, {0.2279, 0.02, 0.658});
  const int stick = add_free(capsule_geom, {0.05, 0.2, 0}, {0.05, 0.02, 0.827});
  const int other_stick = add_free(capsule_geom, {0.04, 0.3, 0}, {0.02, 0.1, 0.916});
  const int rock = add_free(mesh_geom, {}, {2, 1, 0.199});
  const int stone = m.add_mesh(rock,
                               {{0.1, 0.1, -0.2},
                                {-0.1, 0.1, -0.2},
                                {-0.1, -0.1, -0.2},
                                {0.1, -0.1, -0.199},
                                {0, 0, -0.198},
                                {0.05, 0, 0.3}},
                               {0, 0, 0}, {0, 0, 0.4});
  m.add_pair(plane, stone);
  m.add_pair(ball, back, std::numeric_limits<double>::quiet_NaN(), 0, 6);
  m.add_pair(ball, other_ball);
  m.add_pair(ball, stick, 0.7, 0, 4);
  m.add_pair(stick, other_stick, std::numeric_limits<double>::quiet_NaN(), 1);
  m.add_pair(other_ball, back, 0.2, 0, 1);  // frictionless
  return m.arrays;
}

// A chain on a fixed base with limits and dry friction, ending in a ball joint with a limit.
inline MujocoArrays limited_chain() {
  ModelMaker m;
  int parent = 0;
  for (int i = 0; i < 4; ++i) {
    parent = m.add_body(parent, {0.3, 0.02 * i, 0.01}, {0.1 * i, 0.2, 0}, 1.0 - 0.1 * i);
    const int joint =
        m.add_joint(i == 2 ? JointType::prismatic : JointType::revolute, {0.01, 0, 0.02}, {0.0, 0.6, 0.8});
    if (i % 2 == 0) m.limit(joint, -0.3, 0.4);
    m.arrays.dof_frictionloss[m.dof(joint)] = i == 1 ? 400.0 : 0.02 + 0.05 * i;
    m.add_actuator(joint, 1.0 + i, {2.0, 0, 0}, {0, -1.0, -0.1});
  }
  m.add_body(parent, {0.2, 0, 0}, {0.1, 0, 0}, 0.5);
  m.limit(m.add_joint(JointType::ball, {0, 0.01, 0}, {0, 0, 1}), 0.0, 0.5);
  m.add_joint_dynamics();
  return m.arrays;
}

// Equality constraints of every kind, between trees and to the world.
inline MujocoArrays linked_bodies() {
  ModelMaker m;
  const int upper = m.add_body(0, {0, 0, 1}, {0.1, 0.2, 0.3}, 1.0);
  const int first = m.add_joint(JointType::revolute, {0.01, 0.02, 0}, {0, 0.6, 0.8});
  const int lower = m.add_body(upper, {0.3, 0, 0.1}, {0.2, 0, 0.1}, 0.8);
  const int second = m.add_joint(JointType::revolute, {0, 0, 0.02}, {1, 0, 0});
  m.add_body(lower, {0.2, 0.1, 0}, {0, 0.3, 0}, 0.5);
  const int third = m.add_joint(JointType::prismatic, {0, 0, 0}, {0, 1, 0});
  const int welded = m.add_body(0, {0.6, 0.1, 1.2}, {0.1, 0.1, 0}, 0.7);
  m.add_joint(JointType::free, {0, 0, 0}, {0, 0, 1});
  const int hung = m.add_body(0, {1.2, 0, 1}, {0, 0.2, 0}, 0.6);
  m.add_joint(JointType::free, {0, 0, 0}, {0, 0, 1});
  m.add_joint_dynamics();
  m.arrays.qpos0[0] = 0.2;
  const Quaternion<double> turn = exponential(Point{0.2, -0.1, 0.3});
  m.add_equality(EqualityType::joint, first, second, {0.1, 0.8, 0.5, -0.3, 0.2});
  m.add_equality(EqualityType::joint, third, -1, {0.05});
  m.add_equality(EqualityType::weld, lower, welded,
                 {0.05, 0, 0.1, 0.25, 0.1, 0.05, turn.w, turn.x, turn.y, turn.z, 1});
  m.add_equality(EqualityType::connect, hung, 0, {0.1, 0.2, 0.1, 1.3, 0.2, 1.1});
  m.add_equality(EqualityType::connect, welded, hung, {0.3, 0, 0, -0.3, 0.1, 0.1});
  return m.arrays;
}

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
    const int linear = joint.type == JointType::free ? 3 : joint.type == JointType::ball ? 0 : 1;
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
    const int linear = joint.type == JointType::free ? 3 : joint.type == JointType::ball ? 0 : 1;
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
