// Projected Gauss-Seidel: complementarity when converged, islands, and the adjoint of the unconverged result.
#include <algorithm>
#include <cstring>

#include "allocation.hpp"
#include "dense.hpp"
#include "models.hpp"
#include "revolute/scalar/dual.hpp"
#include "revolute/solvers/projected_gauss_seidel_adjoint.hpp"

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
  int rows_of(RowKind kind) const {
    return int(
        std::count_if(rows.begin(), rows.end(), [kind](const SolverRow& row) { return row.kind == kind; }));
  }
  // Friction rows of r's contact.
  int block_size(int r) const {
    return int(std::count_if(rows.begin(), rows.end(), [&](const SolverRow& row) {
      return row.kind == RowKind::friction && row.normal == rows[r].normal;
    }));
  }
  // Rows of a sliding pair share the bound of the first.
  bool shares_bound(int r) const {
    return rows[r].kind == RowKind::friction && block_size(r) == 2 && rows[r - 1].kind == RowKind::friction;
  }
  int bounds_count() const {
    int count = rows_of(RowKind::box);
    for (int r = 0; r < int(rows.size()); ++r) count += rows[r].kind == RowKind::friction && !shares_bound(r);
    return count;
  }
  int n_in() const { return triangle() + count() + bounds_count() + rows_of(RowKind::unilateral); }
  void add_island(const std::vector<RowKind>& kinds) {
    const int begin = count(), end = begin + int(kinds.size());
    int normal = -1;
    for (RowKind kind : kinds) {
      if (kind == RowKind::unilateral) normal = count();
      rows.push_back({kind, kind == RowKind::friction ? normal : -1, begin, end, A_size, nullptr, 0});
      A_size += end - begin;
    }
  }
  // the masks of normals are no numbers to differentiate by
  std::vector<Block> blocks() const {
    return {
        {"A", 0, triangle()}, {"b", triangle(), count()}, {"bound", triangle() + count(), bounds_count()}};
  }
  // where each row's bound or mask is among the inputs; -1: it has none
  std::vector<int> bound_inputs() const {
    std::vector<int> out;
    int bound = triangle() + count(), mask = bound + bounds_count();
    for (int r = 0; r < count(); ++r) {
      const RowKind kind = rows[r].kind;
      if (shares_bound(r))
        out.push_back(out.back());
      else
        out.push_back(kind == RowKind::bilateral ? -1 : kind == RowKind::unilateral ? mask++ : bound++);
    }
    return out;
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
    for (int i : bound_inputs()) out.push_back(i < 0 ? Real(0) : in[i]);
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
    for (int i = 0; i < bounds_count(); ++i) in.push_back(random.uniform(0.1, 0.4));
    in.resize(n_in(), 1.0);
    return in;
  }

  // A problem with its arrays.
  template <class Real>
  struct Loaded {
    std::vector<Real> A, bound, storage;
    std::vector<int> numbers;
    SolverProblem<Real> problem;
    SolverWorkspace<Real> workspace;
  };
  template <class Real>
  Loaded<Real> load(const Real* in) const {
    const std::size_t n = count(), tape = n * (iterations + 1);
    Loaded<Real> out{
        matrix(in), bounds(in), std::vector<Real>(8 * n + A_size + 2 * tape), std::vector<int>(2 * n),
        {},         {}};
    Real* const next = out.storage.data();
    Real* const after = next + 8 * n + A_size;
    int* const numbers = out.numbers.data();
    out.workspace = {next,  next + n,     next + 2 * n, next + 3 * n, next + 8 * n,
                     after, after + tape, numbers,      numbers + n};
    out.problem = {int(n), iterations, rows.data(), out.A.data(), in + triangle(), out.bound.data()};
    return out;
  }
  template <class Real>
  void operator()(const Real* in, Real* out) const {
    Loaded<Real> at = load(in);
    projected_gauss_seidel(at.problem, at.workspace, false);
    for (int r = 0; r < count(); ++r) out[r] += at.workspace.x[r];
  }
};
struct ProblemAdjoint {
  const Problem& of;
  template <class Real>
  void operator()(const Real* in, const Real* out_bar, Real* in_bar) const {
    const int n = of.count();
    Problem::Loaded<Real> at = of.load(in);
    projected_gauss_seidel(at.problem, at.workspace, true);
    std::vector<Real> steps(n * (of.iterations + 1));
    std::vector<Real> x_bar(out_bar, out_bar + n), A_bar(of.A_size, Real(0)), bound_bar(n, Real(0));
    std::vector<Real> start(n);
    SolverAdjointWorkspace<Real> workspace = {steps.data(), start.data()};
    SolverCotangent<Real> bar = {x_bar.data(), in_bar + of.triangle(), A_bar.data(), bound_bar.data()};
    projected_gauss_seidel_adjoint(at.problem, at.workspace, workspace, bar);
    const std::vector<int> places = of.bound_inputs();
    for (int r = 0; r < n; ++r)
      if (places[r] >= 0) in_bar[places[r]] += bound_bar[r];
    // an entry of the triangle stands for two of A
    for (int r = 0; r < n; ++r)
      for (int j = of.rows[r].begin; j <= r; ++j) {
        *in_bar += A_bar[of.rows[r].A + j - of.rows[r].begin];
        if (j < r) *in_bar += A_bar[of.rows[j].A + r - of.rows[j].begin];
        ++in_bar;
      }
  }
};

constexpr RowKind normal = RowKind::unilateral, friction = RowKind::friction, box = RowKind::box,
                  equal = RowKind::bilateral;
// Every kind of row, in an island that is solved in registers, a single row, and one that is too large for
// registers.
Problem mixed_problem(int iterations) {
  Problem problem{{}, iterations};
  problem.add_island({box, box, normal, normal, friction, friction, normal, friction, friction});
  problem.add_island({normal});
  problem.add_island({equal, equal, box, normal, normal, friction, friction, friction, normal, friction,
                      friction, box, normal, friction});
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

// Coulomb's law of the contact whose friction rows begin at r: within the ellipse and without slip, or on it and against the slip,
// both with rows in units of their coefficients.
void check_friction(const Problem& problem, const Doubles& bounds, const Doubles& x, const Doubles& w, int r,
                    Ends& ends) {
  const int size = problem.block_size(r);
  const double normal_impulse = x[problem.rows[r].normal];
  double square = 0, slip_square = 0, power = 0;
  for (int i = r; i < r + size; ++i) {
    const double part = normal_impulse > 0 ? x[i] / (bounds[i] * normal_impulse) : x[i],
                 slip = bounds[i] * w[i];
    square += part * part;
    slip_square += slip * slip;
    power += part * slip;
  }
  const double slip = std::sqrt(slip_square);
  if (normal_impulse == 0) {
    CHECK(square == 0);
  } else if (square < 1 - 1e-9) {
    CHECK_CLOSE(slip, 0.0, 1e-9);
    ++ends.free;
  } else {
    CHECK_CLOSE(square, 1.0, converged);
    CHECK_CLOSE(power, -slip, 1e-9);
    ++ends.bound;
  }
}

void a_converged_result_is_complementary() {
  const Problem problem = mixed_problem(3000);
  Random random(100);
  Ends ends;
  for (int trial = 0; trial < 40; ++trial) {
    const Doubles in = problem.inputs(random), x = value(problem, in, problem.count()),
                  w = residual(problem, in, x);
    const Doubles bounds = problem.bounds(in.data());
    for (int r = 0; r < problem.count(); ++r) {
      if (problem.rows[r].kind == equal) {
        CHECK_CLOSE(w[r], 0.0, converged);
        continue;
      }
      if (problem.rows[r].kind == normal) {
        // 0 <= x, 0 <= w, one of them zero
        CHECK(x[r] >= 0 && w[r] >= -converged);
        CHECK_CLOSE(x[r] * w[r], 0.0, converged);
        ++(x[r] > 0 ? ends.pressed : ends.open);
        continue;
      }
      if (problem.rows[r].kind == friction) {
        if (problem.rows[r - 1].kind != friction) check_friction(problem, bounds, x, w, r, ends);
        continue;
      }
      // |x| <= bound; w = 0 inside, pushing outwards on the bound
      CHECK(std::fabs(x[r]) <= bounds[r] + converged);
      if (std::fabs(x[r]) < bounds[r] - 1e-9) {
        CHECK_CLOSE(w[r], 0.0, converged);
        ++ends.free;
      } else {
        CHECK(w[r] * x[r] <= converged);
        ++ends.bound;
      }
    }
  }
  CHECK(ends.open > 20 && ends.pressed > 20 && ends.free > 20 && ends.bound > 20);
}

void two_sided_rows_solve_the_linear_system() {
  Random random(101);
  for (RowKind kind : {box, equal}) {
    Problem problem{{}, 3000};
    problem.add_island({kind, kind, kind, kind});
    Doubles in = problem.inputs(random);
    for (int i : problem.bound_inputs())
      if (i >= 0) in[i] = 1e6;
    Dense A(4, 4);
    A.entries = problem.matrix(in.data());
    const Doubles b(in.begin() + problem.triangle(), in.begin() + problem.triangle() + 4);
    CHECK_CLOSE(value(problem, in, 4), (-1.0 * solve_dense(A, column(b))).entries, converged);
  }
}

// Contacts in an island that is solved in registers, against the same rows in an island that is too large for them.
void registers_change_nothing() {
  Random random(106);
  for (int rows = contact_rows; rows <= unrolled_rows; rows += contact_rows) {
    Problem small{{}, 6}, large{{}, 6};
    const int all = rows + unrolled_rows;
    const auto contacts = [](int count) {
      std::vector<RowKind> kinds(count, friction);
      for (int r = 0; r < count; r += contact_rows) kinds[r] = normal;
      return kinds;
    };
    small.add_island(contacts(rows));
    large.add_island(contacts(all));
    const Doubles in = small.inputs(random), out_bar = random.normals(rows);
    const auto part = [&](int begin, int size) {
      return Doubles(in.begin() + begin, in.begin() + begin + size);
    };
    // the other rows are moved by nothing but themselves
    Doubles wide = part(0, small.triangle()), wide_bar = out_bar;
    for (int r = rows; r < all; ++r) {
      wide.resize(wide.size() + r, 0.0);
      wide.push_back(1.0);
    }
    for (double b : part(small.triangle(), rows)) wide.push_back(b);
    wide.resize(wide.size() + all - rows, -1.0);
    for (double mu : part(small.triangle() + rows, small.bounds_count())) wide.push_back(mu);
    wide.resize(large.n_in(), 1.0);
    wide_bar.resize(all, 0.0);
    const Doubles x = value(small, in, rows), y = value(large, wide, all);
    Doubles in_bar(in.size(), 0.0), in_wide_bar(wide.size(), 0.0);
    ProblemAdjoint{small}(in.data(), out_bar.data(), in_bar.data());
    ProblemAdjoint{large}(wide.data(), wide_bar.data(), in_wide_bar.data());
    for (int r = 0; r < rows; ++r) {
      CHECK(same(x[r], y[r]));
      CHECK(same(in_bar[small.triangle() + r], in_wide_bar[large.triangle() + r]));
    }
    for (int i = 0; i < small.triangle(); ++i) CHECK(same(in_bar[i], in_wide_bar[i]));
  }
}

// Place in the tape, [iterations + 1, rows] for each island in turn, of the update of row r in a sweep; sweep 0 is the start.
template <class Real>
std::size_t tape_place(const SolverProblem<Real>& problem, int sweep, int r) {
  const SolverRow& row = problem.rows[r];
  return tape_offset(problem, row.begin) + std::size_t(sweep) * (row.end - row.begin) + r - row.begin;
}
// One island by equation (1) and nothing else; `solved` has the matrices.
template <class Real>
void sweep_all(const SolverProblem<Real>& problem, const SolverWorkspace<Real>& solved, int begin,
               Real* tape) {
  const int count = problem.rows[begin].end - begin;
  const Island<Real> island = island_at(problem, solved, begin, count);
  std::vector<Real> x(count), z(count);
  std::vector<Real> p(count), q(count);
  start_direction<0>(island, problem.b + begin, p.data(), q.data());
  for (int r = 0, size; r < count; r += size) {
    size = block_rows<0>(island.rows, count, r);
    for (int c = r; c < r + size; ++c) {
      x[c] = start_of_row(problem.b[begin + c], p[c], q[c]);
      Real sum(0);
      for (int d = 0; d < size; ++d)
        sum = multiply_add(island.inverse[c * most_friction_rows + d], problem.b[begin + r + d], sum);
      z[c] = -sum;
    }
  }
  for (int r = 0; r < count; ++r)
    if (island.rows[r].kind == normal)
      for (int j = 0; j < count; ++j) z[j] = multiply_add(island.scaled[r * count + j], -x[r], z[j]);
  std::copy(x.begin(), x.end(), tape);
  for (int sweep = 0; sweep < problem.iterations; ++sweep) {
    tape += count;
    Real pressing(0), e[most_friction_rows], sigma;
    for (int r = 0, size; r < count; r += size) {
      size = block_rows<0>(island.rows, count, r);
      if (island.rows[r].kind == friction)
        dispatch_block<ProjectBlock>(size, island.block(r), pressing, z.data() + r, tape + r, e, sigma);
      else
        tape[r] = project(island.rows[r].kind, island.bound[r], z[r], pressing);
      for (int c = r; c < r + size; ++c) {
        const Real back = x[c] - tape[c];
        x[c] = tape[c];
        for (int j = 0; j < count; ++j)
          if (j < r || j >= r + size) z[j] = multiply_add(island.scaled[c * count + j], back, z[j]);
      }
    }
  }
}
// The start and x_r of every update of all sweeps.
template <class Real>
std::vector<Real> all_sweeps(const SolverProblem<Real>& problem, const SolverWorkspace<Real>& solved) {
  std::vector<Real> tape(std::size_t(problem.count) * (problem.iterations + 1));
  for (int begin = 0; begin < problem.count; begin = problem.rows[begin].end)
    sweep_all(problem, solved, begin, tape.data() + tape_offset(problem, begin));
  return tape;
}
template <class Real>
void check_sweeps(const Problem& shape, const std::vector<Real>& in) {
  Problem::Loaded<Real> at = shape.load(in.data());
  projected_gauss_seidel(at.problem, at.workspace, true);
  const std::vector<Real> tape = all_sweeps(at.problem, at.workspace);
  for (int r = 0; r < shape.count(); ++r) {
    // the end of the tape stands for all later sweeps
    const int taped = at.workspace.taped[at.problem.rows[r].begin];
    for (int sweep = 0; sweep <= at.problem.iterations; ++sweep)
      CHECK(std::memcmp(&tape[tape_place(at.problem, sweep, r)],
                        at.workspace.tape + tape_place(at.problem, std::min(sweep, taped), r),
                        sizeof(Real)) == 0);
    const Real& last = tape[tape_place(at.problem, at.problem.iterations, r)];
    CHECK(std::memcmp(&last, at.workspace.x + r, sizeof(Real)) == 0);
  }
}

// Two contacts in registers, whose sweeps repeat themselves early, and every kind of row in memory.
Problem settling_problem() {
  Problem problem = mixed_problem(300);
  problem.add_island({normal, friction, friction, normal, friction, friction});
  return problem;
}

void sweeps_that_are_left_out_would_be_repetitions() {
  const Problem problem = settling_problem();
  Random random(107);
  std::vector<Doubles> environments;
  for (int lane = 0; lane < 8; ++lane) {
    environments.push_back(problem.inputs(random));
    Doubles& in = environments.back();
    // some right sides, bounds and masks are zero
    for (int i = problem.triangle() + lane; lane > 0 && i < problem.n_in(); i += lane + 1)
      in[i] = lane % 2 && i < problem.triangle() + problem.count() ? -0.0 : 0.0;
    check_sweeps(problem, in);
  }
  // a neighbour that never comes to rest
  environments[5][0] = 1e-9;
  std::vector<Lanes<8>> pack(problem.n_in());
  for (int lane = 0; lane < 8; ++lane)
    for (int i = 0; i < problem.n_in(); ++i) set_lane(pack[i], lane, environments[lane][i]);
  check_sweeps(problem, pack);
  check_lanes("solver", environments, problem.count(), problem);
  check_adjoint_lanes("solver", random, environments, problem.count(), ProblemAdjoint{problem});
}

// Nothing moves, but the first sweep leaves x = -0 in the first row, the second +0.
void a_zero_may_change_its_sign_after_a_quiet_sweep() {
  Problem problem{{}, 6};
  problem.add_island({box, box});
  const Doubles in = {1, 0, 1, 0, 0, 0.5, 0.5};
  check_sweeps(problem, in);
  Problem::Loaded<double> at = problem.load(in.data());
  projected_gauss_seidel(at.problem, at.workspace, true);
  CHECK(std::signbit(at.workspace.tape[2]) && !std::signbit(at.workspace.tape[4]));
}

// The impulses are there after the first sweep, friction exactly zero; its derivative by b still takes many sweeps.
void derivatives_come_to_rest_as_well() {
  Problem problem{{}, 60};
  problem.add_island({normal, friction, friction, normal, friction, friction});
  Doubles in = {1, 0, 1, 0, 0, 1, 0, 0, 0, 1, 0, 0.9, 0, 0, 1, 0, 0, 0.9, 0, 0, 1};
  for (double b : {-1, 0, 0, -1, 0, 0}) in.push_back(b);
  for (double bound : {0.5, 0.5, 1.0, 1.0}) in.push_back(bound);
  const Doubles out_bar = {0, 1, 0, 0, 0, 0};
  Doubles in_bar(in.size(), 0.0);
  ProblemAdjoint{problem}(in.data(), out_bar.data(), in_bar.data());
  std::vector<Dual<1>> dual(in.begin(), in.end()), out(6, Dual<1>(0));
  dual[problem.triangle() + 1].tangent[0] = 1.0;
  check_sweeps(problem, dual);
  problem(dual.data(), out.data());
  const double exact = -1.0 / (1.0 - 0.9 * 0.9);  // of the inverse of A
  CHECK_CLOSE(out[1].tangent[0], in_bar[problem.triangle() + 1], rounding);
  CHECK_CLOSE(out[1].tangent[0], exact, 1e-4);
}

// Two equal contacts share a load that either could carry, whatever the order: the one before the other takes no more.
void equal_contacts_get_equal_parts() {
  Problem problem{{}, 50};
  problem.add_island({normal, friction, friction, normal, friction, friction});
  Doubles in = {1, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1};
  for (double b : {-1.0, 0.2, 0.1, -1.0, 0.2, 0.1}) in.push_back(b);
  for (double bound : {0.5, 0.5, 1.0, 1.0}) in.push_back(bound);
  const Doubles x = value(problem, in, 6);
  for (int r = 0; r < contact_rows; ++r) CHECK_CLOSE(x[r], x[r + contact_rows], rounding);
  CHECK_CLOSE(x[0], 0.5, rounding);
}

// The impulse of one sliding contact, by its definition: no other impulse on the circle leaves less energy.
void sliding_friction_is_the_best_on_its_circle() {
  Random random(108);
  Problem problem{{}, 1};
  problem.add_island({normal, friction, friction});
  for (double anisotropy : {1.0, 0.3, 1e-3, 1e-12}) {
    // no coupling to the normal; friction's A turned against the axes
    const double turn = random.uniform(0, 3), c = std::cos(turn), s = std::sin(turn);
    const double a = c * c + anisotropy * s * s, o = (1 - anisotropy) * c * s, b = s * s + anisotropy * c * c;
    const double push = random.uniform(0, 6);
    const Doubles pull = {-3 * std::cos(push), -3 * std::sin(push)};
    // what nothing moves is not pulled either
    const double along = c * pull[0] + s * pull[1],
                 across = anisotropy > 1e-9 ? c * pull[1] - s * pull[0] : 0;
    const double b1 = c * along - s * across, b2 = s * along + c * across;
    const Doubles in = {1, 0, a, 0, o, b, -1, b1, b2, 0.5, 1}, x = value(problem, in, 3);
    const auto energy = [&](double x1, double x2) {
      return 0.5 * (a * x1 * x1 + b * x2 * x2) + o * x1 * x2 + b1 * x1 + b2 * x2;
    };
    CHECK(std::hypot(x[1], x[2]) <= 0.5 + 1e-14);
    for (int i = 0; i < 1000; ++i) {
      const double angle = i * 2e-3 * std::acos(-1.0);
      CHECK(energy(x[1], x[2]) <= energy(0.5 * std::cos(angle), 0.5 * std::sin(angle)) + 1e-14);
    }
  }
}

// A_rr = 0: nothing moves the row, whatever its right side
void rows_without_mobility_stay_at_zero() {
  Problem problem{{}, 10};
  problem.add_island({equal, normal, box});
  const Doubles in = {0, 0, 2, 0, 0, 0, -1, -3, 1, 0.5, 1}, out_bar = {1, 1, 1};
  CHECK_CLOSE(value(problem, in, 3), Doubles({0, 1.5, 0}), rounding);
  Doubles in_bar(in.size(), 0.0);
  ProblemAdjoint{problem}(in.data(), out_bar.data(), in_bar.data());
  CHECK_FINITE(in_bar);
}

void masked_rows_stay_at_zero() {
  const Problem problem = mixed_problem(20);
  Random random(102);
  Doubles in = problem.inputs(random);
  for (int i : problem.bound_inputs())
    if (i >= 0) in[i] = 0;
  const Doubles x = value(problem, in, problem.count());
  for (int r = 0; r < problem.count(); ++r) CHECK(problem.rows[r].kind == equal || x[r] == 0.0);
}

// Other numbers in one island leave every bit of the others as it is.
void islands_do_not_influence_each_other() {
  const Problem problem = mixed_problem(7);
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
    const Problem problem = mixed_problem(iterations);
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
  const Problem shape = mixed_problem(10);
  Random random(105);
  const int n = shape.count();
  const Doubles in = shape.inputs(random);
  Problem::Loaded<double> at = shape.load(in.data());
  Doubles steps(11 * n), x_bar(n, 1.0), b_bar(n, 0.0), A_bar(shape.A_size, 0.0), bound_bar(n, 0.0);
  Doubles start(n);
  SolverAdjointWorkspace<double> workspace = {steps.data(), start.data()};
  SolverCotangent<double> bar = {x_bar.data(), b_bar.data(), A_bar.data(), bound_bar.data()};
  check_no_allocation("solver", [&] {
    projected_gauss_seidel(at.problem, at.workspace, true);
    projected_gauss_seidel_adjoint(at.problem, at.workspace, workspace, bar);
  });
}

}  // namespace

int main() {
  return run({{"complementarity", a_converged_result_is_complementary},
              {"linear system", two_sided_rows_solve_the_linear_system},
              {"registers and memory", registers_change_nothing},
              {"sweeps left out", sweeps_that_are_left_out_would_be_repetitions},
              {"sign of zero", a_zero_may_change_its_sign_after_a_quiet_sweep},
              {"derivatives at rest", derivatives_come_to_rest_as_well},
              {"rows without mobility", rows_without_mobility_stay_at_zero},
              {"masked rows", masked_rows_stay_at_zero},
              {"equal contacts", equal_contacts_get_equal_parts},
              {"sliding on the circle", sliding_friction_is_the_best_on_its_circle},
              {"islands", islands_do_not_influence_each_other},
              {"adjoint and lanes", adjoint_and_lanes},
              {"allocation", takes_nothing_from_the_heap}});
}
