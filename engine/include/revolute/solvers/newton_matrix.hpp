// The matrix of Newton's method, H = M + J' B J, sparse by trees and islands, and its factors.
//
// Row k of H holds the nonzero entries between degree of freedom k and those that are eliminated after it, itself first, in
// the order of elimination (soft_islands.hpp). Without constraints they are k's path to the root. A constraint couples the
// degrees of freedom of its support; if they lie on one path it adds no entry. The parent of k in the elimination is the next
// entry p of its row; it takes over the rest of the row:
//   row(p) contains row(k) without k                                                          (1)
// so H = L' D L keeps the shape (George and Liu 1981, section 5.2). Consecutive rows for which (1) is an equality form a
// node: they are eliminated together, and one pass subtracts all of them from a later row:
//   row(t) -= sum over the node's rows r of  L_rt D_r L_r                                     (2)
// The shape covers the constraints of every environment of a pack; entries that an environment does not need are zeros.
#pragma once

#include "revolute/scalar/vector_loops.hpp"
#include "revolute/solvers/soft_islands.hpp"
#include "revolute/stages/mass_matrix.hpp"

namespace revolute {

constexpr int most_node_rows = 12;

// Entries that are neighbours both in a node's rows and in a later row.
struct EntryRun {
  int column, place, count;  // column of the node's first row, place in the later row
};

template <class Real>
struct NewtonMatrix {
  SoftIslands islands;
  Real* entries;
  MatrixRow* rows;  // [nv]
  int* first;       // [nv] first entry of each row
  int* node;        // [nv] by place in the order of elimination: the place at which its node begins
  // scratch: lists of each row's children in the elimination and of the constraints that couple it
  int *child, *next_child, *coupling, *next_coupling, *merged;
  EntryRun* runs;  // [nv]
  GrowingArray<Real> entries_memory;
  GrowingArray<int> dofs_memory;

  NewtonMatrix(const Model& model, Arena& arena)
      : islands(model, SoftConstraints<Real>::capacity(model), arena),
        entries(nullptr),
        rows(arena.take<MatrixRow>(model.nv)),
        first(arena.take<int>(model.nv)),
        node(arena.take<int>(model.nv)),
        child(arena.take<int>(model.nv)),
        next_child(arena.take<int>(model.nv)),
        coupling(arena.take<int>(model.nv)),
        next_coupling(arena.take<int>(SoftConstraints<Real>::capacity(model))),
        merged(arena.take<int>(2 * std::size_t(model.nv))),
        runs(arena.take<EntryRun>(model.nv)),
        entries_memory(most(model), arena),
        dofs_memory(most(model), arena) {}

 private:
  static std::size_t most(const Model& model) {
    return model.contact_model == ContactModel::mujoco ? std::size_t(model.nv) * (model.nv + 1) / 2 : 0;
  }
};

// --- shape --------------------------------------------------------------------------------------------------------------

// Union of two lists in the order of elimination.
REVOLUTE_HD inline int merge(const int* place, const int* a, int count_a, const int* b, int count_b,
                             int* out) {
  int i = 0, j = 0, count = 0;
  while (i < count_a && j < count_b) {
    const int x = place[a[i]], y = place[b[j]];
    out[count++] = x < y ? a[i] : b[j];
    i += x <= y;
    j += y <= x;
  }
  while (i < count_a) out[count++] = a[i++];
  while (j < count_b) out[count++] = b[j++];
  return count;
}

// Calls visit(begin, end) for the ranges of a support, one range per tree.
template <class Visit>
REVOLUTE_HD inline void for_segments(const Model& model, const Support& support, const Visit& visit) {
  const int* const dofs = support.dofs;
  for (int begin = 0, end; begin < support.count; begin = end) {
    for (end = begin + 1; end < support.count && model.dofs[dofs[end]].tree == model.dofs[dofs[begin]].tree;)
      ++end;
    visit(begin, end);
  }
}

// Lists each constraint that couples different paths at its degree of freedom that is eliminated first.
template <class Real>
REVOLUTE_HD void list_couplings(const Model& model, const SoftConstraints<Real>& constraints,
                                const SoftIsland& island, NewtonMatrix<Real>& out) {
  for (int i = 0; i < island.dof_count; ++i) out.child[island.dofs[i]] = out.coupling[island.dofs[i]] = -1;
  for (int i = 0; i < island.constraint_count; ++i) {
    const int c = island.constraints[i];
    const Support& support = constraints.list[c].support;
    if (support.chain || support.count == 0) continue;
    int k = -1;
    for_segments(model, support, [&](int begin, int) {
      const int dof = support.dofs[begin];
      if (k < 0 || out.islands.place[dof] < out.islands.place[k]) k = dof;
    });
    out.next_coupling[c] = out.coupling[k];
    out.coupling[k] = c;
  }
}

// The row of k. It is stored in scratch unless it is the row of the mass matrix.
template <class Real>
REVOLUTE_HD MatrixRow find_row(const Model& model, const SoftConstraints<Real>& constraints, int k,
                               NewtonMatrix<Real>& out) {
  MatrixRow row = tree_row(model, k);
  int* const scratch[2] = {out.merged, out.merged + model.nv};
  int turn = 0;
  const auto add = [&](const int* dofs, int count) {
    const int merged = merge(out.islands.place, row.dofs, row.count, dofs, count, scratch[turn]);
    row = {merged, scratch[turn]};
    turn = 1 - turn;
  };
  for (int c = out.child[k]; c >= 0; c = out.next_child[c])
    if (out.rows[c].dofs != tree_row(model, c).dofs) add(out.rows[c].dofs + 1, out.rows[c].count - 1);
  for (int c = out.coupling[k]; c >= 0; c = out.next_coupling[c]) {
    const Support& support = constraints.list[c].support;
    for_segments(model, support, [&](int begin, int end) { add(support.dofs + begin, end - begin); });
  }
  return row;
}

// Finds the shape of all islands.
template <class Real>
REVOLUTE_HD void shape_newton_matrix(const Model& model, const SoftConstraints<Real>& constraints,
                                     NewtonMatrix<Real>& out) {
  find_soft_islands(model, constraints, out.islands);
  std::size_t room = 0;
  for (int i = 0; i < out.islands.count; ++i) {
    list_couplings(model, constraints, out.islands.list[i], out);
    const std::size_t dofs = out.islands.list[i].dof_count;
    room += dofs * (dofs + 1) / 2;
  }
  list_couplings(model, constraints, out.islands.list[out.islands.count], out);
  int* free = nullptr;
  const int* const order = out.islands.dofs;
  int entries = 0;
  for (int i = 0; i < model.nv; ++i) {
    const int k = order[i];
    MatrixRow row = find_row(model, constraints, k, out);
    if (row.dofs == out.merged || row.dofs == out.merged + model.nv) {
      if (!free) free = out.dofs_memory.at_least(room);
      for (int j = 0; j < row.count; ++j) free[j] = row.dofs[j];
      row.dofs = free;
      free += row.count;
    }
    out.rows[k] = row;
    out.first[k] = entries;
    entries += row.count;
    if (row.count > 1) {
      out.next_child[k] = out.child[row.dofs[1]];
      out.child[row.dofs[1]] = k;
    }
    // equality in (1)
    const bool follows = i > 0 && out.rows[order[i - 1]].count == row.count + 1 &&
                         out.rows[order[i - 1]].dofs[1] == k && i - out.node[i - 1] < most_node_rows;
    out.node[i] = follows ? out.node[i - 1] : i;
  }
  out.entries = out.entries_memory.at_least(entries);
}

// --- entries ------------------------------------------------------------------------------------------------------------

// Calls visit(i, place) for each entry i of `dofs` and its place in `row`; the row holds all of them.
template <class Visit>
REVOLUTE_HD inline void for_places(const MatrixRow& row, const int* dofs, int count, const Visit& visit) {
  if (row.count == count) {
    for (int i = 0; i < count; ++i) visit(i, i);
    return;
  }
  for (int i = 0, place = 0; i < count; ++i, ++place) {
    while (row.dofs[place] != dofs[i]) ++place;
    visit(i, place);
  }
}

// The place of a degree of freedom in a row that holds it.
REVOLUTE_HD inline int place_in_row(const MatrixRow& row, const int* place, int dof) {
  int low = 0, high = row.count - 1;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (place[row.dofs[middle]] < place[dof])
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// Adds J' B J of one constraint. `Rows` is its number of rows, or 0 if the compiler does not know it.
template <int Rows, class Real>
REVOLUTE_HD void add_constraint(const Model& model, const SoftConstraints<Real>& constraints,
                                const SoftConstraint<Real>& constraint, const Real* B,
                                NewtonMatrix<Real>& H) {
  const int rows = Rows ? Rows : constraint.cost.rows;
  const Support& support = constraint.support;
  const int* const dofs = support.dofs;
  const int* const place = H.islands.place;
  const Real* J[most_rows];
  for (int r = 0; r < rows; ++r) J[r] = constraints.J + constraint.entry + r * support.count;
  // row i of J' B J, entries begin .. end - 1; entry `begin` is at place `at` of H's row; runs of neighbours there go together
  Real BJ[most_rows];
  const auto add = [&](int i, int begin, int end, int at) {
    const MatrixRow& row = H.rows[dofs[i]];
    Real* const out = H.entries + H.first[dofs[i]];
    // neighbours in the tree's numbering are neighbours in every row
    const bool one_run = dofs[begin] - dofs[end - 1] == end - 1 - begin;
    while (begin < end) {
      while (row.dofs[at] != dofs[begin]) ++at;
      int last = one_run ? end : begin + 1;
      while (last < end && row.dofs[at + last - begin] == dofs[last]) ++last;
      const Real* from[most_rows];
      for (int r = 0; r < rows; ++r) from[r] = J[r] + begin;
      add_products(BJ, from, rows, out + at, last - begin);
      at += last - begin;
      begin = last;
    }
  };
  const auto find_BJ = [&](int i) {
    for (int r = 0; r < rows; ++r) {
      BJ[r] = B[r] * J[0][i];
      for (int s = 1; s < rows; ++s) BJ[r] = multiply_add(B[s * rows + r], J[s][i], BJ[r]);
    }
  };
  if (H.islands.file_order || support.chain) {
    for (int i = 0; i < support.count; ++i) {
      find_BJ(i);
      add(i, i, support.count, 0);
    }
    return;
  }
  // for each tree: the rest of its own entries, and the entries of trees that are eliminated later
  for_segments(model, support, [&](int begin, int end) {
    for (int i = begin; i < end; ++i) {
      find_BJ(i);
      add(i, i, end, 0);
      for_segments(model, support, [&](int other, int other_end) {
        if (place[dofs[other]] <= place[dofs[begin]]) return;
        add(i, other, other_end, place_in_row(H.rows[dofs[i]], place, dofs[other]));
      });
    }
  });
}

// H = M + J' B J of an island; B holds the blocks of the constraints.
template <class Real>
REVOLUTE_HD void fill_newton_matrix(const Model& model, const MassMatrix<Real>& M,
                                    const SoftConstraints<Real>& constraints, const SoftIsland& island,
                                    const Real* B, NewtonMatrix<Real>& H) {
  for (int i = 0; i < island.dof_count; ++i) {
    const int k = island.dofs[i];
    const MatrixRow of_M = tree_row(model, k);
    const Real* const from = M.row(model, k);
    Real* const to = H.entries + H.first[k];
    if (H.rows[k].count != of_M.count)
      for (int j = 0; j < H.rows[k].count; ++j) to[j] = Real(0);
    for_places(H.rows[k], of_M.dofs, of_M.count, [&](int j, int place) { to[place] = from[j]; });
  }
  for (int i = 0; i < island.constraint_count; ++i) {
    const SoftConstraint<Real>& constraint = constraints.list[island.constraints[i]];
    const Real* const block = B + constraint.block;
    // without curvature the constraint does not push (lanes of a pack of one island may differ in that)
    if (!H.islands.file_order && !any(less(Real(0), block[0]))) continue;
    with_rows(constraint.cost, [&](auto number) {
      add_constraint<decltype(number)::value>(model, constraints, constraint, block, H);
    });
  }
}

// --- factors ------------------------------------------------------------------------------------------------------------

// The rows of one node: entries[r][c] stands in column c of the node's first row, for c >= r.
template <class Real>
struct NodeRows {
  int count, columns;
  const int* dofs;  // degrees of freedom of the columns; the first `count` are the node's own
  Real* entries[most_node_rows];
};
template <class Real>
REVOLUTE_HD inline NodeRows<Real> node_rows(const NewtonMatrix<Real>& H, int begin, int end) {
  const int* const order = H.islands.dofs;
  NodeRows<Real> out;
  out.count = 1;
  while (begin + out.count < end && H.node[begin + out.count] == begin) ++out.count;
  out.columns = H.rows[order[begin]].count;
  out.dofs = H.rows[order[begin]].dofs;
  for (int r = 0; r < out.count; ++r) out.entries[r] = H.entries + H.first[order[begin + r]] - r;
  return out;
}

// Finds the places of the columns from `column` on in another row.
REVOLUTE_HD inline int find_runs(const int* dofs, int column, int columns, const MatrixRow& row,
                                 EntryRun* runs) {
  int count = 0;
  for (int place = 0; column < columns; ++count) {
    while (row.dofs[place] != dofs[column]) ++place;
    EntryRun& run = runs[count] = {column, place, 0};
    while (column < columns && place < row.count && row.dofs[place] == dofs[column]) ++column, ++place;
    run.count = column - run.column;
  }
  return count;
}

// Applies (2) to all later rows. Rows of one later node differ only in where they begin.
template <class Real>
REVOLUTE_HD void subtract_node(const NodeRows<Real>& node, NewtonMatrix<Real>& H) {
  const int* const place = H.islands.place;
  int node_of_runs = -1, first_of_runs = 0, run_count = 0;
  for (int t = node.count; t < node.columns; ++t) {
    const int dof = node.dofs[t], at = place[dof];
    Real factors[most_node_rows];
    const Real* rows[most_node_rows];
    for (int r = 0; r < node.count; ++r) factors[r] = -(node.entries[r][t] * node.entries[r][r]);
    const auto subtract = [&](int column, int to, int count) {
      for (int r = 0; r < node.count; ++r) rows[r] = node.entries[r] + column;
      add_products(factors, rows, node.count, H.entries + H.first[dof] + to, count);
    };
    if (H.rows[dof].count == node.columns - t) {
      subtract(t, 0, node.columns - t);
      continue;
    }
    if (H.node[at] != node_of_runs) {
      node_of_runs = H.node[at];
      first_of_runs = at;
      run_count = find_runs(node.dofs, t, node.columns, H.rows[dof], H.runs);
    }
    const int shift = at - first_of_runs;
    for (int i = 0; i < run_count; ++i) {
      const EntryRun& run = H.runs[i];
      const int skipped = t > run.column ? t - run.column : 0;
      if (skipped < run.count)
        subtract(run.column + skipped, run.place + skipped - shift, run.count - skipped);
    }
  }
}

// Factorizes an island in place: L without its unit diagonal, which is replaced by 1/D.
template <class Real>
REVOLUTE_HD void factorize(const SoftIsland& island, NewtonMatrix<Real>& H) {
  const int begin = int(island.dofs - H.islands.dofs), end = begin + island.dof_count;
  for (int i = begin; i < end;) {
    const NodeRows<Real> node = node_rows(H, i, end);
    for (int r = 0; r < node.count; ++r) {
      Real factors[most_node_rows];
      const Real* rows[most_node_rows];
      for (int s = 0; s < r; ++s) {
        factors[s] = -(node.entries[s][r] * node.entries[s][s]);
        rows[s] = node.entries[s] + r;
      }
      if (r > 0) add_products(factors, rows, r, node.entries[r] + r, node.columns - r);
      node.entries[r][r] = Real(1) / node.entries[r][r];
    }
    subtract_node(node, H);
    for (int r = 0; r < node.count; ++r)
      for (int c = r + 1; c < node.columns; ++c) node.entries[r][c] = node.entries[r][c] * node.entries[r][r];
    i += node.count;
  }
}

// x = H^-1 x for the degrees of freedom at places begin .. end - 1 of the order, whole islands.
// Sums run in the order of elimination, and back in the reverse order, so that no order depends on the nodes.
template <class Real, class X>
REVOLUTE_HD void solve_places(const NewtonMatrix<Real>& H, int begin, int end, X* x) {
  const int* const order = H.islands.dofs;
  for (int i = begin; i < end;) {
    const NodeRows<Real> node = node_rows(H, i, end);
    X of_node[most_node_rows];
    for (int r = 0; r < node.count; ++r) {
      of_node[r] = x[node.dofs[r]];
      for (int s = 0; s < r; ++s) of_node[r] = multiply_add(-node.entries[s][r], of_node[s], of_node[r]);
    }
    for (int c = node.count; c < node.columns; ++c) {
      X sum = x[node.dofs[c]];
      for (int r = 0; r < node.count; ++r) sum = multiply_add(-node.entries[r][c], of_node[r], sum);
      x[node.dofs[c]] = sum;
    }
    for (int r = 0; r < node.count; ++r) x[node.dofs[r]] = of_node[r] * node.entries[r][r];
    i += node.count;
  }
  for (int last = end; last > begin;) {
    const int first = H.node[last - 1];
    const NodeRows<Real> node = node_rows(H, first, last);
    X of_node[most_node_rows];
    for (int r = 0; r < node.count; ++r) of_node[r] = x[order[first + r]];
    for (int c = node.columns - 1; c >= node.count; --c) {
      const X& at = x[node.dofs[c]];
      for (int r = 0; r < node.count; ++r) of_node[r] = multiply_add(-node.entries[r][c], at, of_node[r]);
    }
    for (int r = node.count - 1; r >= 0; --r) {
      for (int s = node.count - 1; s > r; --s)
        of_node[r] = multiply_add(-node.entries[r][s], of_node[s], of_node[r]);
      x[order[first + r]] = of_node[r];
    }
    last = first;
  }
}
template <class Real, class X>
REVOLUTE_HD void solve(const SoftIsland& island, const NewtonMatrix<Real>& H, X* x) {
  const int begin = int(island.dofs - H.islands.dofs);
  solve_places(H, begin, begin + island.dof_count, x);
}
template <class Real, class X>
REVOLUTE_HD void solve(const Model& model, const NewtonMatrix<Real>& H, X* x) {
  solve_places(H, 0, model.nv, x);
}

}  // namespace revolute
