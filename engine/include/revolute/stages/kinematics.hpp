// Kinematics: the pose, axes, velocity, and inertia in world axes of every link.
//
// Source: Featherstone 2008, sections 4.1 and 5.3, in world axes at each tree's reference point.
//   V_k = V_p + S_k qvel_k                                                                    (1)
//   I_k = inertia of link k at the reference point                                            (2)
// The inputs give the poses of mocap bodies, with quaternions normalized.
// Reads qpos, qvel, link inertias, poses of mocap bodies. Writes origin, links, mocap, S, V, I.
//
// Adjoint. Moving joint j by dq displaces everything beyond it rigidly by the twist S_j dq, so moments pull the whole stage
// back. A cotangent S_bar on an axis that link c carries is the moment S x* S_bar on c               (3)
// (from (d x S) . S_bar = d . (S x* S_bar)); an inertia gives its displacement moment, contact points give theirs;   (4)
//   qpos_bar_j += S_j . (sum of the moments beyond j).                                        (5)
// A mocap body is displaced by the moments on it and on the trees it carries, (n; f) about the world's origin:
//   mocap_pos_bar += f,   the cotangent of a rotation in world axes is n - x_mocap x f        (6)
// The reference point is a choice of coordinates. No result depends on it, so the derivative holds it fixed.
// The cotangents of V come from the stages that use it.
#pragma once

#include "revolute/model/joints/ball.hpp"
#include "revolute/model/joints/free.hpp"
#include "revolute/model/joints/prismatic.hpp"
#include "revolute/model/joints/revolute.hpp"
#include "revolute/model/parameters.hpp"

namespace revolute {

template <class Real>
struct Kinematics {
  Vector3<Real>* origin;   // [ntree] reference points
  Placement<Real>* links;  // [nv]
  Placement<Real>* mocap;  // [nmocap] in the world
  Motion<Real>* S;         // [nv] axes
  Motion<Real>* V;         // [nv] link velocities
  RigidInertia<Real>* I;   // [nv]

  Kinematics(const Model& model, Arena& arena)
      : origin(arena.take<Vector3<Real>>(model.ntree)),
        links(arena.take<Placement<Real>>(model.nv)),
        mocap(arena.take<Placement<Real>>(model.nmocap)),
        S(arena.take<Motion<Real>>(model.nv)),
        V(arena.take<Motion<Real>>(model.nv)),
        I(arena.take<RigidInertia<Real>>(model.nv)) {}
};

template <class Bar>
struct KinematicsCotangent {
  Force<Bar>* S;         // [nv]
  RigidInertia<Bar>* I;  // [nv]
  Force<Bar>* moment;    // [nv] cotangent of a rigid displacement of the link
  Force<Bar>* mocap;     // [nmocap] the same for mocap bodies, about the world's origin

  KinematicsCotangent(const Model& model, Arena& arena)
      : S(arena.take<Force<Bar>>(model.nv)),
        I(arena.take<RigidInertia<Bar>>(model.nv)),
        moment(arena.take<Force<Bar>>(model.nv)),
        mocap(arena.take<Force<Bar>>(model.nmocap)) {}

  // The moment of everything that moves with a link; null for the world.
  REVOLUTE_HD Force<Bar>* moment_of(int link) const {
    if (is_mocap(link)) return mocap + mocap_index(link);
    return is_world(link) ? nullptr : moment + link;
  }
  REVOLUTE_HD void clear(const Model& model) {
    for (int i = 0; i < model.nmocap; ++i) mocap[i] = zero_force<Bar>();
    for (int k = 0; k < model.nv; ++k) {
      S[k] = moment[k] = zero_force<Bar>();
      I[k] = zero_inertia<Bar>();
    }
  }
};

// Placement of a link other than the world: about its tree's reference point, or the world's origin for a mocap body.
template <class Real>
REVOLUTE_HD inline const Placement<Real>& placement(const Kinematics<Real>& kin, int link) {
  return is_mocap(link) ? kin.mocap[mocap_index(link)] : kin.links[link];
}
// Velocity of a link, zero for the world and mocap bodies.
template <class Real>
REVOLUTE_HD inline Motion<Real> at_link(const Motion<Real>* a, int link) {
  return link < 0 ? zero_motion<Real>() : a[link];
}

// Spatial velocities of all links under generalized velocity x: V_k = V_p + S_k x_k.
template <class Real, class X>
REVOLUTE_HD void link_velocities(const Model& model, const Motion<Real>* S, const X* x, Motion<X>* V) {
  for (int k = 0; k < model.nv; ++k) V[k] = multiply_add(x[k], S[k], at_link(V, model.dofs[k].parent));
}
// Adds each link's force to its parent's, so that F_k becomes the sum of the forces beyond joint k.
template <class Real>
REVOLUTE_HD void sum_towards_root(const Model& model, Force<Real>* F) {
  for (int k = model.nv - 1; k >= 0; --k)
    if (model.dofs[k].parent >= 0) F[model.dofs[k].parent] += F[k];
}

template <class Real>
REVOLUTE_HD void place_joint(const Model& model, const Joint& joint, const Real* qpos,
                             Kinematics<Real>& out) {
  if (joint.type == JointType::free) return FreeJoint::place(joint, qpos, out.links, out.S);
  Placement<Real> base;
  if (joint.parent >= 0) {
    base = out.links[joint.parent];
  } else {
    const Vector3<Real>& origin = out.origin[model.dofs[joint.dof].tree];
    if (is_mocap(joint.parent))
      base = {placement(out, joint.parent).R, placement(out, joint.parent).p - origin};
    else
      base = {{{Real(1), Real(0), Real(0), Real(0), Real(1), Real(0), Real(0), Real(0), Real(1)}}, -origin};
  }
  switch (joint.type) {
    case JointType::ball:
      return BallJoint::place(joint, base, qpos, out.links, out.S);
    case JointType::prismatic:
      return PrismaticJoint::place(joint, base, qpos, out.links, out.S);
    default:
      return RevoluteJoint::place(joint, base, qpos, out.links, out.S);
  }
}

template <class Real>
REVOLUTE_HD void kinematics(const Model& model, const Parameters<Real>& parameters, const Real* qpos,
                            const Real* qvel, Kinematics<Real>& out) {
  // reference points: the origin of a floating base, a fixed point otherwise
  for (int t = 0; t < model.ntree; ++t) {
    const int address = model.tree_qpos[t];
    out.origin[t] = address < 0 ? vector3<Real>(model.tree_origin + 3 * t) : load3(qpos + address);
  }
  for (int i = 0; i < model.nmocap; ++i)
    out.mocap[i] = {rotation_matrix(load_quaternion(parameters.input(Input::mocap_quat) + 4 * i)),
                    load3(parameters.input(Input::mocap_pos) + 3 * i)};
  for (int j = 0; j < model.njnt; ++j) place_joint(model, model.joints[j], qpos, out);
  link_velocities(model, out.S, qvel, out.V);  // (1)
  for (int k = 0; k < model.nv; ++k)
    if (model.dofs[k].has_inertia)
      out.I[k] = to_world(parameters.inertia[k], out.links[k].R, out.links[k].p);  // (2)
}

// (6), once the moments on links are summed towards the roots.
template <class Real, class Bar>
REVOLUTE_HD void mocap_adjoint(const Model& model, const Parameters<Real>& parameters,
                               const Kinematics<Real>& at, KinematicsCotangent<Bar>& bar,
                               Parameters<Bar>& parameters_bar) {
  for (int j = 0; model.nmocap > 0 && j < model.njnt; ++j) {
    const Joint& joint = model.joints[j];
    if (!is_mocap(joint.parent)) continue;
    const Force<Bar>& moment = bar.moment[joint.dof];
    *bar.moment_of(joint.parent) +=
        Force<Bar>{moment.n + cross(at.origin[model.dofs[joint.dof].tree], moment.f), moment.f};
  }
  for (int i = 0; i < model.nmocap; ++i) {
    const Placement<Real>& pose = at.mocap[i];
    add3(parameters_bar.input(Input::mocap_pos) + 3 * i, bar.mocap[i].f);
    const Vector3<Bar> turn = transpose_times(pose.R, bar.mocap[i].n - cross(pose.p, bar.mocap[i].f));
    const Quaternion<Bar> q_bar = raw_cotangent(parameters.input(Input::mocap_quat) + 4 * i, turn);
    Bar* const out = parameters_bar.input(Input::mocap_quat) + 4 * i;
    out[0] += q_bar.w;
    add3(out + 1, Vector3<Bar>{q_bar.x, q_bar.y, q_bar.z});
  }
}

// Adds to qpos_bar (tangent, nv) and to the cotangents of the link inertias and the mocap bodies' poses; uses up `bar`.
template <class Real, class Bar>
REVOLUTE_HD void kinematics_adjoint(const Model& model, const Parameters<Real>& parameters,
                                    const Kinematics<Real>& at, KinematicsCotangent<Bar>& bar, Bar* qpos_bar,
                                    Parameters<Bar>& parameters_bar) {
  for (int k = 0; k < model.nv; ++k) {
    const Dof& dof = model.dofs[k];
    if (dof.carrier >= 0) bar.moment[dof.carrier] += cross_force(at.S[k], bar.S[k]);  // (3)
    if (!dof.has_inertia) continue;
    bar.moment[k] += displacement_moment(at.I[k], bar.I[k]);  // (4)
    to_world_adjoint(bar.I[k], at.links[k].R, at.links[k].p, parameters_bar.inertia[k]);
  }
  sum_towards_root(model, bar.moment);
  for (int k = 0; k < model.nv; ++k) qpos_bar[k] += dot(at.S[k], bar.moment[k]);  // (5)
  mocap_adjoint(model, parameters, at, bar, parameters_bar);
}

}  // namespace revolute
