// The reverse of soft_constraints.hpp: equations (3) and (4) there.
#pragma once

#include "revolute/stages/soft_constraints.hpp"

namespace revolute {

// Cotangents of the rows' forces f = -s'(y), for a loss that depends on them and on a. A loss of the wrenches on the links,
// f (force_a . on_a + force_b . on_b), is part of force_bar and gives force_a the cotangent f on_a. Since f moves with y,
// z = J w + force_bar replaces J w, and a gets a_bar -= J' s'' force_bar before w is solved for.
template <class Bar>
struct SoftForceCotangent {
  const Bar* force;               // [rows]
  const Motion<Bar>*on_a, *on_b;  // [constraints]
};

// The solution, and w of the adjoint.
template <class Real, class Bar>
struct SoftAdjointInput {
  const Real* a;
  const Motion<Real>* A;  // link velocities of a
  const Real *y, *slope, *curvature;
  const Bar* w;
  const Motion<Bar>* W;  // link velocities of w
  const SoftForceCotangent<Bar>* forces = nullptr;
};

template <class Bar>
struct SoftConstraintsCotangent {
  Force<Bar>*F_x, *A_bar;  // [nv] cotangents of a's part of J a, and of the velocity-product accelerations

  SoftConstraintsCotangent(const Model& model, Arena& arena)
      : F_x(arena.take<Force<Bar>>(model.nv)), A_bar(arena.take<Force<Bar>>(model.nv)) {}
};

// Cotangents of the rows of one constraint.
template <class Bar>
struct SoftRowsCotangent {
  RowJacobianCotangent<Bar> J[most_rows];
  Bar x_[most_rows];   // aref_bar
  Bar pos[most_rows];  // cotangent of x in (1), from aref alone
  Bar impedance, stiffness, damping, friction_damping;
  ConstraintCostCotangent<Bar> cost;
};

// Computes z, x_, and from them, for each row, J_bar and the links' forces of (3).
template <class Real, class Bar>
REVOLUTE_HD void soft_rows_adjoint(const SoftContext<Real>& at, const SoftConstraints<Real>& constraints,
                                   const SoftConstraint<Real>& c, const SoftAdjointInput<Real, Bar>& in,
                                   SoftConstraintsCotangent<Bar>& ws, Force<Bar>* F_v, Bar* qvel_bar,
                                   SoftRowsCotangent<Bar>& out) {
  const int rows = c.cost.rows;
  const Real* const B = in.curvature + c.block;
  Bar z[most_rows] = {};
  constraint_times(constraints, c, in.w, z);
  for (int r = 0; in.forces && r < rows; ++r) z[r] += in.forces->force[c.row + r];
  out.cost = cost_adjoint(c.cost, in.y + c.row, z);
  out.impedance = out.stiffness = out.damping = out.friction_damping = Bar(0);
  for (int r = 0; r < rows; ++r) {
    Bar x_ = B[r * rows] * z[0];
    for (int s = 1; s < rows; ++s) x_ = multiply_add(B[r * rows + s], z[s], x_);
    const RowJacobian<Real>& J = constraints.row_J[c.row + r];
    const Real damping = r == 0 ? c.damping : c.friction_damping, x = constraints.pos[c.row + r];
    const Real force = -in.slope[c.row + r];
    RowJacobianCotangent<Bar>& J_bar = out.J[r];
    J_bar.force_a = J_bar.force_b = zero_force<Bar>();
    for (int i = 0; i < row_dofs; ++i) J_bar.coefficient[i] = Bar(0);
    add_row_cotangent(J, force, in.w, in.W, J_bar);
    if (in.forces) {
      const Motion<Bar>&on_a = in.forces->on_a[&c - constraints.list],
            &on_b = in.forces->on_b[&c - constraints.list];
      J_bar.force_a += force * Force<Bar>{on_a.w, on_a.v};
      J_bar.force_b += force * Force<Bar>{on_b.w, on_b.v};
    }
    add_row_cotangent(J, -x_, in.a, in.A, J_bar);
    const Bar velocity_bar = -(damping * x_);
    add_row_cotangent(J, velocity_bar, at.qvel, at.kinematics->V, J_bar);
    add_row_transpose(J, velocity_bar, qvel_bar, F_v);
    if (J.link_a >= 0) ws.F_x[J.link_a] -= x_ * J.force_a;
    if (J.link_b >= 0) ws.F_x[J.link_b] -= x_ * J.force_b;
    out.x_[r] = x_;
    out.pos[r] = -(c.stiffness * c.impedance) * x_;
    out.impedance -= (c.stiffness * x) * x_;
    out.stiffness -= (c.impedance * x) * x_;
    (r == 0 ? out.damping : out.friction_damping) -= constraints.velocity[c.row + r] * x_;
  }
}

// Passes D_bar on to I and to the scale in (2).
template <class Real, class Bar>
REVOLUTE_HD inline Bar softness_adjoint(const SoftConstraint<Real>& c, const Real& D, const Real& weight,
                                        const Bar& D_bar, Bar& impedance_bar) {
  const auto free = less(Real(least_value) * D, Real(1));  // R is not cut
  const Bar R_bar = -(select(free, D * D, Real(0)) * D_bar);
  impedance_bar -= (weight / (c.impedance * c.impedance)) * R_bar;
  return ((Real(1) - c.impedance) / c.impedance) * R_bar;
}

// Cotangents of the inputs of (1) and (2).
template <class Bar>
struct ReferenceCotangent {
  Bar x, solref[2], solref_friction[2], solimp[5];
};
// Starts from the cotangents of I, K and B; x is the violation at which I was taken.
template <class Real, class Bar>
REVOLUTE_HD ReferenceCotangent<Bar> reference_adjoint(const Model& model, const Real& h,
                                                      const SoftConstraint<Real>& c, const Real& x,
                                                      const SoftRowsCotangent<Bar>& bar) {
  ReferenceCotangent<Bar> out;
  ImpedanceSlopes<Real> slopes;
  const Impedance<Real> I = impedance(c.solimp, x, &slopes);
  const Reference<Real> of_all = reference(model, h, c.solref, I.most);
  Bar most_bar = of_all.stiffness_by_most * bar.stiffness + of_all.damping_by_most * bar.damping;
  Bar damping_bar = bar.damping;
  out.x = I.slope * bar.impedance;
  out.solref_friction[0] = out.solref_friction[1] = Bar(0);
  if (c.cost.kind == CostKind::ellipse) {
    const auto own = own_friction_reference(c);
    const Reference<Real> sliding = reference(model, h, c.solref_friction, I.most);
    const Real yes = indicator<Real>(own), no = Real(1) - yes;
    damping_bar += no * bar.friction_damping;
    most_bar += (select(own, sliding.damping_by_most, of_all.damping_by_most)) * bar.friction_damping;
    for (int i = 0; i < 2; ++i)
      out.solref_friction[i] = select(own, sliding.damping_by_solref[i], Real(0)) * bar.friction_damping;
  } else {
    damping_bar += bar.friction_damping;
    most_bar += of_all.damping_by_most * bar.friction_damping;
  }
  for (int i = 0; i < 2; ++i)
    out.solref[i] = of_all.stiffness_by_solref[i] * bar.stiffness + of_all.damping_by_solref[i] * damping_bar;
  for (int i = 0; i < 5; ++i) out.solimp[i] = slopes.by_solimp[i] * bar.impedance;
  const auto free = within(c.solimp[1], least_impedance, most_impedance);
  out.solimp[1] += indicator<Real>(free) * most_bar;
  return out;
}

template <class Real, class Bar>
REVOLUTE_HD void soft_equality_adjoint(const Model& model, const SoftContext<Real>& at,
                                       const SoftConstraints<Real>& constraints,
                                       const SoftConstraint<Real>& c, SoftRowsCotangent<Bar>& bar,
                                       SoftConstraintsCotangent<Bar>& ws, Force<Bar>* F_v, Bar* qpos_bar,
                                       KinematicsCotangent<Bar>& kin_bar) {
  const Kinematics<Real>& kin = *at.kinematics;
  const Equality& equality = model.equalities[c.index];
  const EqualityRows<Real> values = soft_equality_rows(model, at, equality, constraints.A_bias);
  Real inverse;
  const Real norm = violation_norm(values, c.cost.rows, inverse);
  for (int part = 0; part < 2; ++part)
    softness_adjoint(c, c.cost.D[part], Real(equality.weight[part]), bar.cost.D[part], bar.impedance);
  const ReferenceCotangent<Bar> reference_bar = reference_adjoint(model, at.h, c, norm, bar);
  EqualityRowsCotangent<Bar> rows_bar;
  for (int r = 0; r < c.cost.rows; ++r) {
    rows_bar.J[r] = bar.J[r];
    rows_bar.violation[r] = bar.pos[r] + (values.violation[r] * inverse) * reference_bar.x;
    rows_bar.bias[r] = -bar.x_[r];
  }
  if (equality.type == EqualityType::joint)
    return joint_equality_row_adjoint(equality, at.qpos, rows_bar, qpos_bar);
  HeldFrameCotangent<Bar> of[2];
  for (HeldFrameCotangent<Bar>& frame : of) frame.V = frame.A = zero_force<Bar>();
  body_equality_rows_adjoint(model, kin, equality, held_frame(kin, constraints.A_bias, equality.link_a),
                             held_frame(kin, constraints.A_bias, equality.link_b), rows_bar, of[0], of[1],
                             kin_bar);
  const int links[2] = {equality.link_a, equality.link_b};
  for (int side = 0; side < 2; ++side) {
    if (links[side] < 0) continue;
    F_v[links[side]] += of[side].V;
    ws.A_bar[links[side]] += of[side].A;
  }
}

// (3) for a row of tendons: adds the cotangents of its entries, times their factors, to those of the tendons. The
// transmissions' adjoint handles the links' axes in this J.
template <class Real, class Bar>
REVOLUTE_HD void tendon_row_adjoint(const Model& model, const SoftContext<Real>& at,
                                    const SoftConstraint<Real>& c, const SoftAdjointInput<Real, Bar>& in,
                                    const SoftRowsCotangent<Bar>& bar,
                                    const SoftConstraints<Real>& constraints, const int* tendons,
                                    const Real* factors, TransmissionsCotangent<Bar>& transmissions_bar,
                                    Bar* qvel_bar, Bar* factors_bar) {
  const Support& support = c.support;
  const Real force = -in.slope[c.row];
  const Bar velocity_bar = -(c.damping * bar.x_[0]);
  const auto J_bar = [&](int dof) {
    return force * in.w[dof] - in.a[dof] * bar.x_[0] + at.qvel[dof] * velocity_bar;
  };
  for (int i = 0; i < support.count; ++i)
    qvel_bar[support.dofs[i]] += constraints.J[c.entry + i] * velocity_bar;
  visit_tendon_entries(model, c.support, tendons, [&](int i, int k, int side) {
    const Transmission& of = model.transmissions[tendons[side]];
    const Bar entry_bar = J_bar(support.dofs[i]);
    transmissions_bar.row(of)[k] += factors[side] * entry_bar;
    factors_bar[side] += at.transmissions->row(of)[k] * entry_bar;
  });
}
template <class Real, class Bar>
REVOLUTE_HD void tendon_constraint_adjoint(const Model& model, const SoftContext<Real>& at,
                                           const SoftConstraints<Real>& constraints,
                                           const SoftConstraint<Real>& c,
                                           const SoftAdjointInput<Real, Bar>& in, SoftRowsCotangent<Bar>& bar,
                                           TransmissionsCotangent<Bar>& transmissions_bar, Bar* qvel_bar) {
  int tendons[2] = {c.source == RowSource::tendon_limit ? c.index / 2 : c.index, -1};
  Real factors[2] = {Real(1), Real(0)}, curvature(0), weight = c.scale;
  if (c.source == RowSource::tendon_limit) factors[0] = Real(limit_sign(c.index % 2));
  if (c.source == RowSource::equality) {
    const Equality& equality = model.equalities[c.index];
    Real slope;
    tendon_violation(at, equality, slope, curvature);
    tendons[0] = equality.tendon_a;
    tendons[1] = equality.tendon_b;
    factors[1] = -slope;
    weight = Real(equality.weight[0]);
  }
  softness_adjoint(c, c.cost.D[0], weight, bar.cost.D[0], bar.impedance);
  const Real x = constraints.pos[c.row];
  const ReferenceCotangent<Bar> reference_bar = reference_adjoint(model, at.h, c, x, bar);
  Bar factors_bar[2] = {Bar(0), Bar(0)};
  tendon_row_adjoint(model, at, c, in, bar, constraints, tendons, factors, transmissions_bar, qvel_bar,
                     factors_bar);
  if (c.source == RowSource::tendon_friction) return;
  const Bar x_bar = bar.pos[0] + reference_bar.x;
  transmissions_bar.length[tendons[0]] += factors[0] * x_bar;
  if (tendons[1] >= 0)
    transmissions_bar.length[tendons[1]] += factors[1] * x_bar - curvature * factors_bar[1];
}

template <class Real, class Bar>
REVOLUTE_HD void soft_dry_friction_adjoint(const Parameters<Real>& parameters, const SoftConstraint<Real>& c,
                                           const SoftRowsCotangent<Bar>& bar,
                                           Parameters<Bar>& parameters_bar) {
  const auto rubs = less(Real(0), parameters.frictionloss[c.index]);
  parameters_bar.frictionloss[c.index] += indicator<Real>(rubs) * bar.cost.bound;
}

template <class Real, class Bar>
REVOLUTE_HD void soft_limit_adjoint(const Model& model, const Parameters<Real>& parameters,
                                    const SoftContext<Real>& at, const SoftConstraint<Real>& c,
                                    SoftRowsCotangent<Bar>& bar, Bar* qpos_bar,
                                    Parameters<Bar>& parameters_bar) {
  const Limit& limit = model.limits_list[c.index];
  Real gap;
  limit_jacobian(parameters, limit, at.qpos, gap);
  softness_adjoint(c, c.cost.D[0], c.scale, bar.cost.D[0], bar.impedance);
  const ReferenceCotangent<Bar> reference_bar =
      reference_adjoint(model, at.h, c, Real(gap - Real(limit.margin)), bar);
  const Real active = indicator<Real>(less(gap, Real(limit.margin)));
  limit_gap_adjoint(limit, at.qpos, Bar(active * (bar.pos[0] + reference_bar.x)), bar.J[0], qpos_bar,
                    parameters_bar);
}

// Passes D_bar on to I and the friction coefficients.
template <class Real, class Bar>
REVOLUTE_HD void contact_softness_adjoint(const Model& model, const SoftConstraint<Real>& c,
                                          const Real& weight, SoftRowsCotangent<Bar>& bar) {
  const Bar scale_bar = softness_adjoint(c, c.cost.D[0], c.scale, bar.cost.D[0], bar.impedance);
  const Real inverse_ratio(1.0 / std::sqrt(std::fmax(least_value, model.friction_to_normal)));
  const Real mu = c.cost.mu[0], m = c.cost.normal_mu;
  Bar m_bar = bar.cost.normal_mu;
  if (c.cost.kind == CostKind::pyramid) {
    m_bar += (Real(4) * m * (Real(1) + mu * mu) * weight) * scale_bar;
    bar.cost.mu[0] += (Real(4) * m * m * mu * weight) * scale_bar;
  }
  bar.cost.mu[0] += inverse_ratio * m_bar;
}

template <class Real, class Bar>
REVOLUTE_HD void soft_contact_adjoint(const Model& model, const SoftContext<Real>& at,
                                      const Parameters<Real>& parameters, const Contacts<Real>& contacts,
                                      const SoftConstraint<Real>& c, SoftRowsCotangent<Bar>& bar,
                                      KinematicsCotangent<Bar>& kin_bar, Parameters<Bar>& parameters_bar) {
  const Contact<Real>& contact = contacts.list[c.index];
  const Candidate& candidate = *contact.candidate;
  contact_softness_adjoint(model, c, Real(candidate.weight), bar);
  const ReferenceCotangent<Bar> reference_bar =
      reference_adjoint(model, at.h, c, contact.gap - Real(candidate.margin), bar);
  ContactCotangent<Bar> contact_bar;
  contact_bar.clear();
  const Real active = indicator<Real>(contact.active);
  contact_bar.gap = active * (bar.pos[0] + reference_bar.x);
  for (int r = 0; r < c.cost.rows; ++r) {
    if (r < 3) {
      contact_bar.force_a[r] += bar.J[r].force_a;
      contact_bar.force_b[r] += bar.J[r].force_b;
    } else {
      contact_bar.axis[rotation_axis(r)] += bar.J[r].force_b.n - bar.J[r].force_a.n;
    }
  }
  collision_detection_adjoint(model, *at.kinematics, contact, contact_bar, kin_bar);
  PairSoftness<Bar> softness_bar;
  for (int k = 1; k < most_rows; ++k)
    softness_bar.friction[k - 1] = k < c.cost.rows ? bar.cost.mu[k - 1] : Bar(0);
  for (int i = 0; i < 2; ++i) softness_bar.solref[i] = reference_bar.solref[i];
  for (int i = 0; i < 5; ++i) softness_bar.solimp[i] = reference_bar.solimp[i];
  pair_softness_adjoint(parameters, candidate, softness_bar, parameters_bar);
}

// Adds to F_v (cotangents of the links' velocities), qpos_bar, qvel_bar, kin_bar and parameters_bar.
template <class Real, class Bar>
REVOLUTE_HD void soft_constraints_adjoint(const Model& model, const Parameters<Real>& parameters,
                                          const SoftContext<Real>& at, const Contacts<Real>& contacts,
                                          const SoftConstraints<Real>& constraints,
                                          const SoftAdjointInput<Real, Bar>& in,
                                          SoftConstraintsCotangent<Bar>& ws,
                                          TransmissionsCotangent<Bar>& transmissions_bar, Force<Bar>* F_v,
                                          Bar* qpos_bar, Bar* qvel_bar, KinematicsCotangent<Bar>& kin_bar,
                                          Parameters<Bar>& parameters_bar) {
  for (int k = 0; k < model.nv; ++k) ws.F_x[k] = ws.A_bar[k] = zero_force<Bar>();
  SoftRowsCotangent<Bar> bar;
  for (int i = 0; i < constraints.count; ++i) {
    const SoftConstraint<Real>& c = constraints.list[i];
    soft_rows_adjoint(at, constraints, c, in, ws, F_v, qvel_bar, bar);
    switch (c.source) {
      case RowSource::equality:
        if (is_of_tendons(model.equalities[c.index])) {
          tendon_constraint_adjoint(model, at, constraints, c, in, bar, transmissions_bar, qvel_bar);
          break;
        }
        soft_equality_adjoint(model, at, constraints, c, bar, ws, F_v, qpos_bar, kin_bar);
        break;
      case RowSource::tendon_friction:
      case RowSource::tendon_limit:
        tendon_constraint_adjoint(model, at, constraints, c, in, bar, transmissions_bar, qvel_bar);
        break;
      case RowSource::dry_friction:
        soft_dry_friction_adjoint(parameters, c, bar, parameters_bar);
        break;
      case RowSource::limit:
        soft_limit_adjoint(model, parameters, at, c, bar, qpos_bar, parameters_bar);
        break;
      default:
        soft_contact_adjoint(model, at, parameters, contacts, c, bar, kin_bar, parameters_bar);
    }
  }
  // the axes in J a
  sum_towards_root(model, ws.F_x);
  for (int k = 0; k < model.nv; ++k) kin_bar.S[k] += in.a[k] * ws.F_x[k];
  if (has_bias<Real>(model))
    velocity_products_adjoint(model, *at.kinematics, at.qvel, ws.A_bar, qvel_bar, kin_bar.S, F_v);
}

}  // namespace revolute
