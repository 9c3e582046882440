// The solver "exact": the converged solution of the rows, with its implicit derivative.
//
// Each environment of a pack is solved alone, in double, island by island (exact/island.hpp). Its islands are made of its own
// rows, joined by A, so its bits depend on no neighbour. Tangents of a Real come from the same linear system.
#pragma once

#include "revolute/growing_array.hpp"
#include "revolute/solvers/exact/island.hpp"

namespace revolute {

struct ExactWorkspace {
  int *member, *place,
      *root;  // rows of the current island; a row's place in it; first row that A joins it to
  SolverRow* rows;
  RowState* state;
  int *pivot, *last;
  double *vectors, *inverse;
  GrowingArray<double> A, K, lu, scaled;
  static constexpr int vector_count = 18;
  std::size_t capacity;

  ExactWorkspace(bool used, std::size_t most_rows, Arena& arena)
      : A(used ? most_rows * most_rows : 0, arena),
        K(used ? most_rows * most_rows : 0, arena),
        lu(used ? most_rows * most_rows : 0, arena),
        scaled(used ? most_rows * most_rows : 0, arena),
        capacity(used ? most_rows : 0) {
    for (int** array : {&member, &place, &root, &pivot, &last}) *array = arena.take<int>(capacity);
    rows = arena.take<SolverRow>(capacity);
    state = arena.take<RowState>(capacity);
    vectors = arena.take<double>(capacity * vector_count);
    inverse = arena.take<double>(capacity * most_friction_rows);
  }
  double* vector(int i) const { return vectors + i * capacity; }
};

// Calls visit(j, entry) for the rows of the current island that A couples to `row`: place j in the island, entry of A.
template <class Visit>
void for_members(const SolverRow& row, const ExactWorkspace& ws, const int* member, const Visit& visit) {
  for_coupled(row, [&](int k) {
    const int r = row.begin + k;
    if (ws.root[r] == member[0]) visit(ws.place[r], row.A + k);
  });
}

// Calls visit(island, members) for each island of one environment. The x of rows without an island stays as it is.
template <class Real, class Visit>
void for_exact_islands(const SolverProblem<Real>& problem, ExactWorkspace& ws, int lane, const Visit& visit) {
  const int count = problem.count;
  const auto value = [&](int r, int j) {
    return get_lane(problem.A[problem.rows[r].A + j - problem.rows[r].begin], lane);
  };
  // rows that only a neighbour in the pack has are masked: contacts and limits, and dry friction without a bound
  const auto has = [&](int r) {
    const SolverRow& row = problem.rows[r];
    const int decides = row.kind == RowKind::friction ? row.normal : r;
    const RowKind kind = problem.rows[decides].kind;
    const bool masked = kind == RowKind::unilateral || kind == RowKind::box;
    return !masked || get_lane(problem.bound[decides], lane) > 0;
  };
  const auto find = [&](int r) {
    while (ws.root[r] != r) r = ws.root[r];
    return r;
  };
  const auto join = [&](int r, int j) {
    const int a = find(r), c = find(j);
    ws.root[a > c ? a : c] = a > c ? c : a;
  };
  for (int r = 0; r < count; ++r) ws.root[r] = has(r) ? r : -1;
  for (int r = 0; r < count; ++r) {
    if (ws.root[r] < 0) continue;
    if (problem.rows[r].kind == RowKind::friction) join(r, problem.rows[r].normal);
    for_coupled(problem.rows[r], [&](int i) {
      const int j = problem.rows[r].begin + i;
      // if an environment blows up, zero times infinity must join nothing
      if (j < r && ws.root[j] >= 0 && value(r, j) != 0 && std::isfinite(value(r, j))) join(r, j);
    });
  }
  for (int r = 0; r < count; ++r)
    if (ws.root[r] >= 0) ws.root[r] = find(r);
  for (int first = 0; first < count; ++first) {
    if (ws.root[first] != first) continue;
    int n = 0;
    for (int r = first; r < problem.rows[first].end; ++r)
      if (ws.root[r] == first) ws.place[r] = n, ws.member[n++] = r;
    const std::size_t square = std::size_t(n) * n;
    double* const v = ws.vectors;
    const std::size_t c = ws.capacity;
    ExactIsland at;
    at.n = n;
    at.rows = ws.rows;
    at.A = ws.A.at_least(square);
    at.K = ws.K.at_least(square);
    at.b = v, at.bound = v + c, at.x = v + 2 * c, at.e = v + 3 * c, at.w = v + 4 * c, at.next = v + 5 * c;
    at.trial = v + 6 * c, at.R = v + 12 * c, at.radii = v + 13 * c, at.direction = v + 14 * c;
    at.Ad = v + 15 * c, at.diagonal = v + 16 * c;
    at.state = ws.state;
    at.factors = {n, ws.lu.at_least(square), ws.pivot, ws.last};
    at.sweeps = {at.x,    v + 7 * c, v + 8 * c, ws.inverse, ws.scaled.at_least(square),
                 nullptr, nullptr,   nullptr,   nullptr};
    for (int i = 0; i < n; ++i) {
      const int r = ws.member[i];
      const SolverRow& row = problem.rows[r];
      at.rows[i] = {row.kind, row.kind == RowKind::friction ? ws.place[row.normal] : 0, 0, n, 0, nullptr, 0};
      at.b[i] = get_lane(problem.b[r], lane);
      at.bound[i] = get_lane(problem.bound[r], lane);
      double* const own = at.A + std::size_t(i) * n;
      std::fill(own, own + n, 0.0);
      for_members(row, ws, ws.member,
                  [&](int j, std::size_t entry) { own[j] = get_lane(problem.A[entry], lane); });
    }
    visit(at, ws.member);
  }
}

// Fills x, and reports how well x solves the rows.
template <class Real>
SolverReport<Real> exact(const SolverProblem<Real>& problem, ExactWorkspace& ws, Real* x) {
  Real violation(0), unsettled(0);
  for (int r = 0; r < problem.count; ++r) x[r] = Real(0);
  for (int lane = 0; lane < Width<Real>::value; ++lane)
    for_exact_islands(problem, ws, lane, [&](ExactIsland& at, const int* member) {
      const double left = at.solve();
      set_lane(violation, lane, std::max(left, get_lane(violation, lane)));
      // this includes a violation that is not a number
      if (!at.settled) set_lane(unsettled, lane, 1.0);
      for (int i = 0; i < at.n; ++i) set_lane(x[member[i]], lane, at.x[i]);
      if constexpr (TangentCount<Real>::value > 0) {
        at.prepare_derivatives();
        double *const w_tan = ws.vector(9), *const bound_tan = ws.vector(10), *const dx = ws.vector(11),
                      *const diagonal_tan = ws.vector(17);
        for (int d = 0; d < TangentCount<Real>::value; ++d) {
          for (int i = 0; i < at.n; ++i) {
            const SolverRow& row = problem.rows[member[i]];
            w_tan[i] = problem.b[member[i]].tangent[d];
            bound_tan[i] = problem.bound[member[i]].tangent[d];
            for_members(row, ws, member, [&](int j, std::size_t entry) {
              w_tan[i] += problem.A[entry].tangent[d] * at.x[j];
              if (j == i) diagonal_tan[i] = problem.A[entry].tangent[d];
            });
          }
          if (at.compliant) at.add_compliance_tangent(diagonal_tan, bound_tan, w_tan);
          at.tangent(w_tan, bound_tan, dx);
          for (int i = 0; i < at.n; ++i) x[member[i]].tangent[d] = dx[i];
        }
      }
    });
  return {violation, less_equal(unsettled, Real(0))};
}

// `x` is the solution.
template <class Real, class Bar>
void exact_adjoint(const SolverProblem<Real>& problem, ExactWorkspace& ws, const Real* x,
                   SolverCotangent<Bar>& bar) {
  constexpr int lanes = Width<Real>::value, cotangents = Width<Bar>::value / lanes;
  for (int lane = 0; lane < lanes; ++lane)
    for_exact_islands(problem, ws, lane, [&](ExactIsland& at, const int* member) {
      double *const y = ws.vector(9), *const s = ws.vector(10), *const bound_bar = ws.vector(11),
                    *const diagonal_bar = ws.vector(17);
      for (int i = 0; i < at.n; ++i) at.x[i] = get_lane(x[member[i]], lane);
      at.prepare_derivatives();
      const auto add = [](Bar& to, int place, double value) {
        set_lane(to, place, get_lane(to, place) + value);
      };
      for (int side = 0; side < cotangents; ++side) {
        const int place = lanes > 1 ? lane : side;
        for (int i = 0; i < at.n; ++i) y[i] = get_lane(bar.x[member[i]], place);
        at.adjoint(y, s, bound_bar);
        std::fill(diagonal_bar, diagonal_bar + at.n, 0.0);
        if (at.compliant) at.compliance_adjoint(s, diagonal_bar, bound_bar);
        for (int i = 0; i < at.n; ++i) {
          const SolverRow& row = problem.rows[member[i]];
          add(bar.b[member[i]], place, -s[i]);
          add(bar.bound[member[i]], place, bound_bar[i]);
          for_members(row, ws, member, [&](int j, std::size_t entry) {
            add(bar.A[entry], place, -s[i] * at.x[j] + (i == j ? diagonal_bar[i] : 0.0));
          });
        }
      }
    });
}

}  // namespace revolute
