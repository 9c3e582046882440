// Constraints of the contact model "mujoco", as Newton's method sees them: equality constraints, dry friction, joint limits and
// contacts.
//
//   rows  y = J a - aref,   aref = -B (J v) - K I x - dJ/dt v,   x = pos - margin                (1)
//   R = (1 - I)/I weight, at least 1e-15,   D = 1/R of the cost (constraint_cost.hpp)              (2)
//   pyramid:  R = 2 m^2 (1 + mu_1^2) (1 - I)/I weight,  m = mu_1/sqrt(impratio);  ellipse: (2) for the normal
// I, K and B come from solimp and solref (impedance.hpp); dJ/dt v is MuJoCo's, for connect and weld only. Dry friction has no
// K. The sliding rows of a contact have no K either; their B comes from solreffriction if that is given (ellipse).
// Order: equality, dry friction, limits, contacts; within a kind, joints come before tendons. A tendon's J is that of its
// length (transmission.hpp); an equality of two tendons has J_1 - p'(l_2 - r_2) J_2. A constraint exists if it acts in any
// environment of a pack; in an environment where it does not act, D is zero.
// Source: MuJoCo, Computation, section Constraint model.
//
// Adjoint (docs/adjoint.md, section 11): with w from the last factors of Newton's method, z = J w, x_ = s'' z, f = -s',
//   J_bar = f w' - x_ (a + B v)',   J_bar of the links' axes in three sums of wrenches            (3)
//   aref_bar = x_:  x_bar = -K I x_,  B_bar = -(J v) x_,  K_bar = -I x x_,  I_bar = -K x x_        (4)
// and D_bar of the cost. Not differentiated: the set of constraints that act.
#pragma once

#include "revolute/solvers/constraint_cost.hpp"
#include "revolute/stages/acceleration.hpp"
#include "revolute/stages/impedance.hpp"
#include "revolute/stages/pair_softness.hpp"
#include "revolute/stages/rows/contact.hpp"
#include "revolute/stages/rows/limit.hpp"
#include "revolute/stages/rows/soft_equality.hpp"
#include "revolute/stages/transmission.hpp"

namespace revolute {

// Whether a tendon has dry friction.
REVOLUTE_HD inline bool rubs(const Model& model, int tendon) {
  return model.tendon_friction && model.tendons[tendon].frictionloss > 0;
}
REVOLUTE_HD inline bool is_of_tendons(const Equality& equality) {
  return equality.type == EqualityType::tendon;
}

template <class Real>
struct SoftConstraint {
  RowSource source;
  int index;  // place among its kind; contact: place in the list of contacts
  int row;    // its first row
  Support support;
  std::size_t entry;  // first entry in SoftConstraints::J: [rows, support]
  std::size_t block;  // first entry in blocks of rows squared
  ConstraintCost<Real> cost;
  Real impedance, stiffness, damping, friction_damping;  // I, K, B, B of sliding rows
  Real scale;                                            // the factor of (1 - I)/I in (2)
  Real solref[2], solref_friction[2], solimp[5];
};

template <class Real>
struct SoftConstraints {
  int count, rows;
  SoftConstraint<Real>* list;
  RowJacobian<Real>* row_J;       // [rows]
  Real *aref, *velocity, *pos;    // [rows] aref, J v, x (of rows that have a stiffness)
  Real* J;                        // entries along the supports
  int *found_dofs, *found_sides;  // supports of contacts of unlisted pairs
  int found;                      // length of both
  Motion<Real>* A_bias;           // [nv] velocity-product accelerations; for connect and weld

  SoftConstraints(const Model& model, Arena& arena) : count(0), rows(0), found(0) {
    std::size_t row_count = 0, entries = 0, constraints = capacity(model);
    for_all(model, [&](int r, int support_count) {
      row_count += r;
      entries += std::size_t(r) * support_count;
    });
    list = arena.take<SoftConstraint<Real>>(constraints);
    row_J = arena.take<RowJacobian<Real>>(row_count);
    for (Real** array : {&aref, &velocity, &pos}) *array = arena.take<Real>(row_count);
    J = arena.take<Real>(entries);
    A_bias = arena.take<Motion<Real>>(model.nv);
    const std::size_t longest = unlisted_contact_capacity(model) * model.longest_support;
    for (int** array : {&found_dofs, &found_sides}) *array = arena.take<int>(longest);
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
  // Calls visit(rows, length of the support) for all constraints that may ever act.
  template <class Visit>
  static void for_all(const Model& model, const Visit& visit) {
    if (model.contact_model != ContactModel::mujoco) return;
    for (int i = 0; i < model.nequality; ++i)
      visit(equality_rows(model.equalities[i]), model.supports[model.equalities[i].support].count);
    for (int k = 0; k < model.nv && model.dry_friction; ++k) visit(1, 1);
    for (int i = 0; i < model.nlimit; ++i) visit(1, model.supports[model.limits_list[i].support].count);
    for (int t = 0; t < model.ntendon; ++t) {
      const int length = model.supports[model.transmissions[t].support].count;
      if (rubs(model, t)) visit(1, length);
      for (int side = 0; side < 2 && model.limits && model.tendons[t].limited; ++side) visit(1, length);
    }
    for (int i = 0; i < model.ncandidate; ++i)
      visit(model.candidates[i].condim, model.supports[model.candidates[i].support].count);
    for (std::size_t i = 0; i < unlisted_contact_capacity(model); ++i)
      visit(most_rows, model.longest_support);
  }
};

// The state at which the constraints are formed.
template <class Real>
struct SoftContext {
  Real h;
  const Kinematics<Real>* kinematics;
  const Real *qpos, *qvel;
  const Transmissions<Real>* transmissions;
};

template <class Real>
REVOLUTE_HD inline bool has_bias(const Model& model) {
  for (int i = 0; i < model.nequality; ++i)
    if (model.equalities[i].type == EqualityType::connect || model.equalities[i].type == EqualityType::weld)
      return true;
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

// D of (2), or zero if the constraint does not act.
template <class Real>
REVOLUTE_HD inline Real inverse_softness(const Real& softness, const MaskOf<Real>& active) {
  return select(active, Real(1) / maximum(Real(least_value), softness), Real(0));
}

// Sets I, K and B at violation x.
template <class Real>
REVOLUTE_HD inline void set_reference(const Model& model, const Real& h, const Real& x,
                                      SoftConstraint<Real>& c) {
  const Impedance<Real> I = impedance(c.solimp, x, static_cast<ImpedanceSlopes<Real>*>(nullptr));
  const Reference<Real> reference_of_all = reference(model, h, c.solref, I.most);
  c.impedance = I.value;
  c.stiffness = reference_of_all.stiffness;
  c.damping = c.friction_damping = reference_of_all.damping;
}

// Appends the rows' Jacobians, and aref of (1) for given x and dJ/dt v; the first `stiff` rows have an x.
template <class Real>
REVOLUTE_HD void finish_constraint(const SoftContext<Real>& at, const RowJacobian<Real>* J, const Real* x,
                                   int stiff, const Real* bias, SoftConstraint<Real>& c,
                                   SoftConstraints<Real>& out) {
  const int rows = c.cost.rows;
  const Support& support = c.support;
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
  Real* const entries = out.J + c.entry;
  for (int i = 0; i < support.count; ++i) {
    const int k = support.dofs[i], side = support.sides[i];
    for (int r = 0; r < rows; ++r) {
      const RowJacobian<Real>& row = J[r];
      Real& entry = entries[r * support.count + i];
      if (row.dofs == 0) {
        entry = dot(at.kinematics->S[k], side == both_sides ? row.force_a + row.force_b
                                         : side == 0        ? row.force_a
                                                            : row.force_b);
        continue;
      }
      for (int d = 0; d < row.dofs; ++d)
        if (row.dof[d] == k) entry = row.coefficient[d];
    }
  }
  out.rows += rows;
}

// The same for one row of tendons, whose entries along the support are already there. Its RowJacobian stays empty: a row of
// tendons has no wrenches of its own.
template <class Real>
REVOLUTE_HD void finish_tendon_constraint(const SoftContext<Real>& at, const Real& x, SoftConstraint<Real>& c,
                                          SoftConstraints<Real>& out) {
  const Support& support = c.support;
  const Real* const J = out.J + c.entry;
  Real velocity(0);
  for (int i = 0; i < support.count; ++i) velocity = multiply_add(J[i], at.qvel[support.dofs[i]], velocity);
  out.row_J[c.row] = wrench_row(-1, zero_force<Real>(), -1, zero_force<Real>());
  out.velocity[c.row] = velocity;
  out.pos[c.row] = x;
  out.aref[c.row] = -(c.damping * velocity) - c.stiffness * c.impedance * x;
  out.rows += 1;
}

// Appends a new constraint to the list.
template <class Real>
REVOLUTE_HD SoftConstraint<Real>& append_constraint(RowSource source, int index, int rows,
                                                    const Support& support, CostKind kind,
                                                    SoftConstraints<Real>& out) {
  SoftConstraint<Real>& c = out.list[out.count];
  c.source = source;
  c.index = index;
  c.support = support;
  c.row = out.rows;
  c.entry = c.block = 0;
  if (out.count > 0) {
    const SoftConstraint<Real>& last = out.list[out.count - 1];
    c.entry = last.entry + std::size_t(last.cost.rows) * last.support.count;
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
// |g| over all rows, and 1/|g|
template <class Real>
REVOLUTE_HD inline Real violation_norm(const EqualityRows<Real>& rows, int count, Real& inverse) {
  Real squared(0);
  for (int r = 0; r < count; ++r) squared += rows.violation[r] * rows.violation[r];
  const auto zero = less_equal(squared, Real(Precision<Real>::tiny_square));
  const Real norm = select(zero, Real(0), sqrt(select(zero, Real(1), squared)));
  inverse = select(zero, Real(0), Real(1) / select(zero, Real(1), norm));
  return norm;
}

// The violation of an equality of tendons, and p' for the second tendon.
template <class Real>
REVOLUTE_HD Real tendon_violation(const SoftContext<Real>& at, const Equality& equality, Real& slope,
                                  Real& curvature) {
  const Real* const length = at.transmissions->length;
  Real p(equality.polynomial[0]);
  slope = curvature = Real(0);
  if (equality.tendon_b >= 0)
    polynomial(equality.polynomial, length[equality.tendon_b] - Real(equality.reference_b), p, slope,
               curvature);
  return length[equality.tendon_a] - Real(equality.reference_a) - p;
}
// Calls visit(i, k, of_b) for the entries of a row of tendons: place i in the support, entry k of tendon a or b.
template <class Visit>
REVOLUTE_HD void visit_tendon_entries(const Model& model, const Support& support, const int* tendons,
                                      const Visit& visit) {
  for (int side = 0; side < 2; ++side) {
    if (tendons[side] < 0) continue;
    const TransmissionDofs dofs = dofs_of(model, model.transmissions[tendons[side]]);
    for (int i = 0, k = 0; i < support.count && k < dofs.count; ++i)
      if (support.dofs[i] == dofs.dofs[k]) visit(i, k++, side);
  }
}
template <class Real>
REVOLUTE_HD void fill_tendon_row(const Model& model, const SoftContext<Real>& at, const int* tendons,
                                 const Real* factors, SoftConstraint<Real>& c, SoftConstraints<Real>& out) {
  Real* const J = out.J + c.entry;
  for (int i = 0; i < c.support.count; ++i) J[i] = Real(0);
  visit_tendon_entries(model, c.support, tendons, [&](int i, int k, int side) {
    J[i] += factors[side] * at.transmissions->row(model.transmissions[tendons[side]])[k];
  });
}
template <class Real>
REVOLUTE_HD void add_tendon_equality(const Model& model, const SoftContext<Real>& at, int index,
                                     SoftConstraints<Real>& out) {
  const Equality& equality = model.equalities[index];
  SoftConstraint<Real>& c = append_constraint(RowSource::equality, index, 1, model.supports[equality.support],
                                              CostKind::quadratic, out);
  Real slope, curvature;
  const Real x = tendon_violation(at, equality, slope, curvature);
  set_softness(equality.softness, c);
  set_reference(model, at.h, x, c);
  c.scale = Real(1);
  c.cost.D[0] = c.cost.D[1] =
      Real(1) / maximum(Real(least_value), (Real(1) - c.impedance) / c.impedance * Real(equality.weight[0]));
  const int tendons[2] = {equality.tendon_a, equality.tendon_b};
  const Real factors[2] = {Real(1), -slope};
  fill_tendon_row(model, at, tendons, factors, c, out);
  finish_tendon_constraint(at, x, c, out);
}

template <class Real>
REVOLUTE_HD void add_equalities(const Model& model, const SoftContext<Real>& at, SoftConstraints<Real>& out) {
  for (int i = 0; i < model.nequality; ++i) {
    const Equality& equality = model.equalities[i];
    if (model.supports[equality.support].count == 0) continue;
    if (is_of_tendons(equality)) {
      add_tendon_equality(model, at, i, out);
      continue;
    }
    const int rows = equality_rows(equality);
    SoftConstraint<Real>& c = append_constraint(RowSource::equality, i, rows,
                                                model.supports[equality.support], CostKind::quadratic, out);
    const EqualityRows<Real> values = soft_equality_rows(model, at, equality, out.A_bias);
    Real inverse;
    set_softness(equality.softness, c);
    set_reference(model, at.h, violation_norm(values, rows, inverse), c);
    const Real ratio = (Real(1) - c.impedance) / c.impedance;
    c.scale = Real(1);
    for (int part = 0; part < 2; ++part)
      c.cost.D[part] = Real(1) / maximum(Real(least_value), ratio * Real(equality.weight[part]));
    finish_constraint(at, values.J, values.violation, rows, values.bias, c, out);
  }
}

template <class Real>
REVOLUTE_HD void add_dry_friction(const Model& model, const Parameters<Real>& parameters,
                                  const SoftContext<Real>& at, SoftConstraints<Real>& out) {
  for (int k = 0; k < model.nv; ++k) {
    const auto rubs = less(Real(0), parameters.frictionloss[k]);
    if (!any(rubs)) continue;
    SoftConstraint<Real>& c =
        append_constraint(RowSource::dry_friction, k, 1, model.supports[k], CostKind::huber, out);
    set_softness(model.dof_softness[k], c);
    set_reference(model, at.h, Real(0), c);
    c.scale = Real(model.dof_weight[k]);
    c.cost.D[0] = inverse_softness((Real(1) - c.impedance) / c.impedance * c.scale, rubs);
    c.cost.bound = select(rubs, parameters.frictionloss[k], Real(0));
    const RowJacobian<Real> J = dof_row(k, Real(1));
    finish_constraint(at, &J, static_cast<const Real*>(nullptr), 0, static_cast<const Real*>(nullptr), c,
                      out);
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
        append_constraint(RowSource::limit, i, 1, model.supports[limit.support], CostKind::unilateral, out);
    const Real x = gap - Real(limit.margin);
    set_softness(limit.softness, c);
    set_reference(model, at.h, x, c);
    c.scale = Real(limit.weight);
    c.cost.D[0] = inverse_softness((Real(1) - c.impedance) / c.impedance * c.scale, active);
    finish_constraint(at, &J, &x, 1, static_cast<const Real*>(nullptr), c, out);
  }
}

template <class Real>
REVOLUTE_HD void add_tendon_frictions(const Model& model, const SoftContext<Real>& at,
                                      SoftConstraints<Real>& out) {
  for (int t = 0; t < model.ntendon; ++t) {
    const Tendon& tendon = model.tendons[t];
    const Support& support = model.supports[model.transmissions[t].support];
    if (!rubs(model, t) || support.count == 0) continue;
    SoftConstraint<Real>& c =
        append_constraint(RowSource::tendon_friction, t, 1, support, CostKind::huber, out);
    set_softness(tendon.friction_softness, c);
    set_reference(model, at.h, Real(0), c);
    c.scale = Real(tendon.weight);
    c.cost.D[0] = Real(1) / maximum(Real(least_value), (Real(1) - c.impedance) / c.impedance * c.scale);
    c.cost.bound = Real(tendon.frictionloss);
    const int tendons[2] = {t, -1};
    const Real factors[2] = {Real(1), Real(0)};
    fill_tendon_row(model, at, tendons, factors, c, out);
    finish_tendon_constraint(at, Real(0), c, out);
  }
}

// Side 0 holds the lower limit, 1 the upper one: gap = sign (length - bound).
REVOLUTE_HD inline double limit_sign(int side) { return side == 0 ? 1.0 : -1.0; }
template <class Real>
REVOLUTE_HD void add_tendon_limits(const Model& model, const SoftContext<Real>& at,
                                   SoftConstraints<Real>& out) {
  for (int i = 0; i < 2 * model.ntendon; ++i) {
    const int t = i / 2;
    const Support& support = model.supports[model.transmissions[t].support];
    const Tendon& tendon = model.tendons[t];
    if (!tendon.limited || support.count == 0) continue;
    const Real sign(limit_sign(i % 2));
    const Real x = sign * (at.transmissions->length[t] - Real(tendon.range[i % 2])) - Real(tendon.margin);
    const auto active = less(x, Real(0));
    if (!any(active)) continue;
    SoftConstraint<Real>& c =
        append_constraint(RowSource::tendon_limit, i, 1, support, CostKind::unilateral, out);
    set_softness(tendon.limit_softness, c);
    set_reference(model, at.h, x, c);
    c.scale = Real(tendon.weight);
    c.cost.D[0] = inverse_softness((Real(1) - c.impedance) / c.impedance * c.scale, active);
    const int tendons[2] = {t, -1};
    const Real factors[2] = {sign, Real(0)};
    fill_tendon_row(model, at, tendons, factors, c, out);
    finish_tendon_constraint(at, x, c, out);
  }
}

// Whether friction rows have their own reference.
template <class Real>
REVOLUTE_HD inline MaskOf<Real> own_friction_reference(const SoftConstraint<Real>& c) {
  return less(Real(0), abs(c.solref_friction[0]) + abs(c.solref_friction[1]));
}
template <class Real>
REVOLUTE_HD inline CostKind contact_cost(const Model& model, int condim) {
  if (condim == 1) return CostKind::unilateral;
  return model.cone == Cone::elliptic ? CostKind::ellipse : CostKind::pyramid;
}

// The degrees of freedom that move one shape of a pair against the other, leaf to root until the chains meet.
template <class Real>
REVOLUTE_HD Support contact_support(const Model& model, const Candidate& candidate,
                                    SoftConstraints<Real>& out) {
  if (candidate.support >= 0) return model.supports[candidate.support];
  int *const dofs = out.found_dofs + out.found, *const sides = out.found_sides + out.found;
  Support support = {0, 0, false, dofs, sides};
  for (int a = moved_link(candidate.link_a), b = moved_link(candidate.link_b); a != b; ++support.count) {
    const int side = b > a, k = side ? b : a;
    dofs[support.count] = k;
    sides[support.count] = side;
    (side ? b : a) = model.dofs[k].parent;
  }
  support.chain = candidate.link_a < 0 || candidate.link_b < 0;
  out.found += support.count;
  return support;
}

template <class Real>
REVOLUTE_HD void add_contacts(const Model& model, const Parameters<Real>& parameters,
                              const SoftContext<Real>& at, const Contacts<Real>& contacts,
                              SoftConstraints<Real>& out) {
  const Real inverse_ratio(1.0 / std::sqrt(std::fmax(least_value, model.friction_to_normal)));
  for (int i = 0; i < contacts.count; ++i) {
    const Contact<Real>& contact = contacts.list[i];
    if (!any(contact.active)) continue;
    const Candidate& candidate = *contact.candidate;
    const Support support = contact_support(model, candidate, out);
    if (support.count == 0) continue;
    const PairSoftness<Real> softness = pair_softness(model, parameters, candidate);
    const CostKind kind = contact_cost<Real>(model, candidate.condim);
    SoftConstraint<Real>& c = append_constraint(RowSource::contact, i, candidate.condim, support, kind, out);
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
    finish_constraint(at, J, &x, 1, static_cast<const Real*>(nullptr), c, out);
  }
}

template <class Real>
REVOLUTE_HD void soft_constraints(const Model& model, const Parameters<Real>& parameters,
                                  const SoftContext<Real>& at, const Contacts<Real>& contacts,
                                  SoftConstraints<Real>& out) {
  out.count = out.rows = out.found = 0;
  if (has_bias<Real>(model))
    link_accelerations(model, zero3<Real>(), *at.kinematics, at.qvel, static_cast<const Real*>(nullptr),
                       out.A_bias);
  add_equalities(model, at, out);
  if (model.dry_friction) add_dry_friction(model, parameters, at, out);
  if (model.tendon_friction) add_tendon_frictions(model, at, out);
  if (model.limits) {
    add_limits(model, parameters, at, out);
    add_tendon_limits(model, at, out);
  }
  add_contacts(model, parameters, at, contacts, out);
}

// y = J x for one constraint
template <class Real, class X>
REVOLUTE_HD void constraint_times(const SoftConstraints<Real>& constraints, const SoftConstraint<Real>& c,
                                  const X* x, X* y) {
  const Support& support = c.support;
  const Real* const J = constraints.J + c.entry;
  with_rows(c.cost, [&](auto number) {
    constexpr int known = decltype(number)::value;
    const int rows = known ? known : c.cost.rows;
    X sum[known ? known : most_rows];
    for (int r = 0; r < rows; ++r) sum[r] = X(0);
    for (int i = 0; i < support.count; ++i) {
      const X& at = x[support.dofs[i]];
      for (int r = 0; r < rows; ++r) sum[r] = multiply_add(J[r * support.count + i], at, sum[r]);
    }
    for (int r = 0; r < rows; ++r) y[r] = sum[r];
  });
}
// x += J' y for one constraint
template <class Real, class X>
REVOLUTE_HD void add_constraint_transpose(const SoftConstraints<Real>& constraints,
                                          const SoftConstraint<Real>& c, const X* y, X* x) {
  const Support& support = c.support;
  const Real* const J = constraints.J + c.entry;
  with_rows(c.cost, [&](auto number) {
    constexpr int known = decltype(number)::value;
    const int rows = known ? known : c.cost.rows;
    for (int i = 0; i < support.count; ++i) {
      X sum = x[support.dofs[i]];
      for (int r = 0; r < rows; ++r) sum = multiply_add(J[r * support.count + i], y[r], sum);
      x[support.dofs[i]] = sum;
    }
  });
}

}  // namespace revolute
