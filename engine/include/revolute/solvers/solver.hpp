// The interface of a solver of the hard contact model: rows in, impulses out, and the adjoint of that.
//
//   lambda = solver(A, b, bounds),   A = J M^-1 J' in blocks of islands, b = J v* + bias
//   adjoint: from lambda_bar to the cotangents of A, b and the bounds
// A solver owns its sizes: its workspaces take what they need from the arena, for at most `capacity` rows.
#pragma once

#include <cstddef>

#include "revolute/scalar/scalar.hpp"

namespace revolute {

enum class RowKind : int { bilateral, unilateral, friction, box };

// Rows begin ... end - 1 of an island, counted from its first row.
struct RowRange {
  int begin, end;
};

struct SolverRow {
  RowKind kind;
  int normal;      // friction: the row of its normal, the last unilateral one before it
  int begin, end;  // rows of its island
  std::size_t A;   // offset of the row in A; entry (r, j) is A[row.A + j - begin]
  // In a large island of many trees: the rows with a tree in common, ascending, with all rows of its own constraint. The other
  // entries of the row in A are zero, and neither written nor read. Null: every row.
  const RowRange* coupled;
  int ncoupled;
};

// Calls visit(j) for the rows that are coupled to a row, numbered from the first row of the island.
template <class Visit>
REVOLUTE_HD inline void for_coupled(const SolverRow& row, const Visit& visit) {
  const RowRange all = {0, row.end - row.begin};
  const RowRange* const ranges = row.coupled ? row.coupled : &all;
  const int count = row.coupled ? row.ncoupled : 1;
  for (int i = 0; i < count; ++i)
    for (int j = ranges[i].begin; j < ranges[i].end; ++j) visit(j);
}

template <class Real>
struct SolverProblem {
  int count, iterations;
  const SolverRow* rows;
  const Real* A;
  const Real* b;
  const Real* bound;  // friction: mu; box: bound; unilateral: 1 where active, 0 elsewhere; bilateral: unused
};

// How well impulses solve their rows, per environment.
template <class Real>
struct SolverReport {
  Real violation;  // largest change of velocity that one more update of a block would make, m/s or rad/s
  MaskOf<Real> settled;
};

// Cotangents, [count]; A_bar is shaped as A. x is used up, the solver adds to the others.
template <class Bar>
struct SolverCotangent {
  Bar *x, *b, *A, *bound;
};

}  // namespace revolute
