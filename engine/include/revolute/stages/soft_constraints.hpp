// Constraints of the contact model "mujoco": what Newton's method sees of equality constraints, dry friction, joint limits and
// contacts.
//
//   rows  y = J a - aref,   aref = -B (J v) - K I x - dJ/dt v,   x = pos - margin                (1)
//   R = (1 - I)/I weight, at least 1e-15,   D = 1/R of the cost (constraint_cost.hpp)              (2)
//   pyramid:  R = 2 m^2 (1 + mu_1^2) (1 - I)/I weight,  m = mu_1/sqrt(impratio);  ellipse: (2) for the normal
// I, K and B come from solimp and solref (impedance.hpp); dJ/dt v is MuJoCo's, of connect and weld only. Dry friction has no K;
// the sliding rows of a contact have none either, and B of solreffriction where that is given (ellipse).
// Order: equality, dry friction, limits, contacts. A constraint is there when it acts in any environment of a pack; where it
// does not act, D is zero.
// Source: MuJoCo, Computation, section Constraint model.
//
// Adjoint (docs/adjoint.md, section 11): with w from the last factors of Newton's method, z = J w, x_ = s'' z, f = -s',
//   J_bar = f w' - x_ (a + B v)',   J_bar of the links' axes in three sums of wrenches            (3)
//   aref_bar = x_:  x_bar = -K I x_,  B_bar = -(J v) x_,  K_bar = -I x x_,  I_bar = -K x x_        (4)
// and D_bar of the cost. Not differentiated: which constraints act.
#pragma once

#include "revolute/solvers/constraint_cost.hpp"
#include "revolute/stages/acceleration.hpp"
#include "revolute/stages/impedance.hpp"
#include "revolute/stages/rows/contact.hpp"
#include "revolute/stages/rows/limit.hpp"
#include "revolute/stages/rows/soft_equality.hpp"

namespace revolute {

template <class Real>
struct SoftConstraint {
  RowSource source;
  int index;  // of its kind; contact: place in the list of contacts
  int row;    // its first
  int support;
  std::size_t entry;  // of SoftConstraints::J: [support, rows]
  std::size_t block;  // of blocks of its rows squared
  ConstraintCost<Real> cost;
  Real impedance, stiffness, damping, friction_damping;  // I, K, B, B of sliding rows
  Real scale;                                            // what (2) multiplies (1 - I)/I with
  Real solref[2], solref_friction[2], solimp[5];
};

template <class Real>
struct SoftConstraints {
  int count, rows;
  SoftConstraint<Real>* list;
  RowJacobian<Real>* row_J;     // [rows]
  Real *aref, *velocity, *pos;  // [rows] aref, J v, x (of rows that have a stiffness)
  Real* J;                      // entries along the supports
  Motion<Real>* A_bias;         // [nv] velocity-product accelerations; of models with connect or weld

  SoftConstraints(const Model& model, Arena& arena) : count(0), rows(0) {
    std::size_t row_count = 0, entries = 0, constraints = capacity(model);
    for_all(model, [&](int r, int support) {
      row_count += r;
      entries += std::size_t(r) * model.supports[support].count;
    });
    list = arena.take<SoftConstraint<Real>>(constraints);
    row_J = arena.take<RowJacobian<Real>>(row_count);
    for (Real** array : {&aref, &velocity, &pos}) *array = arena.take<Real>(row_count);
    J = arena.take<Real>(entries);
    A_bias = arena.take<Motion<Real>>(model.nv);
  }
  static std::size_t capacity(const Model& model) {
    std::size_t sum = 0;
    for_all(model, [&](int, int) { ++sum; });
    return sum;
  }
  static std::size_t row_capacity(const Model& model) {
    std::size_t sum = 0;
    for_all(model, [&](int r, int) { sum += r; });
    return sum;
  }
  static std::size_t block_capacity(const Model& model) {
    std::size_t sum = 0;
    for_all(model, [&](int r, int) { sum += std::size_t(r) * r; });
    return sum;
  }

 private:
  // visit(rows, support) for all that may ever act
  template <class Visit>
  static void for_all(const Model& model, const Visit& visit) {
    if (model.contact_model != ContactModel::mujoco) return;
    for (int i = 0; i < model.nequality; ++i)
      visit(equality_rows(model.equalities[i]), model.equalities[i].support);
    for (int k = 0; k < model.nv && model.dry_friction; ++k) visit(1, k);
    for (int i = 0; i < model.nlimit; ++i) visit(1, model.limits_list[i].support);
    for (int i = 0; i < model.ncandidate; ++i) visit(model.candidates[i].condim, model.candidates[i].support);
  }
};

// The state that the constraints are formed at.
template <class Real>
struct SoftContext {
  Real h;
  const Kinematics<Real>* kinematics;
  const Real *qpos, *qvel;
};

template <class Real>
REVOLUTE_HD inline bool has_bias(const Model& model) {
  for (int i = 0; i < model.nequality; ++i)
    if (model.equalities[i].type != EqualityType::joint) return true;
  return false;
}
template <class Real>
REVOLUTE_HD inline HeldFrame<Real> held_frame(const Kinematics<Real>& kin, const Motion<Real>* A_bias,
                                              int link) {
  return {at_link(kin.V, link), at_link(A_bias, link)};
}

// --- forward ------------------------------------------------------------------------------------------------------------

template <class Real>
REVOLUTE_HD inline void set_softness(const Softness& softness, SoftConstraint<Real>& c) {
  for (int i = 0; i < 2; ++i) {
    c.solref[i] = Real(softness.solref[i]);
    c.solref_friction[i] = Real(0);
  }
  for (int i = 0; i < 5; ++i) c.solimp[i] = Real(softness.solimp[i]);
}

// D of (2), zero where the constraint does not act.
template <class Real>
REVOLUTE_HD inline Real inverse_softness(const Real& softness, const MaskOf<Real>& active) {
  return select(active, Real(1) / maximum(Real(least_value), softness), Real(0));
}

// I, K and B at violation x.
template <class Real>
REVOLUTE_HD inline void set_reference(const Model& model, const Real& h, const Real& x,
                                      SoftConstraint<Real>& c) {
  const Impedance<Real> I = impedance(c.solimp, x, static_cast<ImpedanceSlopes<Real>*>(nullptr));
  const Reference<Real> reference_of_all = reference(model, h, c.solref, I.most);
  c.impedance = I.value;
  c.stiffness = reference_of_all.stiffness;
  c.damping = c.friction_damping = reference_of_all.damping;
}

// Appends the rows' Jacobians, and aref of (1) for given x and dJ/dt v; `stiff`: how many rows have x.
template <class Real>
REVOLUTE_HD void finish_constraint(const Model& model, const SoftContext<Real>& at,
                                   const RowJacobian<Real>* J, const Real* x, int stiff, const Real* bias,
                                   SoftConstraint<Real>& c, SoftConstraints<Real>& out) {
  const int rows = c.cost.rows;
  const Support& support = model.supports[c.support];
  for (int r = 0; r < rows; ++r) {
    const Real velocity = row_times(J[r], at.qvel, at.kinematics->V);
    const Real B = r == 0 ? c.damping : c.friction_damping;
    out.row_J[c.row + r] = J[r];
    out.velocity[c.row + r] = velocity;
    out.pos[c.row + r] = r < stiff ? x[r] : Real(0);
    Real aref = -(B * velocity);
    if (r < stiff) aref -= c.stiffness * c.impedance * x[r];
    if (bias) aref -= bias[r];
    out.aref[c.row + r] = aref;
  }
  Real* entries = out.J + c.entry;
  for (int i = 0; i < support.count; ++i) {
    const int k = model.support_dofs[support.first + i], side = model.support_sides[support.first + i];
    for (int r = 0; r < rows; ++r, ++entries) {
      const RowJacobian<Real>& row = J[r];
      if (row.dofs == 0) {
        *entries = dot(at.kinematics->S[k], side == both_sides ? row.force_a + row.force_b
                                            : side == 0        ? row.force_a
                                                               : row.force_b);
        continue;
      }
      for (int d = 0; d < row.dofs; ++d)
        if (row.dof[d] == k) *entries = row.coefficient[d];
    }
  }
  out.rows += rows;
}

// A new constraint at the end of the list.
template <class Real>
REVOLUTE_HD SoftConstraint<Real>& append_constraint(const Model& model, RowSource source, int index, int rows,
                                                    int support, CostKind kind, SoftConstraints<Real>& out) {
  SoftConstraint<Real>& c = out.list[out.count];
  c.source = source;
  c.index = index;
  c.support = support;
  c.row = out.rows;
  c.entry = c.block = 0;
  if (out.count > 0) {
    const SoftConstraint<Real>& last = out.list[out.count - 1];
    c.entry = last.entry + std::size_t(last.cost.rows) * model.supports[last.support].count;
    c.block = last.block + std::size_t(last.cost.rows) * last.cost.rows;
  }
  c.cost.kind = kind;
  c.cost.rows = rows;
  c.cost.D[0] = c.cost.D[1] = c.cost.bound = c.cost.normal_mu = Real(0);
  for (int k = 0; k < most_rows - 1; ++k) c.cost.mu[k] = Real(0);
  ++out.count;
  return c;
}

template <class Real>
REVOLUTE_HD EqualityRows<Real> soft_equality_rows(const Model& model, const SoftContext<Real>& at,
                                                  const Equality& equality, const Motion<Real>* A_bias) {
  EqualityRows<Real> out;
  const Kinematics<Real>& kin = *at.kinematics;
  if (equality.type == EqualityType::joint)
    joint_equality_row(equality, at.qpos, out);
  else
    body_equality_rows(model, kin, equality, held_frame(kin, A_bias, equality.link_a),
                       held_frame(kin, A_bias, equality.link_b), out);
  return out;
}
// |g| of all rows, and 1/|g|
template <class Real>
REVOLUTE_HD inline Real violation_norm(const EqualityRows<Real>& rows, int count, Real& inverse) {
  Real squared(0);
  for (int r = 0; r < count; ++r) squared += rows.violation[r] * rows.violation[r];
  const auto zero = less_equal(squared, Real(Precision<Real>::tiny_square));
  const Real norm = select(zero, Real(0), sqrt(select(zero, Real(1), squared)));
  inverse = select(zero, Real(0), Real(1) / select(zero, Real(1), norm));
  return norm;
}

template <class Real>
REVOLUTE_HD void add_equalities(const Model& model, const SoftContext<Real>& at, SoftConstraints<Real>& out) {
  for (int i = 0; i < model.nequality; ++i) {
    const Equality& equality = model.equalities[i];
    if (model.supports[equality.support].count == 0) continue;
    const int rows = equality_rows(equality);
    SoftConstraint<Real>& c =
        append_constraint(model, RowSource::equality, i, rows, equality.support, CostKind::quadratic, out);
    const EqualityRows<Real> values = soft_equality_rows(model, at, equality, out.A_bias);
    Real inverse;
    set_softness(equality.softness, c);
    set_reference(model, at.h, violation_norm(values, rows, inverse), c);
    const Real ratio = (Real(1) - c.impedance) / c.impedance;
    c.scale = Real(1);
    for (int part = 0; part < 2; ++part)
      c.cost.D[part] = Real(1) / maximum(Real(least_value), ratio * Real(equality.weight[part]));
    finish_constraint(model, at, values.J, values.violation, rows, values.bias, c, out);
  }
}

template <class Real>
REVOLUTE_HD void add_dry_friction(const Model& model, const Parameters<Real>& parameters,
                                  const SoftContext<Real>& at, SoftConstraints<Real>& out) {
  for (int k = 0; k < model.nv; ++k) {
    const auto rubs = less(Real(0), parameters.frictionloss[k]);
    if (!any(rubs)) continue;
    SoftConstraint<Real>& c =
        append_constraint(model, RowSource::dry_friction, k, 1, k, CostKind::huber, out);
    set_softness(model.dof_softness[k], c);
    set_reference(model, at.h, Real(0), c);
    c.scale = Real(model.dof_weight[k]);
    c.cost.D[0] = inverse_softness((Real(1) - c.impedance) / c.impedance * c.scale, rubs);
    c.cost.bound = select(rubs, parameters.frictionloss[k], Real(0));
    const RowJacobian<Real> J = dof_row(k, Real(1));
    finish_constraint(model, at, &J, static_cast<const Real*>(nullptr), 0, static_cast<const Real*>(nullptr),
                      c, out);
  }
}

template <class Real>
REVOLUTE_HD void add_limits(const Model& model, const Parameters<Real>& parameters,
                            const SoftContext<Real>& at, SoftConstraints<Real>& out) {
  for (int i = 0; i < model.nlimit; ++i) {
    const Limit& limit = model.limits_list[i];
    Real gap;
    const RowJacobian<Real> J = limit_jacobian(parameters, limit, at.qpos, gap);
    const auto active = less(gap, Real(limit.margin));
    if (!any(active)) continue;
    SoftConstraint<Real>& c =
        append_constraint(model, RowSource::limit, i, 1, limit.support, CostKind::unilateral, out);
    const Real x = gap - Real(limit.margin);
    set_softness(limit.softness, c);
    set_reference(model, at.h, x, c);
    c.scale = Real(limit.weight);
    c.cost.D[0] = inverse_softness((Real(1) - c.impedance) / c.impedance * c.scale, active);
    finish_constraint(model, at, &J, &x, 1, static_cast<const Real*>(nullptr), c, out);
  }
}

// Whether friction rows have a reference of their own.
template <class Real>
REVOLUTE_HD inline MaskOf<Real> own_friction_reference(const SoftConstraint<Real>& c) {
  return less(Real(0), abs(c.solref_friction[0]) + abs(c.solref_friction[1]));
}
template <class Real>
REVOLUTE_HD inline CostKind contact_cost(const Model& model, int condim) {
  if (condim == 1) return CostKind::unilateral;
  return model.cone == Cone::elliptic ? CostKind::ellipse : CostKind::pyramid;
}

template <class Real>
REVOLUTE_HD void add_contacts(const Model& model, const Parameters<Real>& parameters,
                              const SoftContext<Real>& at, const Contacts<Real>& contacts,
                              SoftConstraints<Real>& out) {
  const Real inverse_ratio(1.0 / std::sqrt(std::fmax(least_value, model.friction_to_normal)));
  for (int i = 0; i < contacts.count; ++i) {
    const Contact<Real>& contact = contacts.list[i];
    const Candidate& candidate = model.candidates[contact.candidate];
    if (model.supports[candidate.support].count == 0) continue;
    const PairSoftness<Real>& softness = parameters.softness[candidate.friction];
    const CostKind kind = contact_cost<Real>(model, candidate.condim);
    SoftConstraint<Real>& c =
        append_constraint(model, RowSource::contact, i, candidate.condim, candidate.support, kind, out);
    for (int k = 0; k < 2; ++k) {
      c.solref[k] = softness.solref[k];
      c.solref_friction[k] = softness.solref_friction[k];
    }
    for (int k = 0; k < 5; ++k) c.solimp[k] = softness.solimp[k];
    for (int k = 1; k < candidate.condim; ++k) c.cost.mu[k - 1] = softness.friction[k - 1];
    const Real x = contact.gap - Real(candidate.margin), weight(candidate.weight);
    set_reference(model, at.h, x, c);
    c.cost.normal_mu = c.cost.mu[0] * inverse_ratio;
    c.scale = weight;
    if (kind == CostKind::pyramid)
      c.scale =
          Real(2) * c.cost.normal_mu * c.cost.normal_mu * (Real(1) + c.cost.mu[0] * c.cost.mu[0]) * weight;
    if (kind == CostKind::ellipse) {
      const auto own = own_friction_reference(c);
      if (any(own)) {
        const Real most = clamp(c.solimp[1], Real(least_impedance), Real(most_impedance));
        c.friction_damping =
            select(own, reference(model, at.h, c.solref_friction, most).damping, c.friction_damping);
      }
    }
    c.cost.D[0] = inverse_softness((Real(1) - c.impedance) / c.impedance * c.scale, contact.active);
    RowJacobian<Real> J[most_rows];
    for (int r = 0; r < candidate.condim; ++r) J[r] = contact_jacobian(candidate, contact, r);
    finish_constraint(model, at, J, &x, 1, static_cast<const Real*>(nullptr), c, out);
  }
}

template <class Real>
REVOLUTE_HD void soft_constraints(const Model& model, const Parameters<Real>& parameters,
                                  const SoftContext<Real>& at, const Contacts<Real>& contacts,
                                  SoftConstraints<Real>& out) {
  out.count = out.rows = 0;
  if (has_bias<Real>(model))
    link_accelerations(model, zero3<Real>(), *at.kinematics, at.qvel, static_cast<const Real*>(nullptr),
                       out.A_bias);
  add_equalities(model, at, out);
  if (model.dry_friction) add_dry_friction(model, parameters, at, out);
  if (model.limits) add_limits(model, parameters, at, out);
  add_contacts(model, parameters, at, contacts, out);
}

// y = J x, of one constraint
template <class Real, class X>
REVOLUTE_HD void constraint_times(const Model& model, const SoftConstraints<Real>& constraints,
                                  const SoftConstraint<Real>& c, const X* x, X* y) {
  const Support& support = model.supports[c.support];
  const Real* J = constraints.J + c.entry;
  for (int r = 0; r < c.cost.rows; ++r) y[r] = X(0);
  for (int i = 0; i < support.count; ++i) {
    const X& at = x[model.support_dofs[support.first + i]];
    for (int r = 0; r < c.cost.rows; ++r, ++J) y[r] = multiply_add(*J, at, y[r]);
  }
}
// x += J' y, of one constraint
template <class Real, class X>
REVOLUTE_HD void add_constraint_transpose(const Model& model, const SoftConstraints<Real>& constraints,
                                          const SoftConstraint<Real>& c, const X* y, X* x) {
  const Support& support = model.supports[c.support];
  const Real* J = constraints.J + c.entry;
  for (int i = 0; i < support.count; ++i) {
    X& sum = x[model.support_dofs[support.first + i]];
    for (int r = 0; r < c.cost.rows; ++r, ++J) sum = multiply_add(*J, y[r], sum);
  }
}

}  // namespace revolute
