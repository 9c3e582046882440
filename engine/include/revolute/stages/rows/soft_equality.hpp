// Equality constraints of the contact model "mujoco": violation g, rows J = dg/dt by qvel, and the bias dJ/dt v.
//   joint:    g and J as in equality.hpp; dJ/dt v is left out, as in MuJoCo                    (1)
//   connect:  g = x_a - x_b; dJ/dt v = c_a - c_b, with the point's acceleration at qacc = 0
//             c = A.v + A.w x r + w x (v + w x r),   A: velocity-product accelerations of the links       (2)
//   weld:     connect, and g_i = s b_i.u for the relative quaternion (c, u) = conj(q_b) q_a in world axes, b_i: axes of b,
//             s = torquescale;   J v = n_i.w,  n_i = s/2 (c b_i + u x b_i),  w = w_a - w_b        (3)
//             dJ/dt v = n_i'.w + n_i.(A_a.w - A_b.w),   c' = -u.w/2,  u' = w_b x u + (c w - u x w)/2       (4)
// As in MuJoCo, the rows of (3) are in the axes of b. Small rotations d of a and e of b change (c, u) as w and w_b do.
#pragma once

#include "revolute/stages/rows/equality.hpp"

namespace revolute {

// Motion of a frame that a constraint holds: V of its link, and the velocity-product acceleration A.
template <class Real>
struct HeldFrame {
  Motion<Real> V, A;
};

// One side of (2); `arm` goes from the tree's reference point to the point.
template <class Real>
REVOLUTE_HD inline Vector3<Real> point_bias(const HeldFrame<Real>& frame, const Vector3<Real>& arm) {
  const Motion<Real>&V = frame.V, &A = frame.A;
  return A.v + cross(A.w, arm) + cross(V.w, V.v + cross(V.w, arm));
}
// From the cotangent of the acceleration, adds to those of the link's V and A; returns the cotangent of the arm.
template <class Real, class Bar>
REVOLUTE_HD inline Vector3<Bar> point_bias_adjoint(const HeldFrame<Real>& frame, const Vector3<Real>& arm,
                                                   const Vector3<Bar>& bar, Force<Bar>& V_bar,
                                                   Force<Bar>& A_bar) {
  const Motion<Real>& V = frame.V;
  const Vector3<Bar> turned = cross(bar, V.w);
  A_bar += force_at(arm, bar);
  V_bar.f += turned;
  V_bar.n += cross(V.v + cross(V.w, arm), bar) + cross(arm, turned);
  return cross(bar, frame.A.w) + cross(turned, V.w);
}

// The quantities in (3) and (4).
template <class Real>
struct WeldRotation {
  Matrix3<Real> B;
  Real half, c, c_rate;  // half: s/2
  Vector3<Real> u, u_rate, w, w_b, alpha;

  REVOLUTE_HD Vector3<Real> n(int i) const { return half * (c * B.column(i) + cross(u, B.column(i))); }
  REVOLUTE_HD Vector3<Real> n_rate(int i) const {
    const Vector3<Real> b = B.column(i), turned = cross(w_b, b);
    return half * (c_rate * b + cross(u_rate, b) + c * turned + cross(u, turned));
  }
};
template <class Real>
REVOLUTE_HD WeldRotation<Real> weld_rotation(const Kinematics<Real>& kin, const Equality& equality,
                                             const HeldFrame<Real>& a, const HeldFrame<Real>& b) {
  WeldRotation<Real> out;
  const Matrix3<Real> A = world_rotation(kin, equality.link_a, equality.rotation_a);
  out.B = world_rotation(kin, equality.link_b, equality.rotation_b);
  out.half = Real(0.5 * equality.torque_scale);
  Real trace(0);
  Vector3<Real> twice_sine = zero3<Real>();
  for (int i = 0; i < 3; ++i) {
    trace += dot(out.B.column(i), A.column(i));
    twice_sine += cross(out.B.column(i), A.column(i));
  }
  out.c = Real(0.5) * sqrt(maximum(Real(1) + trace, Real(1e-12)));
  out.u = (Real(0.25) / out.c) * twice_sine;
  out.w = a.V.w - b.V.w;
  out.w_b = b.V.w;
  out.alpha = a.A.w - b.A.w;
  out.c_rate = Real(-0.5) * dot(out.u, out.w);
  out.u_rate = cross(out.w_b, out.u) + Real(0.5) * (out.c * out.w - cross(out.u, out.w));
  return out;
}

// Computes the rows' violations, Jacobians and dJ/dt v.
template <class Real>
struct EqualityRows {
  Real violation[6], bias[6];
  RowJacobian<Real> J[6];
};

template <class Real>
REVOLUTE_HD void joint_equality_row(const Equality& equality, const Real* qpos, EqualityRows<Real>& out) {
  out.J[0] = dof_row(equality.dof_a, Real(1));
  out.violation[0] = qpos[equality.qpos_a] - Real(equality.reference_a);
  out.bias[0] = Real(0);
  if (equality.dof_b < 0) {
    out.violation[0] -= Real(equality.polynomial[0]);
    return;
  }
  Real p, slope, curvature;
  polynomial(equality.polynomial, qpos[equality.qpos_b] - Real(equality.reference_b), p, slope, curvature);
  out.violation[0] -= p;
  out.J[0].dofs = 2;
  out.J[0].dof[1] = equality.dof_b;
  out.J[0].coefficient[1] = -slope;
}

template <class Real>
REVOLUTE_HD void body_equality_rows(const Model& model, const Kinematics<Real>& kin, const Equality& equality,
                                    const HeldFrame<Real>& a, const HeldFrame<Real>& b,
                                    EqualityRows<Real>& out) {
  const Vector3<Real> x_a = world_point(model, kin, equality.link_a, equality.anchor_a);
  const Vector3<Real> x_b = world_point(model, kin, equality.link_b, equality.anchor_b);
  const Vector3<Real> arm_a = x_a - tree_origin(model, kin, equality.link_a),
                      arm_b = x_b - tree_origin(model, kin, equality.link_b);
  const Vector3<Real> between = x_a - x_b, bias = point_bias(a, arm_a) - point_bias(b, arm_b);
  for (int i = 0; i < 3; ++i) {
    const Vector3<Real> axis = unit3<Real>(i);
    out.violation[i] = component(between, i);
    out.bias[i] = component(bias, i);
    out.J[i] = wrench_row(equality.link_a, force_at(arm_a, axis), equality.link_b, -force_at(arm_b, axis));
  }
  if (equality.type != EqualityType::weld) return;
  const WeldRotation<Real> rotation = weld_rotation(kin, equality, a, b);
  for (int i = 0; i < 3; ++i) {
    const Force<Real> turn = {rotation.n(i), zero3<Real>()};
    out.violation[3 + i] = Real(2) * rotation.half * dot(rotation.B.column(i), rotation.u);
    out.bias[3 + i] = dot(rotation.n_rate(i), rotation.w) + dot(rotation.n(i), rotation.alpha);
    out.J[3 + i] = wrench_row(equality.link_a, turn, equality.link_b, -turn);
  }
}

// Cotangents of the rows of one constraint.
template <class Bar>
struct EqualityRowsCotangent {
  Bar violation[6], bias[6];
  RowJacobianCotangent<Bar> J[6];
};
// Cotangents of a frame's velocity and acceleration.
template <class Bar>
struct HeldFrameCotangent {
  Force<Bar> V, A;
};

template <class Real, class Bar>
REVOLUTE_HD void weld_rotation_adjoint(const Model& model, const Kinematics<Real>& kin,
                                       const Equality& equality, const WeldRotation<Real>& at,
                                       const EqualityRowsCotangent<Bar>& bar, HeldFrameCotangent<Bar>& a_bar,
                                       HeldFrameCotangent<Bar>& b_bar, KinematicsCotangent<Bar>& kin_bar) {
  const Vector3<Bar> zero = zero3<Bar>();
  Bar c_bar(0), c_rate_bar(0);
  Vector3<Bar> u_bar = zero, u_rate_bar = zero, w_bar = zero, w_b_bar = zero, alpha_bar = zero, turn_b = zero;
  for (int i = 0; i < 3; ++i) {
    const Vector3<Real> b = at.B.column(i), turned = cross(at.w_b, b);
    const Bar bias_bar = bar.bias[3 + i], g_bar = Real(2) * at.half * bar.violation[3 + i];
    const Vector3<Bar> N = at.half * (bar.J[3 + i].force_a.n - bar.J[3 + i].force_b.n + bias_bar * at.alpha);
    const Vector3<Bar> D = at.half * (bias_bar * at.w);
    w_bar += bias_bar * at.n_rate(i);
    alpha_bar += bias_bar * at.n(i);
    const Vector3<Bar> Du = cross(D, at.u);
    // n_i, n_i'
    c_bar += dot(b, N) + dot(turned, D);
    u_bar += cross(b, N) + cross(turned, D) + g_bar * b;
    c_rate_bar += dot(b, D);
    u_rate_bar += cross(b, D);
    w_b_bar += at.c * cross(b, D) + cross(b, Du);
    const Vector3<Bar> b_bar_i = at.c * N + cross(N, at.u) + at.c_rate * D + cross(D, at.u_rate) +
                                 at.c * cross(D, at.w_b) + cross(Du, at.w_b) + g_bar * at.u;
    turn_b += cross(b, b_bar_i);
  }
  // c', u'
  const Real half(0.5);
  w_bar -= (half * c_rate_bar) * at.u;
  u_bar -= (half * c_rate_bar) * at.w;
  w_b_bar += cross(at.u, u_rate_bar);
  u_bar += cross(u_rate_bar, at.w_b) - half * cross(at.w, u_rate_bar);
  c_bar += half * dot(at.w, u_rate_bar);
  w_bar += half * (at.c * u_rate_bar - cross(u_rate_bar, at.u));
  a_bar.V.n += w_bar;
  b_bar.V.n += w_b_bar - w_bar;
  a_bar.A.n += alpha_bar;
  b_bar.A.n -= alpha_bar;
  // (c, u) by the rotations of the two frames
  const Vector3<Bar> relative = half * (at.c * u_bar - cross(u_bar, at.u)) - (half * c_bar) * at.u;
  turn_b += cross(at.u, u_bar) - relative;
  add_world_moment(model, kin, equality.link_a, Force<Bar>{relative, zero}, kin_bar);
  add_world_moment(model, kin, equality.link_b, Force<Bar>{turn_b, zero}, kin_bar);
}

template <class Real, class Bar>
REVOLUTE_HD void body_equality_rows_adjoint(const Model& model, const Kinematics<Real>& kin,
                                            const Equality& equality, const HeldFrame<Real>& a,
                                            const HeldFrame<Real>& b, const EqualityRowsCotangent<Bar>& bar,
                                            HeldFrameCotangent<Bar>& a_bar, HeldFrameCotangent<Bar>& b_bar,
                                            KinematicsCotangent<Bar>& kin_bar) {
  const Vector3<Real> x_a = world_point(model, kin, equality.link_a, equality.anchor_a);
  const Vector3<Real> x_b = world_point(model, kin, equality.link_b, equality.anchor_b);
  const Vector3<Bar> g_bar = {bar.violation[0], bar.violation[1], bar.violation[2]};
  const Vector3<Bar> bias_bar = {bar.bias[0], bar.bias[1], bar.bias[2]};
  Vector3<Bar> x_a_bar = g_bar + point_bias_adjoint(a, x_a - tree_origin(model, kin, equality.link_a),
                                                    bias_bar, a_bar.V, a_bar.A);
  Vector3<Bar> x_b_bar = -g_bar + point_bias_adjoint(b, x_b - tree_origin(model, kin, equality.link_b),
                                                     -bias_bar, b_bar.V, b_bar.A);
  // the wrenches (arm x e; e)
  for (int i = 0; i < 3; ++i) {
    const Vector3<Real> axis = unit3<Real>(i);
    x_a_bar += cross(axis, bar.J[i].force_a.n);
    x_b_bar -= cross(axis, bar.J[i].force_b.n);
  }
  add_world_moment(model, kin, equality.link_a, force_at(x_a, x_a_bar), kin_bar);
  add_world_moment(model, kin, equality.link_b, force_at(x_b, x_b_bar), kin_bar);
  if (equality.type == EqualityType::weld)
    weld_rotation_adjoint(model, kin, equality, weld_rotation(kin, equality, a, b), bar, a_bar, b_bar,
                          kin_bar);
}

template <class Real, class Bar>
REVOLUTE_HD void joint_equality_row_adjoint(const Equality& equality, const Real* qpos,
                                            const EqualityRowsCotangent<Bar>& bar, Bar* qpos_bar) {
  qpos_bar[equality.dof_a] += bar.violation[0];
  if (equality.dof_b < 0) return;
  Real p, slope, curvature;
  polynomial(equality.polynomial, qpos[equality.qpos_b] - Real(equality.reference_b), p, slope, curvature);
  qpos_bar[equality.dof_b] -= slope * bar.violation[0] + curvature * bar.J[0].coefficient[1];
}

}  // namespace revolute
