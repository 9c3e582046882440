// The models that the tests run: small ones that hold every kind of joint, shape, constraint and actuator.
#pragma once

#include "model_maker.hpp"
#include "states.hpp"

namespace revolute::check {

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
  m.arrays.restitution = {0.3};
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

}  // namespace revolute::check
