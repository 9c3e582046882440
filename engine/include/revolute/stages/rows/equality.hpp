// Equality constraints: two-sided rows that hold a violation g at zero, with bias erp g/h.
//   joint:    g = (q1 - r1) - p(q2 - r2),        J = e_1 - p'(q2 - r2) e_2;  one joint: g = (q1 - r1) - p(0)   (1)
//   connect:  g = x_a - x_b (world),             row i: wrenches (x_a x e_i; e_i), -(x_b x e_i; e_i)      (2)
//   weld:     connect, and  g = 1/2 sum_i b_i x a_i  (axes of the two frames; the axis times the sine of the angle
//             from b to a),                      row i: wrenches (e_i; 0), -(e_i; 0)                      (3)
// The rows of (3) hold w_a = w_b, which is the rate of g at g = 0.
#pragma once

#include "revolute/stages/constraint_row.hpp"
#include "revolute/stages/link_points.hpp"

namespace revolute {

// p(x) and its first two derivatives
template <class Real>
REVOLUTE_HD inline void polynomial(const double* c, Real x, Real& p, Real& slope, Real& curvature) {
  p = Real(c[0]) + x * (Real(c[1]) + x * (Real(c[2]) + x * (Real(c[3]) + x * Real(c[4]))));
  slope = Real(c[1]) + x * (Real(2 * c[2]) + x * (Real(3 * c[3]) + x * Real(4 * c[4])));
  curvature = Real(2 * c[2]) + x * (Real(6 * c[3]) + x * Real(12 * c[4]));
}

REVOLUTE_HD inline int equality_rows(const Equality& equality) {
  return equality.type == EqualityType::connect ? 3 : equality.type == EqualityType::weld ? 6 : 1;
}

template <class Real>
REVOLUTE_HD inline Vector3<Real> unit3(int i) {
  return {Real(i == 0), Real(i == 1), Real(i == 2)};
}
template <class Real>
REVOLUTE_HD inline Real component(const Vector3<Real>& a, int i) {
  return i == 0 ? a.x : i == 1 ? a.y : a.z;
}
// (3)
template <class Real>
REVOLUTE_HD inline Vector3<Real> weld_violation(const Kinematics<Real>& kin, const Equality& equality) {
  const Matrix3<Real> A = world_rotation(kin, equality.link_a, equality.rotation_a),
                      B = world_rotation(kin, equality.link_b, equality.rotation_b);
  Vector3<Real> g = zero3<Real>();
  for (int i = 0; i < 3; ++i) g += cross(B.column(i), A.column(i));
  return Real(0.5) * g;
}

template <class Real>
REVOLUTE_HD RowValues<Real> equality_row(const Model& model, const RowContext<Real>& at,
                                         const Equality& equality, int i) {
  const Kinematics<Real>& kin = *at.kinematics;
  RowValues<Real> row;
  row.kind = RowKind::bilateral;
  row.bound = Real(0);
  row.bounces = false;
  Real violation;
  if (equality.type == EqualityType::joint) {
    Real p(equality.polynomial[0]), slope(0), curvature;
    if (equality.dof_b >= 0)
      polynomial(equality.polynomial, at.qpos[equality.qpos_b] - Real(equality.reference_b), p, slope,
                 curvature);
    violation = at.qpos[equality.qpos_a] - Real(equality.reference_a) - p;
    row.J = dof_row(equality.dof_a, Real(1));
    if (equality.dof_b >= 0) {
      row.J.dofs = 2;
      row.J.dof[1] = equality.dof_b;
      row.J.coefficient[1] = -slope;
    }
  } else {
    const Vector3<Real> axis = unit3<Real>(i % 3);
    Force<Real> force_a = {axis, zero3<Real>()}, force_b = {-axis, zero3<Real>()};
    if (i < 3) {
      const Vector3<Real> x_a = world_point(model, kin, equality.link_a, equality.anchor_a);
      const Vector3<Real> x_b = world_point(model, kin, equality.link_b, equality.anchor_b);
      violation = component(x_a - x_b, i);
      force_a = force_at(x_a - tree_origin(model, kin, equality.link_a), axis);
      force_b = -force_at(x_b - tree_origin(model, kin, equality.link_b), axis);
    } else {
      violation = component(weld_violation(kin, equality), i - 3);
    }
    row.J = wrench_row(equality.link_a, force_a, equality.link_b, force_b);
  }
  row.bias = (Real(model.erp) / at.h) * violation;
  return row;
}

template <class Real, class Bar>
REVOLUTE_HD void weld_violation_adjoint(const Model& model, const Kinematics<Real>& kin,
                                        const Equality& equality, const Vector3<Bar>& g_bar,
                                        KinematicsCotangent<Bar>& kin_bar) {
  const Matrix3<Real> A = world_rotation(kin, equality.link_a, equality.rotation_a),
                      B = world_rotation(kin, equality.link_b, equality.rotation_b);
  Vector3<Bar> turn_a = zero3<Bar>(), turn_b = zero3<Bar>();
  for (int k = 0; k < 3; ++k) {
    const Vector3<Real> a = A.column(k), b = B.column(k);
    turn_a += cross(a, cross(Real(0.5) * g_bar, b));
    turn_b += cross(b, cross(a, Real(0.5) * g_bar));
  }
  add_world_moment(model, kin, equality.link_a, Force<Bar>{turn_a, zero3<Bar>()}, kin_bar);
  add_world_moment(model, kin, equality.link_b, Force<Bar>{turn_b, zero3<Bar>()}, kin_bar);
}

template <class Real, class Bar>
REVOLUTE_HD void equality_row_adjoint(const Model& model, const RowContext<Real>& at,
                                      const Equality& equality, int i, Bar bias_bar,
                                      const RowJacobianCotangent<Bar>& J_bar,
                                      KinematicsCotangent<Bar>& kin_bar, Bar* qpos_bar) {
  const Kinematics<Real>& kin = *at.kinematics;
  const Bar violation_bar = (Real(model.erp) / at.h) * bias_bar;
  if (equality.type == EqualityType::joint) {
    qpos_bar[equality.dof_a] += violation_bar;
    if (equality.dof_b < 0) return;
    Real p, slope, curvature;
    polynomial(equality.polynomial, at.qpos[equality.qpos_b] - Real(equality.reference_b), p, slope,
               curvature);
    qpos_bar[equality.dof_b] -= slope * violation_bar + curvature * J_bar.coefficient[1];
    return;
  }
  const Vector3<Real> axis = unit3<Real>(i % 3);
  if (i >= 3) return weld_violation_adjoint(model, kin, equality, violation_bar * axis, kin_bar);
  // the wrench (x e; e) and the violation e.x of each side
  const Vector3<Bar> x_a_bar = violation_bar * axis + cross(axis, J_bar.force_a.n);
  const Vector3<Bar> x_b_bar = -(violation_bar * axis) - cross(axis, J_bar.force_b.n);
  add_world_moment(model, kin, equality.link_a,
                   force_at(world_point(model, kin, equality.link_a, equality.anchor_a), x_a_bar), kin_bar);
  add_world_moment(model, kin, equality.link_b,
                   force_at(world_point(model, kin, equality.link_b, equality.anchor_b), x_b_bar), kin_bar);
}

}  // namespace revolute
