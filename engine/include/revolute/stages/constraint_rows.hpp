// Constraint rows: what the solver sees of contacts, joint limits and dry friction.
//
// With the factors M = L' D L, row r of J has Y_r = L^-T J_r' with entries on its path to the root only, and
//   A = J M^-1 J' = Y' D^-1 Y (+ cfm on the diagonal),   M^-1 J' lambda = L^-1 D^-1 (Y lambda)             (1)
//   b = J v* + bias                                                                                        (2)
// Bias of a contact's normal or a limit with signed gap g: the row may close the gap in this step and no more, and what
// has been penetrated is given back, all of it within the depth s, a fraction erp of what is deeper:
//   bias(g) = g/h  for g > -s,   (-s + erp (g + s))/h  below,   s = (10 m/s^2) h^2                        (3)
// s is the depth that a step of free fall makes, so the whole return is no faster than that. A contact at rest sits at
// g = 0, where this is smooth; a bias that changed its slope at g = 0 would put a kink into every standing robot.
// A contact that is approached and reached within the step bounces:
//   bias = min(bias, e J v)   where  e > 0,  J v < 0  and  g + h J v* < 0.                                (4)
// Dry friction: |x| <= h frictionloss.
//
// Adjoint. With w = M^-1 v+_bar, x_bar = J w from the solver on; b_bar and A_bar come back from it. Then
//   Y_bar_r = sum_s (A_rs_bar + A_sr_bar) Y_s / D,   D_k_bar -= sum_r Y_rk Y_bar_rk / (2 D_k)              (5)
//   wrench_bar_r = b_bar_r V* + lambda_r W (+ bounce: b_bar_r e V) + what Y_bar_r gives                    (6)
// Not differentiated: which rows are active. Kinks: g = -s, and the conditions of (4).
#pragma once

#include "revolute/solvers/projected_gauss_seidel.hpp"
#include "revolute/stages/articulated_inertia.hpp"
#include "revolute/stages/collision_detection.hpp"

namespace revolute {

enum class RowSource : int { dry_friction, limit, contact };

struct RowOrigin {
  RowSource source;
  int index;      // row of the model's dof rows, or contact in the list
  int component;  // contact: 0 normal, 1 and 2 tangents
  int path;
  int y;          // offset of its entries in Y and P
};

template <class Real>
struct ConstraintRows {
  int count;
  RowOrigin* origin;
  SolverRow* solver;
  Real *b, *bound;
  Real* Y;          // entries of L^-T J' along each row's path
  Force<Real>* P;   // the forces at which they were formed
  Real* A;
  MaskOf<Real>* bounced;  // per contact in the list
  // scratch
  Real* dense;            // [nv], zero between uses
  Force<Real>* node;      // [nv]
  Motion<Real>* node_bar; // [nv]
  int *tree_island, *group_island;

  ConstraintRows(const Model& model, Arena& arena) : count(0) {
    const std::size_t rows = capacity(model), entries = path_entries(model);
    origin = arena.take<RowOrigin>(rows);
    solver = arena.take<SolverRow>(rows);
    b = arena.take<Real>(rows);
    bound = arena.take<Real>(rows);
    Y = arena.take<Real>(entries);
    P = arena.take<Force<Real>>(entries);
    A = arena.take<Real>(rows * rows);
    bounced = arena.take<MaskOf<Real>>(model.ncandidate);
    dense = arena.take<Real>(model.nv);
    node = arena.take<Force<Real>>(model.nv);
    node_bar = arena.take<Motion<Real>>(model.nv);
    tree_island = arena.take<int>(model.ntree);
    group_island = arena.take<int>(model.nv + model.nlimit + model.ncandidate);
  }
  static std::size_t capacity(const Model& model) { return model.nv + model.nlimit + 3 * std::size_t(model.ncandidate); }
  static std::size_t path_entries(const Model& model) {
    std::size_t entries = 0;
    for (int k = 0; k < model.nv; ++k) entries += model.paths[model.friction_rows[k].path].count;
    for (int i = 0; i < model.nlimit; ++i) entries += model.paths[model.limit_rows[i].path].count;
    for (int i = 0; i < model.ncandidate; ++i) entries += 3 * std::size_t(model.paths[model.candidates[i].path].count);
    return entries;
  }
};

// A row that acts on one degree of freedom.
REVOLUTE_HD inline const DofRow& dof_row(const Model& model, const RowOrigin& origin) {
  return origin.source == RowSource::limit ? model.limit_rows[origin.index] : model.friction_rows[origin.index];
}

// J_r x, for generalized x with link velocities X = S x
template <class Real>
REVOLUTE_HD inline Real row_times(const Model& model, const Contacts<Real>& contacts, const RowOrigin& origin, const Real* x,
                                  const Motion<Real>* X) {
  if (origin.source == RowSource::contact) {
    const Contact<Real>& contact = contacts.list[origin.index];
    return row_velocity(model.candidates[contact.candidate], contact, origin.component, X);
  }
  const DofRow& row = dof_row(model, origin);
  return Real(row.sign) * x[row.dof];
}

// (3) and its derivative
template <class Real>
REVOLUTE_HD inline Real gap_bias(const Model& model, Real h, Real gap) {
  const Real s = Real(10) * h * h;
  return select(less(-s, gap), gap, Real(model.erp) * (gap + s) - s) / h;
}
template <class Real>
REVOLUTE_HD inline Real gap_slope(const Model& model, Real h, Real gap) {
  return select(less(-(Real(10) * h * h), gap), Real(1), Real(model.erp)) / h;
}

// --- which rows there are, island by island ---------------------------------------------------------------------------

REVOLUTE_HD inline int find_island(const int* parent, int tree) {
  while (parent[tree] != tree) tree = parent[tree];
  return tree;
}
// A tree that a path touches; join_trees has put all of them in one island.
REVOLUTE_HD inline int path_tree(const Model& model, int path) {
  const Path& p = model.paths[path];
  return p.count ? model.dofs[model.path_dofs[p.first]].tree : -1;
}
REVOLUTE_HD inline void join_trees(const Model& model, int path, int* parent) {
  const Path& p = model.paths[path];
  for (int i = 1; i < p.count; ++i) {
    const int a = find_island(parent, model.dofs[model.path_dofs[p.first + i - 1]].tree);
    const int b = find_island(parent, model.dofs[model.path_dofs[p.first + i]].tree);
    if (a < b) parent[b] = a;
    if (b < a) parent[a] = b;
  }
}

template <class Real>
REVOLUTE_HD void append_row(const Model& model, RowSource source, int index, int component, int path, RowKind kind, int normal,
                            ConstraintRows<Real>& out, int& entries) {
  out.origin[out.count] = {source, index, component, path, entries};
  out.solver[out.count] = {kind, normal, 0, 0, 0};
  entries += model.paths[path].count;
  ++out.count;
}

template <class Real>
REVOLUTE_HD bool limit_may_act(const Model& model, const DofRow& row, const Real* qpos, const Real* v_free, Real h) {
  const Real gap = Real(row.sign) * (qpos[row.qpos] - Real(row.bound));
  return any(less(minimum(gap, gap + h * (Real(row.sign) * v_free[row.dof])), Real(model.margin)));
}

// Lists the active rows grouped by island; within an island: dry friction, limits, contacts, each in the model's order.
template <class Real>
REVOLUTE_HD void list_rows(const Model& model, const Real* qpos, const Real* v_free, Real h, const Contacts<Real>& contacts,
                           ConstraintRows<Real>& out) {
  const int nv = model.dry_friction ? model.nv : 0, nlimit = model.limits ? model.nlimit : 0;
  for (int t = 0; t < model.ntree; ++t) out.tree_island[t] = t;
  for (int c = 0; c < contacts.count; ++c) join_trees(model, model.candidates[contacts.list[c].candidate].path, out.tree_island);
  // the island of each group of rows, -1 where it is not active
  const auto island_of = [&](int path) { return find_island(out.tree_island, path_tree(model, path)); };
  int groups = 0;
  for (int k = 0; k < nv; ++k) out.group_island[groups++] = model.dry[k] ? island_of(model.friction_rows[k].path) : -1;
  for (int i = 0; i < nlimit; ++i)
    out.group_island[groups++] =
        limit_may_act(model, model.limit_rows[i], qpos, v_free, h) ? island_of(model.limit_rows[i].path) : -1;
  for (int c = 0; c < contacts.count; ++c) {
    const int path = model.candidates[contacts.list[c].candidate].path;
    out.group_island[groups++] = model.paths[path].count ? island_of(path) : -1;
  }

  out.count = 0;
  int entries = 0;
  std::size_t A_size = 0;
  for (int island = 0; island < model.ntree; ++island) {
    if (out.tree_island[island] != island) continue;
    const int begin = out.count;
    for (int g = 0; g < groups; ++g) {
      if (out.group_island[g] != island) continue;
      if (g < nv) {
        append_row(model, RowSource::dry_friction, g, 0, model.friction_rows[g].path, RowKind::box, -1, out, entries);
      } else if (g < nv + nlimit) {
        append_row(model, RowSource::limit, g - nv, 0, model.limit_rows[g - nv].path, RowKind::unilateral, -1, out, entries);
      } else {
        const int c = g - nv - nlimit, normal = out.count;
        const Candidate& candidate = model.candidates[contacts.list[c].candidate];
        append_row(model, RowSource::contact, c, 0, candidate.path, RowKind::unilateral, -1, out, entries);
        for (int d = 1; d < 3 && !candidate.frictionless; ++d)
          append_row(model, RowSource::contact, c, d, candidate.path, RowKind::friction, normal, out, entries);
      }
    }
    for (int r = begin; r < out.count; ++r) {
      out.solver[r].begin = begin;
      out.solver[r].end = out.count;
      out.solver[r].A = A_size;
      A_size += out.count - begin;
    }
  }
}

// --- b and the bounds ---------------------------------------------------------------------------------------------------

template <class Real>
REVOLUTE_HD void fill_right_side(const Model& model, const Parameters<Real>& parameters, Real h, const Kinematics<Real>& kin,
                                 const Real* qpos, const Real* v_free, const Motion<Real>* V_free, const Contacts<Real>& contacts,
                                 ConstraintRows<Real>& out) {
  for (int r = 0; r < out.count; ++r) {
    const RowOrigin& origin = out.origin[r];
    const Real velocity = row_times(model, contacts, origin, v_free, V_free);
    out.b[r] = velocity;
    switch (origin.source) {
      case RowSource::dry_friction: out.bound[r] = h * parameters.frictionloss[origin.index]; break;
      case RowSource::limit: {
        const DofRow& row = model.limit_rows[origin.index];
        const Real gap = Real(row.sign) * (qpos[row.qpos] - Real(row.bound));
        out.b[r] += gap_bias(model, h, gap);
        out.bound[r] = indicator<Real>(less(minimum(gap, gap + h * velocity), Real(model.margin)));
        break;
      }
      case RowSource::contact: {
        const Contact<Real>& contact = contacts.list[origin.index];
        const Candidate& candidate = model.candidates[contact.candidate];
        if (origin.component > 0) {
          out.bound[r] = parameters.friction[candidate.friction];
          break;
        }
        // (3), (4)
        const Real gap = contact.gap, before = row_velocity(candidate, contact, 0, kin.V);
        const Real bias = gap_bias(model, h, gap), bounce = *parameters.restitution * before;
        out.bounced[origin.index] =
            less(Real(0), *parameters.restitution) & less(before, Real(0)) & less(gap + h * velocity, Real(0)) & less(bounce, bias);
        out.b[r] += select(out.bounced[origin.index], bounce, bias);
        out.bound[r] = indicator<Real>(contact.active);
      }
    }
  }
}

// --- Y and A ------------------------------------------------------------------------------------------------------------

// Y_r = L^-T J_r' along the path, leaf to root: u_k = [J_r]_k - S_k . P_k,  P_p += P_k + U_k u_k / D_k, with P = -wrench
template <class Real>
REVOLUTE_HD void fill_row(const Model& model, const Kinematics<Real>& kin, const Factors<Real>& factors, const Contacts<Real>& contacts,
                          const RowOrigin& origin, ConstraintRows<Real>& out) {
  const Path& path = model.paths[origin.path];
  const int* dofs = model.path_dofs + path.first;
  for (int i = 0; i < path.count; ++i) out.node[dofs[i]] = zero_force<Real>();
  int unit_dof = -1;
  Real unit(0);
  if (origin.source == RowSource::contact) {
    const Contact<Real>& contact = contacts.list[origin.index];
    const Candidate& candidate = model.candidates[contact.candidate];
    if (candidate.link_a >= 0) out.node[candidate.link_a] -= contact.force_a[origin.component];
    if (candidate.link_b >= 0) out.node[candidate.link_b] -= contact.force_b[origin.component];
  } else {
    unit_dof = dof_row(model, origin).dof;
    unit = Real(dof_row(model, origin).sign);
  }
  for (int i = 0; i < path.count; ++i) {
    const int k = dofs[i], parent = model.dofs[k].parent;
    const Force<Real> P = out.node[k];
    const Real u = (k == unit_dof ? unit : Real(0)) - dot(kin.S[k], P);
    out.P[origin.y + i] = P;
    out.Y[origin.y + i] = u;
    if (parent >= 0) out.node[parent] += P + (u * factors.D_inverse[k]) * factors.U[k];
  }
}

template <class Real>
REVOLUTE_HD void fill_A(const Model& model, const Factors<Real>& factors, ConstraintRows<Real>& out) {
  for (int s = 0; s < out.count; ++s) {
    const Path& path_s = model.paths[out.origin[s].path];
    const int* dofs_s = model.path_dofs + path_s.first;
    for (int i = 0; i < path_s.count; ++i) out.dense[dofs_s[i]] = out.Y[out.origin[s].y + i] * factors.D_inverse[dofs_s[i]];
    for (int r = s; r < out.solver[s].end; ++r) {
      const Path& path_r = model.paths[out.origin[r].path];
      const int* dofs_r = model.path_dofs + path_r.first;
      const Real* Y_r = out.Y + out.origin[r].y;
      Real a(0);
      for (int i = 0; i < path_r.count; ++i) a += Y_r[i] * out.dense[dofs_r[i]];
      out.A[out.solver[r].A + s - out.solver[r].begin] = a;
      out.A[out.solver[s].A + r - out.solver[s].begin] = a;
    }
    out.A[out.solver[s].A + s - out.solver[s].begin] += Real(model.cfm);
    for (int i = 0; i < path_s.count; ++i) out.dense[dofs_s[i]] = Real(0);
  }
}

template <class Real>
REVOLUTE_HD void constraint_rows(const Model& model, const Parameters<Real>& parameters, Real h, const Kinematics<Real>& kin,
                                 const Factors<Real>& factors, const Real* qpos, const Real* v_free, const Motion<Real>* V_free,
                                 const Contacts<Real>& contacts, ConstraintRows<Real>& out) {
  list_rows(model, qpos, v_free, h, contacts, out);
  if (out.count == 0) return;
  fill_right_side(model, parameters, h, kin, qpos, v_free, V_free, contacts, out);
  for (int k = 0; k < model.nv; ++k) out.dense[k] = Real(0);
  for (int r = 0; r < out.count; ++r) fill_row(model, kin, factors, contacts, out.origin[r], out);
  fill_A(model, factors, out);
}

// x = M^-1 J' lambda, by (1)
template <class Real>
REVOLUTE_HD void velocity_change(const Model& model, const Kinematics<Real>& kin, const Factors<Real>& factors,
                                 const ConstraintRows<Real>& rows, const Real* lambda, Real* x) {
  for (int k = 0; k < model.nv; ++k) x[k] = Real(0);
  for (int r = 0; r < rows.count; ++r) {
    const Path& path = model.paths[rows.origin[r].path];
    for (int i = 0; i < path.count; ++i) x[model.path_dofs[path.first + i]] += rows.Y[rows.origin[r].y + i] * lambda[r];
  }
  solve_outward(model, kin, factors, x, x);
}

// --- adjoint ------------------------------------------------------------------------------------------------------------

template <class Real>
struct ConstraintRowsCotangent {
  Real *b, *bound, *A, *Y;
  ContactCotangent<Real>* contacts;

  ConstraintRowsCotangent(const Model& model, Arena& arena)
      : b(arena.take<Real>(ConstraintRows<Real>::capacity(model))),
        bound(arena.take<Real>(ConstraintRows<Real>::capacity(model))),
        A(arena.take<Real>(ConstraintRows<Real>::capacity(model) * ConstraintRows<Real>::capacity(model))),
        Y(arena.take<Real>(ConstraintRows<Real>::path_entries(model))),
        contacts(arena.take<ContactCotangent<Real>>(model.ncandidate)) {}

  void clear(const ConstraintRows<Real>& rows, const Contacts<Real>& list) {
    std::size_t A_size = 0;
    for (int r = 0; r < rows.count; ++r) {
      b[r] = bound[r] = Real(0);
      A_size += rows.solver[r].end - rows.solver[r].begin;
    }
    for (std::size_t i = 0; i < A_size; ++i) A[i] = Real(0);
    for (int c = 0; c < list.count; ++c) {
      contacts[c].gap = Real(0);
      for (int d = 0; d < 3; ++d) contacts[c].force_a[d] = contacts[c].force_b[d] = zero_force<Real>();
    }
  }
};

// Reverse of (2): b_bar and bound_bar to v*, qpos, contacts, parameters, and to the link forces F_b = sum b_bar wrench
// (by V*), F_v (by V). V_free, W: link velocities of v* and w.
template <class Real>
struct RightSideAdjoint {
  const Motion<Real>*V_free, *W;
  const Real* lambda;
  Force<Real>*F_b, *F_w, *F_v;
  Real *v_free_bar, *qpos_bar;
};

template <class Real>
REVOLUTE_HD void add_wrench_adjoint(const Candidate& candidate, int d, Real scale, const Motion<Real>* V, ContactCotangent<Real>& bar) {
  // the cotangent of a wrench is a motion; it is kept in a Force as (n <- w, f <- v)
  if (candidate.link_a >= 0) bar.force_a[d] += scale * Force<Real>{V[candidate.link_a].w, V[candidate.link_a].v};
  if (candidate.link_b >= 0) bar.force_b[d] += scale * Force<Real>{V[candidate.link_b].w, V[candidate.link_b].v};
}
template <class Real>
REVOLUTE_HD void add_wrench(const Candidate& candidate, const Contact<Real>& contact, int d, Real scale, Force<Real>* F) {
  if (candidate.link_a >= 0) F[candidate.link_a] += scale * contact.force_a[d];
  if (candidate.link_b >= 0) F[candidate.link_b] += scale * contact.force_b[d];
}

template <class Real>
REVOLUTE_HD void contact_right_side_adjoint(const Model& model, const Parameters<Real>& parameters, Real h, const Kinematics<Real>& kin,
                                            const Contacts<Real>& contacts, const ConstraintRows<Real>& at, int r,
                                            const RightSideAdjoint<Real>& in, ConstraintRowsCotangent<Real>& bar,
                                            Parameters<Real>& parameters_bar) {
  const RowOrigin& origin = at.origin[r];
  const Contact<Real>& contact = contacts.list[origin.index];
  const Candidate& candidate = model.candidates[contact.candidate];
  const int d = origin.component;
  const Real b_bar = bar.b[r];
  ContactCotangent<Real>& contact_bar = bar.contacts[origin.index];
  add_wrench(candidate, contact, d, b_bar, in.F_b);
  add_wrench(candidate, contact, d, in.lambda[r], in.F_w);
  add_wrench_adjoint(candidate, d, b_bar, in.V_free, contact_bar);  // (6)
  add_wrench_adjoint(candidate, d, in.lambda[r], in.W, contact_bar);
  if (d > 0) {
    parameters_bar.friction[candidate.friction] += bar.bound[r];
    return;
  }
  const auto bounced = at.bounced[origin.index];
  contact_bar.gap += select(bounced, Real(0), gap_slope(model, h, contact.gap) * b_bar);
  if (!any(bounced)) return;
  const Real bounce_bar = select(bounced, b_bar, Real(0)), e = *parameters.restitution;
  *parameters_bar.restitution += bounce_bar * row_velocity(candidate, contact, 0, kin.V);
  add_wrench(candidate, contact, 0, e * bounce_bar, in.F_v);
  add_wrench_adjoint(candidate, 0, e * bounce_bar, kin.V, contact_bar);
}

template <class Real>
REVOLUTE_HD void right_side_adjoint(const Model& model, const Parameters<Real>& parameters, Real h, const Kinematics<Real>& kin,
                                    const Real* qpos, const Contacts<Real>& contacts, const ConstraintRows<Real>& at,
                                    const RightSideAdjoint<Real>& in, ConstraintRowsCotangent<Real>& bar,
                                    Parameters<Real>& parameters_bar) {
  for (int r = 0; r < at.count; ++r) {
    const RowOrigin& origin = at.origin[r];
    if (origin.source == RowSource::contact) {
      contact_right_side_adjoint(model, parameters, h, kin, contacts, at, r, in, bar, parameters_bar);
      continue;
    }
    const DofRow& row = dof_row(model, origin);
    const Real sign(row.sign);
    in.v_free_bar[row.dof] += sign * bar.b[r];
    if (origin.source == RowSource::dry_friction) {
      parameters_bar.frictionloss[row.dof] += h * bar.bound[r];
    } else {
      const Real gap = sign * (qpos[row.qpos] - Real(row.bound));
      in.qpos_bar[row.dof] += sign * (gap_slope(model, h, gap) * bar.b[r]);
    }
  }
}

// Reverse of (1): A_bar to Y_bar and D_bar.
template <class Real>
REVOLUTE_HD void A_adjoint(const Model& model, const Factors<Real>& factors, const ConstraintRows<Real>& at,
                           ConstraintRowsCotangent<Real>& bar, FactorsCotangent<Real>& factors_bar) {
  for (int r = 0; r < at.count; ++r) {
    const SolverRow& row = at.solver[r];
    const Path& path_r = model.paths[at.origin[r].path];
    const int* dofs_r = model.path_dofs + path_r.first;
    // dense = sum_s (A_rs_bar + A_sr_bar) Y_s
    for (int s = row.begin; s < row.end; ++s) {
      const Real weight = bar.A[row.A + s - row.begin] + bar.A[at.solver[s].A + r - row.begin];
      const Path& path_s = model.paths[at.origin[s].path];
      const int* dofs_s = model.path_dofs + path_s.first;
      for (int i = 0; i < path_s.count; ++i) at.dense[dofs_s[i]] += weight * at.Y[at.origin[s].y + i];
    }
    for (int i = 0; i < path_r.count; ++i) {
      const int k = dofs_r[i];
      const Real Y_bar = at.dense[k] * factors.D_inverse[k];  // (5)
      bar.Y[at.origin[r].y + i] = Y_bar;
      factors_bar.D[k] -= Real(0.5) * factors.D_inverse[k] * (at.Y[at.origin[r].y + i] * Y_bar);
    }
    for (int s = row.begin; s < row.end; ++s) {
      const Path& path_s = model.paths[at.origin[s].path];
      for (int i = 0; i < path_s.count; ++i) at.dense[model.path_dofs[path_s.first + i]] = Real(0);
    }
  }
}

// Reverse of fill_row, root to leaf.
template <class Real>
REVOLUTE_HD void fill_row_adjoint(const Model& model, const Kinematics<Real>& kin, const Factors<Real>& factors,
                                  const Contacts<Real>& contacts, const RowOrigin& origin, const ConstraintRows<Real>& at,
                                  ConstraintRowsCotangent<Real>& bar, FactorsCotangent<Real>& factors_bar,
                                  KinematicsCotangent<Real>& kin_bar) {
  const Path& path = model.paths[origin.path];
  const int* dofs = model.path_dofs + path.first;
  for (int i = path.count - 1; i >= 0; --i) {
    const int k = dofs[i], parent = model.dofs[k].parent;
    const Real u = at.Y[origin.y + i], D_inverse = factors.D_inverse[k];
    Real u_bar = bar.Y[origin.y + i];
    Motion<Real> P_bar = zero_motion<Real>();
    if (parent >= 0) {
      P_bar = at.node_bar[parent];
      const Real along = dot(P_bar, factors.U[k]) * D_inverse;
      u_bar += along;
      factors_bar.U[k] += (u * D_inverse) * P_bar;
      factors_bar.D[k] -= u * D_inverse * along;
    }
    kin_bar.S[k] += (-u_bar) * at.P[origin.y + i];
    at.node_bar[k] = P_bar - u_bar * kin.S[k];
  }
  if (origin.source != RowSource::contact) return;
  const Candidate& candidate = model.candidates[contacts.list[origin.index].candidate];
  add_wrench_adjoint(candidate, origin.component, Real(-1), at.node_bar, bar.contacts[origin.index]);
}

template <class Real>
REVOLUTE_HD void rows_adjoint(const Model& model, const Kinematics<Real>& kin, const Factors<Real>& factors, const Contacts<Real>& contacts,
                              const ConstraintRows<Real>& at, ConstraintRowsCotangent<Real>& bar, FactorsCotangent<Real>& factors_bar,
                              KinematicsCotangent<Real>& kin_bar) {
  A_adjoint(model, factors, at, bar, factors_bar);
  for (int r = 0; r < at.count; ++r)
    fill_row_adjoint(model, kin, factors, contacts, at.origin[r], at, bar, factors_bar, kin_bar);
}

}  // namespace revolute
