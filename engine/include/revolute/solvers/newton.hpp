// Newton's method for the constrained acceleration of the contact model "mujoco":
//
//   a = argmin  (a - a0)' M (a - a0)/2 + s(J a - aref)                                        (1)
//   gradient  g = M a - f + J' s'(y),   H = M + J' s''(y) J,   step = -H^-1 g,  a += alpha step    (2)
// It starts at a = a0 = M^-1 f. A search along each step finds the zero of the derivative, a monotone function of alpha, (3)
// by Newton's method in one variable, kept between the bounds found so far.
// An environment is done in two cases. Either a whole step (alpha = 1) left every cost in the same quadratic piece: then (1)
// is solved. Or, tree by tree, |g|, or the decrement -g.step, is at rounding of the forces whose difference is g. (The
// decrement bounds the error of a; stiff rows can leave a g that does not vanish.) Both are measured in the norm of the
// inverse pivots of H, at first of 1/diag(M): a force counts by the acceleration that it causes. In the norm of 1/diag(M) the
// huge forces of a link that a contact holds still would hide the error of the links that move.
// An environment that is done is frozen, so its bits depend on nothing else in the pack. After `most_newton_steps` the others
// are unsettled.
// Forward derivatives: the last step is taken once more and only its derivatives for fixed a, -H^-1 dg, are kept. These are
// the derivatives of (1), whatever they were before.
// SoftIslands of a crowded model (soft_islands.hpp) are solved one after the other; each has its own search and its own end.
#pragma once

#include "revolute/solvers/newton_matrix.hpp"

namespace revolute {

constexpr int most_newton_steps = 100, most_search_steps = 40;

template <class Real>
struct Newton {
  Real *a, *Ma;                    // [nv] the solution, M a
  Real* inverse_pivot;             // [nv] of H, at the start 1/M_kk
  Real *y, *slope;                 // [rows] y, s'(y)
  Real* curvature;                 // blocks of s''(y)
  Real* zone;                      // [constraints] quadratic pieces
  Real *step, *M_step, *gradient;  // [nv] scratch; `gradient` first holds J' s'
  Real* J_step;                    // [rows] scratch
  NewtonMatrix<Real> H;
  MaskOf<Real> settled;

  Newton(const Model& model, Arena& arena) : H(model, arena) {
    const std::size_t rows = SoftConstraints<Real>::row_capacity(model);
    for (Real** array : {&a, &Ma, &inverse_pivot, &step, &M_step, &gradient})
      *array = arena.take<Real>(model.nv);
    for (Real** array : {&y, &slope, &J_step}) *array = arena.take<Real>(rows);
    curvature = arena.take<Real>(SoftConstraints<Real>::block_capacity(model));
    zone = arena.take<Real>(SoftConstraints<Real>::capacity(model));
  }
};

// Computes y at a.
template <class Real>
REVOLUTE_HD void constraint_residuals(const SoftConstraints<Real>& constraints, const SoftIsland& island,
                                      const Newton<Real>& ws, Real* y) {
  for (int i = 0; i < island.constraint_count; ++i) {
    const SoftConstraint<Real>& c = constraints.list[island.constraints[i]];
    constraint_times(constraints, c, ws.a, y + c.row);
    for (int r = c.row; r < c.row + c.cost.rows; ++r) y[r] -= constraints.aref[r];
  }
}
// Computes s'(y), and J' s' in `gradient`.
template <class Real>
REVOLUTE_HD void constraint_slopes(const SoftConstraints<Real>& constraints, const SoftIsland& island,
                                   Newton<Real>& ws) {
  for (int i = 0; i < island.dof_count; ++i) ws.gradient[island.dofs[i]] = Real(0);
  for (int i = 0; i < island.constraint_count; ++i) {
    const SoftConstraint<Real>& c = constraints.list[island.constraints[i]];
    Real* const slope = ws.slope + c.row;
    cost_slope(c.cost, ws.y + c.row, slope);
    add_constraint_transpose(constraints, c, slope, ws.gradient);
  }
}
// Computes s''(y) and the factors of H.
template <class Real>
REVOLUTE_HD void factorize_at(const Model& model, const MassMatrix<Real>& M,
                              const SoftConstraints<Real>& constraints, const SoftIsland& island,
                              Newton<Real>& ws) {
  for (int i = 0; i < island.constraint_count; ++i) {
    const SoftConstraint<Real>& c = constraints.list[island.constraints[i]];
    cost_curvature(c.cost, ws.y + c.row, ws.curvature + c.block);
  }
  fill_newton_matrix(model, M, constraints, island, ws.curvature, ws.H);
  factorize(island, ws.H);
}

// The largest ratio, over the trees, of sum measure_k to the squared forces on the tree, sum (f^2 + (J' s')^2)/pivot_k. Forces
// on other trees of the island count a little, because their rounding arrives here as well.
template <class Real, class Measure>
REVOLUTE_HD Real largest_ratio(const Model& model, const SoftIsland& island, const Real* force,
                               const Newton<Real>& ws, const Measure& measure) {
  constexpr double across_trees = 1e-12;
  const auto squared_force = [&](int k) {
    return (force[k] * force[k] + ws.gradient[k] * ws.gradient[k]) * ws.inverse_pivot[k];
  };
  Real total(0), largest(0);
  for (int i = 0; i < island.dof_count; ++i) total += squared_force(island.dofs[i]);
  for (int i = 0; i < island.dof_count;) {
    Real of_tree(0), forces(0);
    const int tree = model.dofs[island.dofs[i]].tree;
    for (; i < island.dof_count && model.dofs[island.dofs[i]].tree == tree; ++i) {
      of_tree += measure(island.dofs[i]);
      forces += squared_force(island.dofs[i]);
    }
    const Real scale = forces + Real(across_trees) * total;
    largest = maximum(largest, of_tree / select(less(Real(0), scale), scale, Real(1)));
  }
  return largest;
}
// Whether a measure of the distance from the solution, squared and relative, is at rounding: it is tiny, or small and no
// longer falls.
template <class Real>
REVOLUTE_HD inline MaskOf<Real> at_rounding(const Real& now, const Real& before) {
  constexpr double tiny = 1e-24, small = 1e-14;
  return less_equal(now, Real(tiny)) | (less(now, Real(small)) & less(Real(0.25) * before, now));
}

// Finds alpha of (3) along ws.step; `slope` and `curvature` belong to the quadratic part at alpha = 0.
template <class Real>
REVOLUTE_HD Real search(const SoftConstraints<Real>& constraints, const SoftIsland& island,
                        const Newton<Real>& ws, const Real& slope, const Real& curvature,
                        const MaskOf<Real>& done) {
  constexpr double tolerance = 1e-2;
  const Real zero(0);
  Real alpha(1), low(0), high(0), at_start(0);
  auto found = done, bounded = less(Real(1), zero);
  for (int i = 0; i <= most_search_steps; ++i) {
    Real first = slope + alpha * curvature, second = curvature;
    if (i == 0) {
      at_start = slope;
      Real ignored(0);
      for (int j = 0; j < island.constraint_count; ++j) {
        const SoftConstraint<Real>& c = constraints.list[island.constraints[j]];
        add_cost_along(c.cost, ws.y + c.row, ws.J_step + c.row, zero, at_start, ignored);
      }
    }
    for (int j = 0; j < island.constraint_count; ++j) {
      const SoftConstraint<Real>& c = constraints.list[island.constraints[j]];
      add_cost_along(c.cost, ws.y + c.row, ws.J_step + c.row, alpha, first, second);
    }
    found = found | less_equal(abs(first), Real(tolerance) * abs(at_start)) | !is_finite(first);
    if (all(found)) break;
    const auto before = less(first, zero);
    low = select(before, alpha, low);
    high = select(before, high, alpha);
    bounded = bounded | !before;
    Real next = alpha - first / second;
    const auto inside = less(low, next) & (less(next, high) | !bounded) & is_finite(next);
    next = select(inside, next, select(bounded, Real(0.5) * (low + high), Real(2) * alpha));
    alpha = select(found, alpha, next);
  }
  return alpha;
}

// Replaces the derivatives of the solution, and of the constraints' forces at it.
template <class Real>
REVOLUTE_HD void differentiate_solution(const Model& model, const MassMatrix<Real>& M,
                                        const SoftConstraints<Real>& constraints, const SoftIsland& island,
                                        const Real* force, Newton<Real>& ws) {
  // y keeps its value: its rounding decides which pieces of the cost the backward derivative has where forces are zero
  const auto find_tangents = [&] {
    multiply(model, M, island.dofs, island.dof_count, ws.a, ws.Ma);
    constraint_residuals(constraints, island, ws, ws.J_step);
    for (int i = 0; i < island.constraint_count; ++i) {
      const SoftConstraint<Real>& c = constraints.list[island.constraints[i]];
      for (int r = c.row; r < c.row + c.cost.rows; ++r)
        ws.y[r] = without_tangents(ws.y[r]) + tangents_of(ws.J_step[r]);
    }
    constraint_slopes(constraints, island, ws);
  };
  find_tangents();
  for (int i = 0; i < island.dof_count; ++i) {
    const int k = island.dofs[i];
    ws.step[k] = -((ws.Ma[k] - force[k]) + ws.gradient[k]);
  }
  factorize_at(model, M, constraints, island, ws);
  solve(island, ws.H, ws.step);
  for (int i = 0; i < island.dof_count; ++i) {
    const int k = island.dofs[i];
    ws.a[k] = without_tangents(ws.a[k]) + tangents_of(Real(ws.a[k] + ws.step[k]));
  }
  find_tangents();
}

// Minimizes (1) for one island; returns which environments are done.
template <class Real>
REVOLUTE_HD MaskOf<Real> newton_of_island(const Model& model, const MassMatrix<Real>& M,
                                          const SoftConstraints<Real>& constraints, const SoftIsland& island,
                                          const Real* force, bool factors, Newton<Real>& ws) {
  const Real zero(0);
  constraint_residuals(constraints, island, ws, ws.y);
  constraint_slopes(constraints, island, ws);
  MaskOf<Real> curved = less(Real(1), zero);
  for (int i = 0; i < island.constraint_count; ++i) {
    const SoftConstraint<Real>& c = constraints.list[island.constraints[i]];
    ws.zone[island.constraints[i]] = cost_zone(c.cost, ws.y + c.row, curved);
  }
  Real* const gradient = ws.step;
  const auto find_gradient = [&] {
    for (int i = 0; i < island.dof_count; ++i) {
      const int k = island.dofs[i];
      gradient[k] = (ws.Ma[k] - force[k]) + ws.gradient[k];
    }
    return largest_ratio(model, island, force, ws,
                         [&](int k) { return gradient[k] * gradient[k] * ws.inverse_pivot[k]; });
  };
  const Real none_before(1e300);
  Real ratio = find_gradient(), decrement_before = none_before;
  MaskOf<Real> done = at_rounding(ratio, none_before);
  bool current = false;  // whether the factors belong to a
  for (int i = 0; i < most_newton_steps && !all(done); ++i) {
    const Real ratio_before = ratio;
    factorize_at(model, M, constraints, island, ws);
    for (int j = 0; j < island.dof_count; ++j) {
      const int k = island.dofs[j];
      ws.inverse_pivot[k] = ws.H.entries[ws.H.first[k]];
      ws.step[k] = -gradient[k];
    }
    solve(island, ws.H, ws.step);
    multiply(model, M, island.dofs, island.dof_count, ws.step, ws.M_step);
    Real slope(0), curvature(0);
    for (int j = 0; j < island.dof_count; ++j) {
      const int k = island.dofs[j];
      slope = multiply_add(ws.Ma[k] - force[k], ws.step[k], slope);
      curvature = multiply_add(ws.M_step[k], ws.step[k], curvature);
    }
    for (int j = 0; j < island.constraint_count; ++j) {
      const SoftConstraint<Real>& c = constraints.list[island.constraints[j]];
      constraint_times(constraints, c, ws.step, ws.J_step + c.row);
    }
    const Real decrement = largest_ratio(model, island, force, ws, [&](int k) {
      return abs(((ws.Ma[k] - force[k]) + ws.gradient[k]) * ws.step[k]);
    });
    const auto last = at_rounding(decrement, decrement_before);
    decrement_before = decrement;
    const Real alpha =
        select(done, zero, without_tangents(search(constraints, island, ws, slope, curvature, done)));
    for (int j = 0; j < island.dof_count; ++j) {
      const int k = island.dofs[j];
      ws.a[k] = select(done, ws.a[k], multiply_add(alpha, ws.step[k], ws.a[k]));
      ws.Ma[k] = select(done, ws.Ma[k], multiply_add(alpha, ws.M_step[k], ws.Ma[k]));
    }
    MaskOf<Real> now_curved = less(Real(1), zero), changed = less(Real(1), zero);
    for (int j = 0; j < island.constraint_count; ++j) {
      const SoftConstraint<Real>& c = constraints.list[island.constraints[j]];
      for (int r = c.row; r < c.row + c.cost.rows; ++r)
        ws.y[r] = select(done, ws.y[r], multiply_add(alpha, ws.J_step[r], ws.y[r]));
      Real& before = ws.zone[island.constraints[j]];
      const Real zone = cost_zone(c.cost, ws.y + c.row, now_curved);
      changed = changed | less(zone, before) | less(before, zone);
      before = zone;
    }
    const auto same_pieces = !(changed | curved | now_curved);
    curved = now_curved;
    current = !any(changed | now_curved);
    constraint_slopes(constraints, island, ws);
    ratio = find_gradient();
    const auto whole = less_equal(Real(1), alpha) & less_equal(alpha, Real(1));
    done = done | (whole & same_pieces) | last | at_rounding(ratio, ratio_before);
  }
  if constexpr (HasTangents<Real>::value) {
    differentiate_solution(model, M, constraints, island, force, ws);
  } else {
    if (factors && !current) factorize_at(model, M, constraints, island, ws);
  }
  return done;
}

// Minimizes (1). On entry ws.a is a0. `factors` leaves ws.H and ws.curvature at the solution.
template <class Real>
REVOLUTE_HD void newton(const Model& model, const MassMatrix<Real>& M,
                        const SoftConstraints<Real>& constraints, const Real* force, bool factors,
                        Newton<Real>& ws) {
  shape_newton_matrix(model, constraints, ws.H);
  const SoftIslands& islands = ws.H.islands;
  for (int k = 0; k < model.nv; ++k) {
    ws.Ma[k] = force[k];
    ws.inverse_pivot[k] = Real(1) / M.row(model, k)[0];
  }
  ws.settled = less(Real(0), Real(1));
  for (int i = 0; i < islands.count; ++i)
    ws.settled = ws.settled & newton_of_island(model, M, constraints, islands.list[i], force, factors, ws);
  // the last island: trees without constraints
  if (factors) factorize_at(model, M, constraints, islands.list[islands.count], ws);
}

}  // namespace revolute
