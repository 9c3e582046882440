// The common part of all constraint rows.
//
// A row's Jacobian acts on links through wrenches, or on degrees of freedom through coefficients:
//   J v = f_a . V_a + f_b . V_b + sum_i c_i v_i                                               (1)
// Its cotangent has the same shape; the cotangent of a wrench is a motion, kept in a Force as (n <- w, f <- v).
#pragma once

#include "revolute/solvers/projected_gauss_seidel.hpp"
#include "revolute/stages/kinematics.hpp"

namespace revolute {

constexpr int row_dofs = 3;

enum class RowSource : int { equality, dry_friction, limit, contact, tendon_friction, tendon_limit };

// The constraint that a row belongs to.
struct RowOrigin {
  RowSource source;
  int index;  // place among the constraints of its kind; contact: place in the list of contacts
  int component;
  RowPath path;
  int y;  // offset of the row's entries along its path
};

template <class Real>
struct RowJacobian {
  int link_a, link_b;  // -1 for none
  Force<Real> force_a, force_b;
  int dofs;  // number of coefficients
  int dof[row_dofs];
  Real coefficient[row_dofs];
};

template <class Bar>
struct RowJacobianCotangent {
  Force<Bar> force_a, force_b;
  Bar coefficient[row_dofs];
};

template <class Real>
REVOLUTE_HD inline RowJacobian<Real> wrench_row(int link_a, const Force<Real>& force_a, int link_b,
                                                const Force<Real>& force_b) {
  RowJacobian<Real> J;
  J.link_a = link_a;
  J.link_b = link_b;
  J.force_a = force_a;
  J.force_b = force_b;
  J.dofs = 0;
  return J;
}
template <class Real>
REVOLUTE_HD inline RowJacobian<Real> dof_row(int dof, Real coefficient) {
  RowJacobian<Real> J = wrench_row(-1, zero_force<Real>(), -1, zero_force<Real>());
  J.dofs = 1;
  J.dof[0] = dof;
  J.coefficient[0] = coefficient;
  return J;
}

// (1), for generalized x with link velocities S x
template <class Real, class X>
REVOLUTE_HD inline X row_times(const RowJacobian<Real>& J, const X* x, const Motion<X>* of_links) {
  X sum(0);
  if (J.link_a >= 0) sum += dot(of_links[J.link_a], J.force_a);
  if (J.link_b >= 0) sum += dot(of_links[J.link_b], J.force_b);
  for (int i = 0; i < J.dofs; ++i) sum += J.coefficient[i] * x[J.dof[i]];
  return sum;
}
// Adjoint of (1) by J: J_bar += s d(J x)/dJ
template <class Real, class S, class X, class Bar>
REVOLUTE_HD inline void add_row_cotangent(const RowJacobian<Real>& J, const S& s, const X* x,
                                          const Motion<X>* of_links, RowJacobianCotangent<Bar>& bar) {
  if (J.link_a >= 0) bar.force_a += s * Force<X>{of_links[J.link_a].w, of_links[J.link_a].v};
  if (J.link_b >= 0) bar.force_b += s * Force<X>{of_links[J.link_b].w, of_links[J.link_b].v};
  for (int i = 0; i < J.dofs; ++i) bar.coefficient[i] += s * x[J.dof[i]];
}
// Adjoint of (1) by x: x_bar += s c, and the link velocities' cotangent X_bar += s f
template <class Real, class Bar>
REVOLUTE_HD inline void add_row_transpose(const RowJacobian<Real>& J, const Bar& s, Bar* x_bar,
                                          Force<Bar>* X_bar) {
  if (J.link_a >= 0) X_bar[J.link_a] += s * J.force_a;
  if (J.link_b >= 0) X_bar[J.link_b] += s * J.force_b;
  for (int i = 0; i < J.dofs; ++i) x_bar[J.dof[i]] += s * J.coefficient[i];
}

// Bias of a one-sided row with signed gap g. The row may close the gap in this step, not more. Penetration is given back: all
// of it within the depth s; of the deeper part a share, in a time that does not depend on h:
//   bias(g) = g/h  for g > -s,   -s/h + max((g + s)/T, -c)  below,   s = (10 m/s^2) h^2,   T = 0.0025 s/erp     (2)
// s is the depth of one step of free fall, so the whole return is no faster than that fall. A contact at rest sits at
// g = 0, where this is smooth; a bias with a change of slope at g = 0 would put a kink into every standing robot. A body
// that starts deep comes out at a speed d/T that falls with the depth d and is at most c, whatever the time step: a share of
// the depth per step would be a speed that grows as 1/h. c^2/(2 g) < 2 c T, so with the default erp nothing that comes out of
// the floor rises above it by more than it was deep.
constexpr double repair_time = 0.0025;   // s: the depth beyond s falls by about the share erp in this time
constexpr double fastest_repair = 0.45;  // c: m/s, for a hinge rad/s
template <class Real>
REVOLUTE_HD inline Real free_fall_depth(Real h) {
  return Real(10) * h * h;
}
// 1/T of (2), limited so that no step returns more than the whole depth
template <class Real>
REVOLUTE_HD inline Real repair_rate(const Model& model, Real h) {
  return minimum(Real(model.erp / repair_time), Real(1) / h);
}
template <class Real>
REVOLUTE_HD inline Real gap_bias(const Model& model, Real h, Real gap) {
  const Real s = free_fall_depth(h), returned = repair_rate(model, h) * (gap + s);
  return select(less(-s, gap), gap / h, maximum(returned, Real(-fastest_repair)) - s / h);
}
template <class Real>
REVOLUTE_HD inline Real gap_slope(const Model& model, Real h, Real gap) {
  const Real s = free_fall_depth(h), rate = repair_rate(model, h);
  const Real deep = select(less(Real(-fastest_repair), rate * (gap + s)), rate, Real(0));
  return select(less(-s, gap), Real(1) / h, deep);
}
// Share of the speed c that the repair of a depth takes: 0 for g > -s, 1 from the depth s + c T on.
template <class Real>
REVOLUTE_HD inline Real repair_share(const Model& model, Real h, Real gap) {
  const Real share = -(repair_rate(model, h) / Real(fastest_repair)) * (gap + free_fall_depth(h));
  return minimum(maximum(share, Real(0)), Real(1));
}
template <class Real>
REVOLUTE_HD inline Real repair_share_slope(const Model& model, Real h, Real gap) {
  const Real rate = repair_rate(model, h) / Real(fastest_repair), share = -rate * (gap + free_fall_depth(h));
  return select(less(Real(0), share) & less(share, Real(1)), -rate, Real(0));
}
// Whether a one-sided row may act in this step: min(gap, gap + h speed) < margin, with the speed before constraints.
template <class Real>
REVOLUTE_HD inline MaskOf<Real> may_act(const Model& model, Real h, Real gap, Real speed) {
  return less(minimum(gap, gap + h * speed), Real(model.margin));
}

// The state at which rows are formed.
template <class Real>
struct RowContext {
  Real h;
  const Kinematics<Real>* kinematics;
  const Real *qpos, *qvel;     // at the start of the step
  const Real* v_free;          // v*
  const Motion<Real>* V_free;  // link velocities of v*
  const Real*
      impact_time;  // [ntree] since the start of the step; qpos is that of this moment (impact.hpp); or null
};

// The part of a row that its maker fills in.
template <class Real>
struct RowValues {
  RowKind kind;
  RowJacobian<Real> J;
  Real bias, bound;
  bool bounces;             // in any environment
  Real softness = Real(0);  // of a contact's normal (soft_normals.hpp)
};

}  // namespace revolute
