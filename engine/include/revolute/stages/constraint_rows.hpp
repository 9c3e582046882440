// Constraint rows: the solver's view of equality constraints, dry friction, joint limits and contacts.
//
// Each kind of constraint makes its rows in a file of rows/; here they are listed by island, with
//   b = J v* + bias                                                                           (1)
// Order within an island: equality, dry friction, limits, contacts, each in the model's order (MuJoCo's order).
// Adjoint, with w = M^-1 v+_bar and b_bar from the solver (delassus.hpp gives the rest of J_bar):
//   J_bar_r += b_bar_r v* + lambda_r w,   v*_bar += J' b_bar,   F_w = sum_r lambda_r f_r       (2)
// Not differentiated: the set of active rows.
#pragma once

#include "revolute/growing_array.hpp"
#include "revolute/stages/rows/contact.hpp"
#include "revolute/stages/rows/dry_friction.hpp"
#include "revolute/stages/rows/equality.hpp"
#include "revolute/stages/rows/limit.hpp"

namespace revolute {

// The one or two trees that a constraint moves; second is -1 for one.
struct GroupTrees {
  int first, second;
};

template <class Real>
struct ConstraintRows {
  int count;
  RowOrigin* origin;
  SolverRow* solver;
  RowJacobian<Real>* J;
  Real *b, *bias, *bound, *softness;
  bool any_bounce;
  int* group_row;  // first row of each group, -1 for no rows
  // scratch: the island of each tree; the groups of each island, as a list from first to last
  int *tree_island, *group_island, *island_first, *island_last, *group_next;
  // scratch: the trees of each group; the groups of each tree, from tree_begin[tree] on
  GroupTrees* group_trees;
  int *tree_begin, *tree_groups;
  GrowingArray<RowRange> coupled;  // of all rows

  ConstraintRows(const Model& model, Arena& arena)
      : count(0), coupled(capacity(model) * capacity(model), arena) {
    const std::size_t rows = capacity(model);
    origin = arena.take<RowOrigin>(rows);
    solver = arena.take<SolverRow>(rows);
    J = arena.take<RowJacobian<Real>>(rows);
    b = arena.take<Real>(rows);
    bias = arena.take<Real>(rows);
    bound = arena.take<Real>(rows);
    softness = arena.take<Real>(rows);
    const std::size_t groups = model.nequality + model.nv + model.nlimit + contact_capacity(model);
    group_row = arena.take<int>(groups);
    for (int** array : {&tree_island, &island_first, &island_last}) *array = arena.take<int>(model.ntree);
    for (int** array : {&group_island, &group_next}) *array = arena.take<int>(groups);
    group_trees = arena.take<GroupTrees>(groups);
    tree_begin = arena.take<int>(std::size_t(model.ntree) + 1);
    tree_groups = arena.take<int>(2 * groups);
  }
  // Number of entries of the islands' blocks in a matrix of rows.
  REVOLUTE_HD std::size_t matrix_entries() const {
    if (count == 0) return 0;
    const SolverRow& last = solver[count - 1];
    return last.A + (last.end - last.begin);
  }
  // The place of a row's diagonal entry in such a matrix.
  REVOLUTE_HD std::size_t diagonal(int r) const { return solver[r].A + r - solver[r].begin; }
  // Number of rows, and of entries along their paths, when everything is active at once.
  static std::size_t capacity(const Model& model) {
    return total(model, [](int) { return 1; });
  }
  static std::size_t path_entries(const Model& model) {
    return total(model, [](int length) { return length; });
  }

 private:
  template <class Count>
  static std::size_t total(const Model& model, Count count) {
    if (model.contact_model != ContactModel::hard) return 0;
    std::size_t sum = 0;
    const auto of_path = [&](int path) { return std::size_t(count(model.paths[path].count)); };
    for (int i = 0; i < model.nequality; ++i)
      sum += equality_rows(model.equalities[i]) * of_path(model.equalities[i].path);
    for (int k = 0; k < model.nv && model.dry_friction; ++k) sum += of_path(model.dof_paths[k]);
    for (int i = 0; i < model.nlimit; ++i) sum += of_path(model.limits_list[i].path);
    for (int i = 0; i < model.ncandidate; ++i)
      sum += model.candidates[i].condim * of_path(model.candidates[i].path);
    return sum + unlisted_contact_capacity(model) * model.unlisted_condim * count(model.longest_support);
  }
};

template <class Bar>
struct ConstraintRowsCotangent {
  RowJacobianCotangent<Bar>* J;
  Bar *b, *bias, *bound, *softness;
  ContactCotangent<Bar>* contacts;

  ConstraintRowsCotangent(const Model& model, Arena& arena)
      : J(arena.take<RowJacobianCotangent<Bar>>(ConstraintRows<Bar>::capacity(model))),
        b(arena.take<Bar>(ConstraintRows<Bar>::capacity(model))),
        bias(arena.take<Bar>(ConstraintRows<Bar>::capacity(model))),
        bound(arena.take<Bar>(ConstraintRows<Bar>::capacity(model))),
        softness(arena.take<Bar>(ConstraintRows<Bar>::capacity(model))),
        contacts(arena.take<ContactCotangent<Bar>>(contact_capacity(model))) {}

  template <class Real>
  REVOLUTE_HD void clear(const ConstraintRows<Real>& rows, const Contacts<Real>& list) {
    for (int r = 0; r < rows.count; ++r) {
      b[r] = bias[r] = bound[r] = softness[r] = Bar(0);
      J[r].force_a = J[r].force_b = zero_force<Bar>();
      for (int i = 0; i < row_dofs; ++i) J[r].coefficient[i] = Bar(0);
    }
    for (int c = 0; c < list.count; ++c) contacts[c].clear();
  }
};

// --- islands ------------------------------------------------------------------------------------------------------------

REVOLUTE_HD inline int find_island(const int* parent, int tree) {
  while (parent[tree] != tree) tree = parent[tree];
  return tree;
}
// A tree that a path touches; join_trees has put all trees of the path in one island.
REVOLUTE_HD inline int path_tree(const Model& model, const RowPath& path) {
  return path.count ? model.dofs[path.dofs[0]].tree : -1;
}
REVOLUTE_HD inline void join_trees(const Model& model, const RowPath& path, int* parent) {
  for (int i = 1; i < path.count; ++i) {
    const int a = find_island(parent, model.dofs[path.dofs[i - 1]].tree);
    const int b = find_island(parent, model.dofs[path.dofs[i]].tree);
    if (a < b) parent[b] = a;
    if (b < a) parent[a] = b;
  }
}
// A path descends in numbers, and so in trees.
REVOLUTE_HD inline GroupTrees trees_of(const Model& model, const RowPath& path) {
  const int first = path_tree(model, path), last = model.dofs[path.dofs[path.count - 1]].tree;
  return {first, last == first ? -1 : last};
}

// A group is one constraint of one kind; its rows are consecutive.
struct RowGroup {
  RowSource source;
  int index;
  RowPath path;
  int rows;
};
template <class Real>
REVOLUTE_HD inline RowGroup row_group(const Model& model, const Contacts<Real>& contacts, int g) {
  if (g < model.nequality)
    return {RowSource::equality, g, row_path(model, model.equalities[g].path),
            equality_rows(model.equalities[g])};
  g -= model.nequality;
  if (g < model.nv) return {RowSource::dry_friction, g, row_path(model, model.dof_paths[g]), 1};
  g -= model.nv;
  if (g < model.nlimit) return {RowSource::limit, g, row_path(model, model.limits_list[g].path), 1};
  g -= model.nlimit;
  const Contact<Real>& contact = contacts.list[g];
  return {RowSource::contact, g, contact.path, contact.candidate->condim};
}
template <class Real>
REVOLUTE_HD inline bool group_may_act(const Model& model, const Parameters<Real>& parameters,
                                      const RowContext<Real>& at, const RowGroup& group) {
  switch (group.source) {
    case RowSource::dry_friction:
      return model.dry_friction && any(less(Real(0), parameters.frictionloss[group.index]));
    case RowSource::limit: {
      if (!model.limits) return false;
      Real gap;
      const RowJacobian<Real> J = limit_jacobian(parameters, model.limits_list[group.index], at.qpos, gap);
      return any(may_act(model, at.h, gap, row_times(J, at.v_free, at.V_free)));
    }
    default:
      return group.path.count > 0;
  }
}

// --- forward ------------------------------------------------------------------------------------------------------------

template <class Real>
REVOLUTE_HD RowValues<Real> make_row(const Model& model, const Parameters<Real>& parameters,
                                     const RowContext<Real>& at, const Contacts<Real>& contacts,
                                     const RowOrigin& origin) {
  switch (origin.source) {
    case RowSource::equality:
      return equality_row(model, at, model.equalities[origin.index], origin.component);
    case RowSource::dry_friction:
      return dry_friction_row(parameters, at, origin.index);
    case RowSource::limit:
      return limit_row(model, parameters, at, model.limits_list[origin.index]);
    default:
      return contact_row(model, parameters, at, contacts.list[origin.index], origin.component);
  }
}

// Finds the groups that act, and lists them by island.
template <class Real>
REVOLUTE_HD void list_islands(const Model& model, const Parameters<Real>& parameters,
                              const RowContext<Real>& at, const Contacts<Real>& contacts, int groups,
                              ConstraintRows<Real>& out) {
  for (int t = 0; t < model.ntree; ++t) {
    out.tree_island[t] = t;
    out.island_first[t] = -1;
  }
  for (int g = 0; g < groups; ++g) {
    const RowGroup group = row_group(model, contacts, g);
    const bool acts = group_may_act(model, parameters, at, group);
    if (acts && model.ntree > 1) join_trees(model, group.path, out.tree_island);
    out.group_island[g] = acts ? path_tree(model, group.path) : -1;
    out.group_row[g] = -1;
  }
  for (int g = 0; g < groups; ++g) {
    if (out.group_island[g] < 0) continue;
    const int island = find_island(out.tree_island, out.group_island[g]);
    if (out.island_first[island] < 0)
      out.island_first[island] = g;
    else
      out.group_next[out.island_last[island]] = g;
    out.island_last[island] = g;
    out.group_next[g] = -1;
  }
}

// Islands of more rows than this keep lists of coupled rows.
constexpr int most_dense_rows = 48;

// Lists the groups of large islands by tree. Returns the most ranges that their rows may need.
template <class Real>
REVOLUTE_HD std::size_t list_tree_groups(const Model& model, const Contacts<Real>& contacts, int groups,
                                         ConstraintRows<Real>& out) {
  int* const begin = out.tree_begin;
  for (int t = 0; t <= model.ntree; ++t) begin[t] = 0;
  const auto visit = [&](const auto& of_tree) {
    for (int g = 0; g < groups; ++g) {
      if (out.group_row[g] < 0) continue;
      const SolverRow& row = out.solver[out.group_row[g]];
      if (row.end - row.begin <= most_dense_rows) continue;
      const GroupTrees trees = out.group_trees[g];
      of_tree(g, trees.first);
      if (trees.second >= 0) of_tree(g, trees.second);
    }
  };
  for (int g = 0; g < groups; ++g)
    if (out.group_row[g] >= 0) out.group_trees[g] = trees_of(model, row_group(model, contacts, g).path);
  visit([&](int, int tree) { ++begin[tree + 1]; });
  std::size_t most = 0;
  for (int t = 0; t < model.ntree; ++t) {
    most += std::size_t(begin[t + 1]) * begin[t + 1];
    begin[t + 1] += begin[t];
  }
  visit([&](int g, int tree) { out.tree_groups[begin[tree]++] = g; });
  for (int t = model.ntree; t > 0; --t) begin[t] = begin[t - 1];
  begin[0] = 0;
  return most;
}

// Lists, for the rows of large islands, the rows with a tree in common.
template <class Real>
REVOLUTE_HD void couple_rows(const Model& model, const Contacts<Real>& contacts, int groups,
                             ConstraintRows<Real>& out) {
  bool large = false;
  for (int r = 0; r < out.count; r = out.solver[r].end)
    large = large || out.solver[r].end - out.solver[r].begin > most_dense_rows;
  if (!large || model.ntree < 2) return;
  RowRange* next = out.coupled.at_least(list_tree_groups(model, contacts, groups, out));
  for (int g = 0; g < groups; ++g) {
    if (out.group_row[g] < 0) continue;
    const int first = out.group_row[g], island = out.solver[first].begin;
    if (out.solver[first].end - island <= most_dense_rows) continue;
    const GroupTrees trees = out.group_trees[g];
    const RowRange* const ranges = next;
    // merge the groups of both trees; rows ascend with groups within an island
    const int second = trees.second < 0 ? trees.first : trees.second;
    int i = out.tree_begin[trees.first], j = out.tree_begin[second];
    const int i_end = out.tree_begin[trees.first + 1], j_end = out.tree_begin[second + 1];
    while (i < i_end || j < j_end) {
      const int of_i = i < i_end ? out.tree_groups[i] : groups,
                of_j = j < j_end ? out.tree_groups[j] : groups;
      const int other = of_i < of_j ? of_i : of_j;
      if (of_i == other) ++i;
      if (of_j == other) ++j;
      const int begin = out.group_row[other] - island, end = begin + row_group(model, contacts, other).rows;
      if (next > ranges && next[-1].end == begin)
        next[-1].end = end;
      else
        *next++ = {begin, end};
    }
    for (int r = first; r < first + row_group(model, contacts, g).rows; ++r) {
      out.solver[r].coupled = ranges;
      out.solver[r].ncoupled = int(next - ranges);
    }
  }
}

template <class Real>
REVOLUTE_HD void constraint_rows(const Model& model, const Parameters<Real>& parameters,
                                 const RowContext<Real>& at, const Contacts<Real>& contacts,
                                 ConstraintRows<Real>& out) {
  const int groups = model.nequality + model.nv + model.nlimit + contacts.count;
  list_islands(model, parameters, at, contacts, groups, out);
  out.count = 0;
  out.any_bounce = false;
  int entries = 0;
  std::size_t A_size = 0;
  for (int island = 0; island < model.ntree; ++island) {
    const int begin = out.count;
    for (int g = out.island_first[island]; g >= 0; g = out.group_next[g]) {
      const RowGroup group = row_group(model, contacts, g);
      const int first = out.group_row[g] = out.count;
      for (int component = 0; component < group.rows; ++component) {
        const int r = out.count++;
        out.origin[r] = {group.source, group.index, component, group.path, entries};
        const RowValues<Real> row = make_row(model, parameters, at, contacts, out.origin[r]);
        out.solver[r] = {row.kind, first, 0, 0, 0, nullptr, 0};
        out.J[r] = row.J;
        out.b[r] = row_times(row.J, at.v_free, at.V_free) + row.bias;  // (1)
        out.bias[r] = row.bias;
        out.bound[r] = row.bound;
        out.softness[r] = row.softness;
        out.any_bounce = out.any_bounce || row.bounces;
        entries += group.path.count;
      }
    }
    for (int r = begin; r < out.count; ++r) {
      out.solver[r].begin = begin;
      out.solver[r].end = out.count;
      out.solver[r].A = A_size;
      A_size += out.count - begin;
    }
  }
  couple_rows(model, contacts, groups, out);
}

// --- adjoint ------------------------------------------------------------------------------------------------------------

// F_w = sum of lambda_r f_r per link
template <class Real>
REVOLUTE_HD void impulse_forces(const Model& model, const ConstraintRows<Real>& rows, const Real* lambda,
                                Force<Real>* F_w) {
  for (int k = 0; k < model.nv; ++k) F_w[k] = zero_force<Real>();
  for (int r = 0; r < rows.count; ++r) {
    const RowJacobian<Real>& J = rows.J[r];
    if (J.link_a >= 0) F_w[J.link_a] += lambda[r] * J.force_a;
    if (J.link_b >= 0) F_w[J.link_b] += lambda[r] * J.force_b;
  }
}
// J_bar_r += lambda_r w; W: link velocities of w
template <class Real, class Bar>
REVOLUTE_HD void add_impulse_adjoint(const ConstraintRows<Real>& rows, const Real* lambda, const Bar* w,
                                     const Motion<Bar>* W, ConstraintRowsCotangent<Bar>& bar) {
  for (int r = 0; r < rows.count; ++r) add_row_cotangent(rows.J[r], lambda[r], w, W, bar.J[r]);
}
// J_bar_r += b_bar_r v*,  v*_bar += J' b_bar in two parts: by coefficients, and F_b = sum b_bar f per link
template <class Real, class Bar>
REVOLUTE_HD void add_right_side_adjoint(const RowContext<Real>& at, const ConstraintRows<Real>& rows,
                                        Bar* v_free_bar, Force<Bar>* F_b, ConstraintRowsCotangent<Bar>& bar) {
  for (int r = 0; r < rows.count; ++r) {
    add_row_transpose(rows.J[r], bar.b[r], v_free_bar, F_b);
    add_row_cotangent(rows.J[r], bar.b[r], at.v_free, at.V_free, bar.J[r]);
  }
}

// Passes J_bar, bias_bar + b_bar, softness_bar and bound_bar of a row on to the configuration, the contacts and the
// parameters. F_v and F_b get the cotangents of the links' velocities at the start of the step and without constraints.
template <class Real, class Bar>
REVOLUTE_HD inline void row_adjoint(const Model& model, const Parameters<Real>& parameters,
                                    const RowContext<Real>& at, const Contacts<Real>& contacts,
                                    const ConstraintRows<Real>& rows, int r, Bar* qpos_bar, Force<Bar>* F_v,
                                    Force<Bar>* F_b, Bar* time_bar, ConstraintRowsCotangent<Bar>& bar,
                                    KinematicsCotangent<Bar>& kin_bar, Parameters<Bar>& parameters_bar) {
  const RowOrigin& origin = rows.origin[r];
  switch (origin.source) {
    case RowSource::equality:
      equality_row_adjoint(model, at, model.equalities[origin.index], origin.component, bar.b[r], bar.J[r],
                           kin_bar, qpos_bar);
      break;
    case RowSource::dry_friction:
      dry_friction_row_adjoint(parameters, at, origin.index, bar.bound[r], parameters_bar);
      break;
    case RowSource::limit:
      limit_row_adjoint(model, parameters, at, model.limits_list[origin.index], bar.b[r], bar.J[r], qpos_bar,
                        parameters_bar);
      break;
    default:
      contact_row_adjoint(model, parameters, at, contacts.list[origin.index], origin.component,
                          bar.bias[r] + bar.b[r], bar.softness[r], bar.bound[r], bar.J[r],
                          bar.contacts[origin.index], F_v, F_b, time_bar, parameters_bar);
  }
}

// The same for all rows, group by group. Islands also join through neighbours in the pack, so the order of islands must not
// decide the order in which cotangents that several islands share (restitution, the ground's friction) are summed.
template <class Real, class Bar>
REVOLUTE_HD void constraint_rows_adjoint(const Model& model, const Parameters<Real>& parameters,
                                         const RowContext<Real>& at, const Contacts<Real>& contacts,
                                         const ConstraintRows<Real>& rows, Bar* qpos_bar, Force<Bar>* F_v,
                                         Force<Bar>* F_b, Bar* time_bar, ConstraintRowsCotangent<Bar>& bar,
                                         KinematicsCotangent<Bar>& kin_bar, Parameters<Bar>& parameters_bar) {
  const int groups = model.nequality + model.nv + model.nlimit + contacts.count;
  for (int g = 0; g < groups; ++g) {
    if (rows.group_row[g] < 0) continue;
    const int first = rows.group_row[g], end = first + row_group(model, contacts, g).rows;
    for (int r = first; r < end; ++r)
      row_adjoint(model, parameters, at, contacts, rows, r, qpos_bar, F_v, F_b, time_bar, bar, kin_bar,
                  parameters_bar);
  }
}

}  // namespace revolute
