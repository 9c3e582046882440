// The matrix of Newton's method, H = M + J' B J, sparse by trees, and its factors.
//
// Row k of H holds the entries that are not zero between degree of freedom k and those before it, itself first, descending.
// Without constraints these are k's path to the root. A constraint couples the degrees of freedom of its support; where
// they lie on one path nothing is added. Elimination runs from the leaves: the parent of k in the elimination is the next
// entry of its row, which takes over what is left of it:
//   row(p) contains row(k) without k                                                          (1)
// so H = L' D L keeps the shape (George and Liu 1981, section 5.2). Trees that no constraint joins cost nothing to each other.
// The shape follows from which constraints there are in any environment of a pack; what another one adds are zeros.
#pragma once

#include "revolute/growing_array.hpp"
#include "revolute/stages/mass_matrix.hpp"
#include "revolute/stages/soft_constraints.hpp"

namespace revolute {

template <class Real>
struct NewtonMatrix {
  Real* entries;
  MatrixRow* rows;  // [nv]
  int* first;       // [nv + 1] first entry of each row
  // scratch: lists of each row's children in the elimination and of the constraints that couple it
  int *child, *next_child, *coupling, *next_coupling, *merged;
  GrowingArray<Real> entries_memory;
  GrowingArray<int> dofs_memory;

  NewtonMatrix(const Model& model, Arena& arena)
      : entries(nullptr),
        rows(arena.take<MatrixRow>(model.nv)),
        first(arena.take<int>(model.nv + 1)),
        child(arena.take<int>(model.nv)),
        next_child(arena.take<int>(model.nv)),
        coupling(arena.take<int>(model.nv)),
        next_coupling(arena.take<int>(SoftConstraints<Real>::capacity(model))),
        merged(arena.take<int>(2 * std::size_t(model.nv))),
        entries_memory(most(model), arena),
        dofs_memory(most(model), arena) {}

 private:
  static std::size_t most(const Model& model) {
    return model.contact_model == ContactModel::mujoco ? std::size_t(model.nv) * (model.nv + 1) / 2 : 0;
  }
};

// Union of two descending lists.
REVOLUTE_HD inline int merge(const int* a, int count_a, const int* b, int count_b, int* out) {
  int i = 0, j = 0, count = 0;
  while (i < count_a || j < count_b) {
    const int x = i < count_a ? a[i] : -1, y = j < count_b ? b[j] : -1;
    out[count++] = x > y ? x : y;
    i += x >= y;
    j += y >= x;
  }
  return count;
}

// Finds the shape.
template <class Real>
REVOLUTE_HD void shape_newton_matrix(const Model& model, const SoftConstraints<Real>& constraints,
                                     NewtonMatrix<Real>& out) {
  for (int k = 0; k < model.nv; ++k) out.child[k] = out.coupling[k] = -1;
  bool coupled = false;
  for (int c = 0; c < constraints.count; ++c) {
    const Support& support = model.supports[constraints.list[c].support];
    if (support.chain || support.count == 0) continue;
    const int k = model.support_dofs[support.first];
    out.next_coupling[c] = out.coupling[k];
    out.coupling[k] = c;
    coupled = true;
  }
  int* free = coupled ? out.dofs_memory.at_least(std::size_t(model.nv) * (model.nv + 1) / 2) : nullptr;
  for (int k = model.nv - 1; k >= 0; --k) {
    MatrixRow row = tree_row(model, k);
    int* const scratch[2] = {out.merged, out.merged + model.nv};
    int turn = 0;
    const auto add = [&](const int* dofs, int count) {
      const int merged = merge(row.dofs, row.count, dofs, count, scratch[turn]);
      row = {merged, scratch[turn]};
      turn = 1 - turn;
    };
    for (int c = out.child[k]; coupled && c >= 0; c = out.next_child[c])
      if (out.rows[c].dofs != tree_row(model, c).dofs) add(out.rows[c].dofs + 1, out.rows[c].count - 1);
    for (int c = out.coupling[k]; c >= 0; c = out.next_coupling[c]) {
      const Support& support = model.supports[constraints.list[c].support];
      add(model.support_dofs + support.first, support.count);
    }
    if (row.dofs == scratch[0] || row.dofs == scratch[1]) {
      for (int i = 0; i < row.count; ++i) free[i] = row.dofs[i];
      row.dofs = free;
      free += row.count;
    }
    out.rows[k] = row;
    if (row.count > 1) {
      out.next_child[k] = out.child[row.dofs[1]];
      out.child[row.dofs[1]] = k;
    }
  }
  out.first[0] = 0;
  for (int k = 0; k < model.nv; ++k) out.first[k + 1] = out.first[k] + out.rows[k].count;
  out.entries = out.entries_memory.at_least(out.first[model.nv]);
}

// Calls visit(i, place) for entries i of `dofs`, whose place in `row` that is; all of them are there.
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

// Adds J' B J of one constraint; `Rows` is their number, or 0 where it is not known to the compiler.
template <int Rows, class Real>
REVOLUTE_HD void add_constraint(const Model& model, const SoftConstraints<Real>& constraints,
                                const SoftConstraint<Real>& constraint, const Real* B,
                                NewtonMatrix<Real>& H) {
  const int rows = Rows ? Rows : constraint.cost.rows;
  const Support& support = model.supports[constraint.support];
  const int* const dofs = model.support_dofs + support.first;
  const Real* const J = constraints.J + constraint.entry;
  for (int i = 0; i < support.count; ++i) {
    Real BJ[Rows ? Rows : most_rows];
    for (int r = 0; r < rows; ++r) {
      BJ[r] = B[r] * J[i * rows];
      for (int s = 1; s < rows; ++s) BJ[r] = multiply_add(B[s * rows + r], J[i * rows + s], BJ[r]);
    }
    Real* const out = H.entries + H.first[dofs[i]];
    for_places(H.rows[dofs[i]], dofs + i, support.count - i, [&](int j, int place) {
      Real sum = out[place];
      for (int r = 0; r < rows; ++r) sum = multiply_add(BJ[r], J[(i + j) * rows + r], sum);
      out[place] = sum;
    });
  }
}

// H = M + J' B J; B: blocks of the constraints
template <class Real>
REVOLUTE_HD void fill_newton_matrix(const Model& model, const MassMatrix<Real>& M,
                                    const SoftConstraints<Real>& constraints, const Real* B,
                                    NewtonMatrix<Real>& H) {
  for (int k = 0; k < model.nv; ++k) {
    const MatrixRow of_M = tree_row(model, k);
    const Real* const from = M.row(model, k);
    Real* const to = H.entries + H.first[k];
    if (H.rows[k].count != of_M.count)
      for (int i = 0; i < H.rows[k].count; ++i) to[i] = Real(0);
    for_places(H.rows[k], of_M.dofs, of_M.count, [&](int i, int place) { to[place] = from[i]; });
  }
  for (int c = 0; c < constraints.count; ++c) {
    const SoftConstraint<Real>& constraint = constraints.list[c];
    const Real* const block = B + constraint.block;
    switch (constraint.cost.rows) {
      case 1:
        add_constraint<1>(model, constraints, constraint, block, H);
        break;
      case 3:
        add_constraint<3>(model, constraints, constraint, block, H);
        break;
      case 4:
        add_constraint<4>(model, constraints, constraint, block, H);
        break;
      default:
        add_constraint<0>(model, constraints, constraint, block, H);
    }
  }
}

// In place: L without its unit diagonal, where 1/D stands.
template <class Real>
REVOLUTE_HD void factorize(const Model& model, NewtonMatrix<Real>& H) {
  for (int k = model.nv - 1; k >= 0; --k) {
    const MatrixRow row = H.rows[k];
    Real* const L = H.entries + H.first[k];
    L[0] = Real(1) / L[0];
    for (int i = 1; i < row.count; ++i) {
      const Real l = L[i] * L[0];
      const int of = row.dofs[i];
      Real* const out = H.entries + H.first[of];
      for_places(H.rows[of], row.dofs + i, row.count - i,
                 [&](int j, int place) { out[place] = multiply_add(-l, L[i + j], out[place]); });
      L[i] = l;
    }
  }
}

// x = H^-1 x
template <class Real, class X>
REVOLUTE_HD void solve(const Model& model, const NewtonMatrix<Real>& H, X* x) {
  for (int k = model.nv - 1; k >= 0; --k) {
    const MatrixRow row = H.rows[k];
    const Real* const L = H.entries + H.first[k];
    for (int i = 1; i < row.count; ++i) x[row.dofs[i]] = multiply_add(-L[i], x[k], x[row.dofs[i]]);
    x[k] = x[k] * L[0];
  }
  for (int k = 0; k < model.nv; ++k) {
    const MatrixRow row = H.rows[k];
    const Real* const L = H.entries + H.first[k];
    for (int i = 1; i < row.count; ++i) x[k] = multiply_add(-L[i], x[row.dofs[i]], x[k]);
  }
}

}  // namespace revolute
