// Ball: a unit quaternion; velocities and tangents are rotations about the axes of the moving frame.
#pragma once

#include "revolute/model/joints/placement.hpp"
#include "revolute/spatial/quaternion.hpp"

namespace revolute {

template <class Real>
REVOLUTE_HD inline Quaternion<Real> load_quaternion(const Real* qpos) {
  return normalized(Quaternion<Real>{qpos[0], qpos[1], qpos[2], qpos[3]});
}
template <class Real>
REVOLUTE_HD inline Real quaternion_length(const Real* q) {
  return sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
}
// From the cotangent by the tangent to that by the four numbers of q, which are read as q/|q|.
template <class Real, class Bar>
REVOLUTE_HD inline Quaternion<Bar> raw_cotangent(const Real* q, const Vector3<Bar>& tangent) {
  return ambient_cotangent(load_quaternion(q), (Real(1) / quaternion_length(q)) * tangent);
}
template <class Real>
REVOLUTE_HD inline Vector3<Real> load3(const Real* a) {
  return {a[0], a[1], a[2]};
}
template <class Real>
REVOLUTE_HD inline void add3(Real* a, const Vector3<Real>& b) {
  a[0] += b.x;
  a[1] += b.y;
  a[2] += b.z;
}

struct BallJoint {
  // the three axes of a frame R about its origin p: S = (R e_i; p x R e_i)
  template <class Real>
  REVOLUTE_HD static void place_axes(const Placement<Real>& link, Motion<Real>* S) {
    for (int i = 0; i < 3; ++i) S[i] = {link.R.column(i), cross(link.p, link.R.column(i))};
  }
  // R = R_p E R(q),  p = p_p + R_p r; the link is that of the last of the three degrees of freedom
  template <class Real>
  REVOLUTE_HD static void place(const Joint& joint, const Placement<Real>& parent, const Real* qpos,
                                Placement<Real>* links, Motion<Real>* S) {
    Placement<Real>& link = links[joint.dof + 2];
    link.R = (parent.R * matrix3<Real>(joint.rotation)) * rotation_matrix(load_quaternion(qpos + joint.qpos));
    link.p = parent.p + parent.R * vector3<Real>(joint.position);
    place_axes(link, S + joint.dof);
  }

  // q+ = q * exp(h w)
  template <class Real>
  REVOLUTE_HD static void turn(Real h, const Real* quaternion, const Real* omega, Real* next) {
    const Quaternion<Real> q = normalized(load_quaternion(quaternion) * exponential(h * load3(omega)));
    next[0] = q.w;
    next[1] = q.x;
    next[2] = q.y;
    next[3] = q.z;
  }
  // d+ = exp(h w)' d + h J_r(h w) dw, so  d_bar += exp(h w) d+_bar,  w_bar += h J_l(h w) d+_bar
  template <class Real, class Bar>
  REVOLUTE_HD static void turn_adjoint(Real h, const Real* omega, const Bar* next_bar, Bar* tangent_bar,
                                       Bar* omega_bar) {
    const Vector3<Real> hw = h * load3(omega);
    const Vector3<Bar> t = load3(next_bar);
    add3(tangent_bar, rotation_matrix(exponential(hw)) * t);
    add3(omega_bar, h * left_jacobian_times(hw, t));
  }
  template <class Real>
  REVOLUTE_HD static void integrate(const Joint& joint, Real h, const Real* qpos, const Real* qvel,
                                    Real* qpos_next) {
    turn(h, qpos + joint.qpos, qvel + joint.dof, qpos_next + joint.qpos);
  }
  template <class Real, class Bar>
  REVOLUTE_HD static void integrate_adjoint(const Joint& joint, Real h, const Real* qvel, const Bar* next_bar,
                                            Bar* qpos_bar, Bar* qvel_bar) {
    turn_adjoint(h, qvel + joint.dof, next_bar + joint.dof, qpos_bar + joint.dof, qvel_bar + joint.dof);
  }

  // log(q_rest^-1 q), in the axes of the moving frame; the spring's torque is -stiffness times it
  template <class Real>
  REVOLUTE_HD static Vector3<Real> displacement(const Joint& joint, const Real* rest, const Real* qpos) {
    return logarithm(conjugate(load_quaternion(rest + joint.qpos)) * load_quaternion(qpos + joint.qpos));
  }
  template <class Real>
  REVOLUTE_HD static void add_spring(const Joint& joint, Real stiffness, const Real* rest, const Real* qpos,
                                     Real* force) {
    add3(force + joint.dof, -stiffness * displacement(joint, rest, qpos));
  }
  // d log = J_r^-1 d, so  d_bar -= stiffness J_l^-1(log) force_bar.  When the rest turns by e in its axes, d log = -J_l^-1 e,
  // so e_bar += stiffness J_l^-1(-log) force_bar. The rest's quaternion gets the cotangent with this tangent part
  template <class Real, class Bar>
  REVOLUTE_HD static void add_spring_adjoint(const Joint& joint, Real stiffness, const Real* rest,
                                             const Real* qpos, const Bar* force_bar, Bar* qpos_bar,
                                             Bar& stiffness_bar, Bar* rest_bar) {
    const Vector3<Real> d = displacement(joint, rest, qpos);
    const Vector3<Bar> f = load3(force_bar + joint.dof);
    stiffness_bar -= dot(d, f);
    add3(qpos_bar + joint.dof, -stiffness * left_jacobian_inverse_times(d, f));
    const Real* const q = rest + joint.qpos;
    const Real inverse_length = Real(1) / sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    const Quaternion<Real> unit = load_quaternion(q);
    const Vector3<Bar> t = (stiffness * inverse_length) * left_jacobian_inverse_times(-d, f);
    Bar* const out = rest_bar + joint.qpos;
    const Real two(2);
    out[0] -= two * dot(Vector3<Real>{unit.x, unit.y, unit.z}, t);
    out[1] += two * dot(Vector3<Real>{unit.w, -unit.z, unit.y}, t);
    out[2] += two * dot(Vector3<Real>{unit.z, unit.w, -unit.x}, t);
    out[3] += two * dot(Vector3<Real>{-unit.y, unit.x, unit.w}, t);
  }
};

}  // namespace revolute
