// Projected Gauss-Seidel: complementarity when converged, islands, and the adjoint of the unconverged result.
#include <algorithm>

#include "allocation.hpp"
#include "dense.hpp"
#include "models.hpp"

using namespace revolute;
using namespace revolute::check;

namespace {

// A thousand sweeps on well-conditioned problems leave rounding only.
constexpr double converged = 1e-11;

// Rows of islands one after the other; in: lower triangles of A, b, bounds of friction and box rows, masks of
// normals.
struct Problem {
  std::vector<SolverRow> rows;
  int iterations;
  std::size_t A_size = 0;

  int count() const { return int(rows.size()); }
  int triangle() const {
    int size = 0;
    for (int r = 0; r < count(); ++r) size += r - rows[r].begin + 1;
    return size;
  }
  int normals() const {
    return int(std::count_if(rows.begin(), rows.end(),
                             [](const SolverRow& row) { return row.kind == RowKind::unilateral; }));
  }
  // the masks of normals are no numbers to differentiate by
  std::vector<Block> blocks() const {
    return {{"A", 0, triangle()},
            {"b", triangle(), count()},
            {"bound", triangle() + count(), count() - normals()}};
  }
  // where each row's bound or mask is among the inputs
  std::vector<int> bound_inputs() const {
    std::vector<int> out;
    int bound = triangle() + count(), mask = bound + count() - normals();
    for (const SolverRow& row : rows) out.push_back(row.kind == RowKind::unilateral ? mask++ : bound++);
    return out;
  }
  void add_island(std::initializer_list<RowKind> kinds) {
    const int begin = count(), end = begin + int(kinds.size());
    int normal = -1;
    for (RowKind kind : kinds) {
      if (kind == RowKind::unilateral) normal = count();
      rows.push_back({kind, kind == RowKind::friction ? normal : -1, begin, end, A_size});
      A_size += end - begin;
    }
  }
  // symmetric A, laid out as the solver reads it
  template <class Real>
  std::vector<Real> matrix(const Real* in) const {
    std::vector<Real> A(A_size);
    for (int r = 0; r < count(); ++r)
      for (int j = rows[r].begin; j <= r; ++j) {
        A[rows[r].A + j - rows[r].begin] = *in;
        A[rows[j].A + r - rows[j].begin] = *in++;
      }
    return A;
  }
  template <class Real>
  std::vector<Real> bounds(const Real* in) const {
    std::vector<Real> out;
    for (int i : bound_inputs()) out.push_back(in[i]);
    return out;
  }
  // A = G G' + diagonal, b normal, mu and box bounds small enough to be reached, every normal active
  Doubles inputs(Random& random) const {
    Doubles in;
    for (int r = 0; r < count();) {
      const int n = rows[r].end - r;
      Dense G(n, n);
      G.entries = random.normals(n * n);
      const Dense A = 0.3 * (G * transposed(G)) + identity(n);
      for (int i = 0; i < n; ++i)
        for (int j = 0; j <= i; ++j) in.push_back(A(i, j));
      r += n;
    }
    for (double b : random.normals(count())) in.push_back(b - 0.5);
    for (int i = 0; i < count() - normals(); ++i) in.push_back(random.uniform(0.1, 0.4));
    in.resize(in.size() + normals(), 1.0);
    return in;
  }

  template <class Real>
  void operator()(const Real* in, Real* out) const {
    const std::vector<Real> A = matrix(in), bound = bounds(in);
    std::vector<Real> x(count()), w(count()), inverse(count());
    const SolverProblem<Real> problem = {count(),  iterations,      rows.data(),
                                         A.data(), in + triangle(), bound.data()};
    projected_gauss_seidel(problem, x.data(), w.data(), inverse.data(), static_cast<Real*>(nullptr));
    for (int r = 0; r < count(); ++r) out[r] += x[r];
  }
};
struct ProblemAdjoint {
  const Problem& of;
  template <class Real>
  void operator()(const Real* in, const Real* out_bar, Real* in_bar) const {
    const int n = of.count();
    const std::vector<Real> A = of.matrix(in), bound = of.bounds(in);
    std::vector<Real> x(n), w(n), inverse(n), tape(n * of.iterations), x_bar(out_bar, out_bar + n);
    std::vector<Real> A_bar(of.A_size, Real(0)), bound_bar(n, Real(0));
    const SolverProblem<Real> problem = {n,        of.iterations,      of.rows.data(),
                                         A.data(), in + of.triangle(), bound.data()};
    projected_gauss_seidel(problem, x.data(), w.data(), inverse.data(), tape.data());
    projected_gauss_seidel_adjoint(problem, inverse.data(), tape.data(), x.data(), x_bar.data(),
                                   in_bar + of.triangle(), A_bar.data(), bound_bar.data());
    const std::vector<int> places = of.bound_inputs();
    for (int r = 0; r < n; ++r) in_bar[places[r]] += bound_bar[r];
    // an entry of the triangle stands for two of A
    for (int r = 0; r < n; ++r)
      for (int j = of.rows[r].begin; j <= r; ++j) {
        *in_bar += A_bar[of.rows[r].A + j - of.rows[r].begin];
        if (j < r) *in_bar += A_bar[of.rows[j].A + r - of.rows[j].begin];
        ++in_bar;
      }
  }
};

constexpr RowKind normal = RowKind::unilateral, friction = RowKind::friction, box = RowKind::box;
Problem contacts_and_dry_friction(int iterations) {
  Problem problem{{}, iterations};
  problem.add_island({box, box, normal, normal, friction, friction, normal, friction, friction});
  problem.add_island({normal});
  problem.add_island({box, normal, normal, friction, friction});
  return problem;
}

// w = A x + b
Doubles residual(const Problem& problem, const Doubles& in, const Doubles& x) {
  const Doubles A = problem.matrix(in.data());
  Doubles w(in.begin() + problem.triangle(), in.begin() + problem.triangle() + problem.count());
  for (int r = 0; r < problem.count(); ++r)
    for (int j = problem.rows[r].begin; j < problem.rows[r].end; ++j)
      w[r] += A[problem.rows[r].A + j - problem.rows[r].begin] * x[j];
  return w;
}

// Which state a row has ended in.
struct Ends {
  int open = 0, pressed = 0, free = 0, bound = 0;
};

void a_converged_result_is_complementary() {
  const Problem problem = contacts_and_dry_friction(1000);
  Random random(100);
  Ends ends;
  for (int trial = 0; trial < 40; ++trial) {
    const Doubles in = problem.inputs(random), x = value(problem, in, problem.count()),
                  w = residual(problem, in, x);
    const Doubles bounds = problem.bounds(in.data());
    for (int r = 0; r < problem.count(); ++r) {
      if (problem.rows[r].kind == normal) {
        // 0 <= x, 0 <= w, one of them zero
        CHECK(x[r] >= 0 && w[r] >= -converged);
        CHECK_CLOSE(x[r] * w[r], 0.0, converged);
        ++(x[r] > 0 ? ends.pressed : ends.open);
        continue;
      }
      // |x| <= bound; w = 0 inside, pushing outwards on the bound
      const double bound =
          problem.rows[r].kind == friction ? bounds[r] * x[problem.rows[r].normal] : bounds[r];
      CHECK(std::fabs(x[r]) <= bound + converged);
      if (std::fabs(x[r]) < bound - 1e-9) {
        CHECK_CLOSE(w[r], 0.0, converged);
        ++ends.free;
      } else {
        CHECK(bound == 0 || w[r] * x[r] <= converged);
        ends.bound += bound > 0;
      }
    }
  }
  CHECK(ends.open > 20 && ends.pressed > 20 && ends.free > 20 && ends.bound > 20);
}

void wide_bounds_solve_the_linear_system() {
  Problem problem{{}, 1000};
  problem.add_island({box, box, box, box});
  Random random(101);
  Doubles in = problem.inputs(random);
  for (int i : problem.bound_inputs()) in[i] = 1e6;
  Dense A(4, 4);
  A.entries = problem.matrix(in.data());
  const Doubles b(in.begin() + problem.triangle(), in.begin() + problem.triangle() + 4);
  CHECK_CLOSE(value(problem, in, 4), (-1.0 * solve_dense(A, column(b))).entries, converged);
}

void masked_rows_stay_at_zero() {
  const Problem problem = contacts_and_dry_friction(20);
  Random random(102);
  Doubles in = problem.inputs(random);
  for (int i : problem.bound_inputs()) in[i] = 0;
  CHECK_CLOSE(value(problem, in, problem.count()), Doubles(problem.count(), 0.0), 0.0);
}

// Other numbers in one island leave every bit of the others as it is.
void islands_do_not_influence_each_other() {
  const Problem problem = contacts_and_dry_friction(7);
  const ProblemAdjoint adjoint{problem};
  Random random(103);
  const Doubles in = problem.inputs(random), out_bar = random.normals(problem.count());
  Doubles other = in;
  for (int i = 0; i < 45; ++i) other[i] += i == 0 ? 1.0 : 0.01;  // A of the first nine rows
  for (int r = 0; r < 9; ++r) other[problem.triangle() + r] += 0.3;
  const Doubles x = value(problem, in, problem.count()), y = value(problem, other, problem.count());
  Doubles in_bar(in.size(), 0.0), other_bar(in.size(), 0.0);
  adjoint(in.data(), out_bar.data(), in_bar.data());
  adjoint(other.data(), out_bar.data(), other_bar.data());
  CHECK(!std::equal(x.begin(), x.begin() + 9, y.begin()));
  for (int r = 9; r < problem.count(); ++r) {
    CHECK(same(x[r], y[r]));
    CHECK(same(in_bar[problem.triangle() + r], other_bar[problem.triangle() + r]));
  }
  for (int i = 45; i < problem.triangle(); ++i) CHECK(same(in_bar[i], other_bar[i]));
}

void adjoint_and_lanes() {
  Random random(104);
  for (int iterations : {1, 2, 5, 30}) {
    const Problem problem = contacts_and_dry_friction(iterations);
    const ProblemAdjoint adjoint{problem};
    for (int trial = 0; trial < 10; ++trial) {
      check_adjoint("solver", random, problem.inputs(random), problem.count(), problem, adjoint, smooth,
                    problem.blocks());
    }
    std::vector<Doubles> environments;
    for (int lane = 0; lane < 8; ++lane) environments.push_back(problem.inputs(random));
    // a masked contact next to active ones
    environments[3].back() = 0.0;
    check_lanes("solver", environments, problem.count(), problem);
    check_adjoint_lanes("solver", random, environments, problem.count(), adjoint);
  }
}

void takes_nothing_from_the_heap() {
  const Problem shape = contacts_and_dry_friction(10);
  Random random(105);
  const int n = shape.count();
  const Doubles in = shape.inputs(random), A = shape.matrix(in.data()), bound = shape.bounds(in.data());
  Doubles x(n), w(n), inverse(n), tape(10 * n), x_bar(n, 1.0), b_bar(n, 0.0), A_bar(A.size(), 0.0),
      bound_bar(n, 0.0);
  const SolverProblem<double> problem = {n,           10, shape.rows.data(), A.data(), &in[shape.triangle()],
                                         bound.data()};
  check_no_allocation("solver", [&] {
    projected_gauss_seidel(problem, x.data(), w.data(), inverse.data(), tape.data());
    projected_gauss_seidel_adjoint(problem, inverse.data(), tape.data(), x.data(), x_bar.data(), b_bar.data(),
                                   A_bar.data(), bound_bar.data());
  });
}

}  // namespace

int main() {
  return run({{"complementarity", a_converged_result_is_complementary},
              {"linear system", wide_bounds_solve_the_linear_system},
              {"masked rows", masked_rows_stay_at_zero},
              {"islands", islands_do_not_influence_each_other},
              {"adjoint and lanes", adjoint_and_lanes},
              {"allocation", takes_nothing_from_the_heap}});
}
