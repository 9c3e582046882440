// The solver "exact": Coulomb's law at the solution, agreement with many sweeps, and the adjoint of the solution.
#include "dense.hpp"
#include "models.hpp"
#include "revolute/scalar/dual.hpp"
#include "revolute/solvers/exact.hpp"
#include "revolute/solvers/projected_gauss_seidel.hpp"

using namespace revolute;
using namespace revolute::check;

namespace {

// Contacts of a system with `dofs` degrees of freedom, and one row of dry friction: A = J J', b = J v.
struct Rows {
  std::vector<SolverRow> rows;
  Doubles A, b, bound, J;
  int dofs;

  int count() const { return int(rows.size()); }
  Rows(Random& random, int contacts, int friction_rows, int dofs) : dofs(dofs) {
    for (int c = 0; c < contacts; ++c) {
      const int normal = count();
      add(RowKind::unilateral, normal, 1.0);
      const double mu = random.uniform(0.2, 0.6);
      for (int f = 0; f < friction_rows; ++f)
        add(RowKind::friction, normal, friction_rows == 2 ? mu : random.uniform(0.2, 0.6));
    }
    add(RowKind::box, count(), 0.2);
    const int n = count();
    J = random.normals(n * dofs);
    const Doubles v = random.normals(dofs);
    A.assign(n * n, 0.0);
    b.assign(n, 0.0);
    for (int i = 0; i < n; ++i) {
      rows[i].end = n;
      rows[i].A = std::size_t(i) * n;
      for (int k = 0; k < dofs; ++k) {
        b[i] += J[i * dofs + k] * v[k];
        for (int j = 0; j < n; ++j) A[i * n + j] += J[i * dofs + k] * J[j * dofs + k];
      }
    }
  }
  void add(RowKind kind, int normal, double value) {
    rows.push_back({kind, normal, 0, 0, 0, nullptr, 0});
    bound.push_back(value);
  }
};

struct Memory {
  Arena measured, arena;
  ExactWorkspace workspace;

  static std::size_t bytes(int rows) {
    Arena measure;
    ExactWorkspace(true, rows, measure);
    return measure.used();
  }
  explicit Memory(int rows) : arena(bytes(rows)), workspace(true, rows, arena) {}
};

template <class Real>
std::vector<Real> solved(const Rows& of, const std::vector<Real>& A, const std::vector<Real>& b,
                         const std::vector<Real>& bound) {
  Memory memory(of.count());
  std::vector<Real> x(of.count());
  exact(SolverProblem<Real>{of.count(), 0, of.rows.data(), A.data(), b.data(), bound.data()},
        memory.workspace, x.data());
  return x;
}

// A w = v+ of the degrees of freedom: unique, also where impulses are not.
Doubles velocity(const Rows& of, const Doubles& x) {
  Doubles out(of.dofs, 0.0);
  for (int i = 0; i < of.count(); ++i)
    for (int k = 0; k < of.dofs; ++k) out[k] += of.J[i * of.dofs + k] * x[i];
  return out;
}

void the_solution_is_that_of_many_sweeps() {
  Random random(200);
  for (int contacts : {1, 3, 6})
    for (int friction_rows : {2, 3, 5}) {
      const Rows rows(random, contacts, friction_rows, 40);
      const Doubles x = solved(rows, rows.A, rows.b, rows.bound);
      const int n = rows.count(), iterations = 5000;
      Doubles storage(8 * n + n * n);
      double* const next = storage.data();
      int swept;
      SolverWorkspace<double> sweeps = {next,    next + n, next + 2 * n, next + 3 * n, next + 8 * n,
                                        nullptr, nullptr,  &swept,       nullptr};
      projected_gauss_seidel(SolverProblem<double>{n, iterations, rows.rows.data(), rows.A.data(),
                                                   rows.b.data(), rows.bound.data()},
                             sweeps, false);
      CHECK_CLOSE(x, Doubles(sweeps.x, sweeps.x + n), 1e-9);
    }
}

// Four rows for each degree of freedom: loads are shared in many ways.
void what_is_carried_twice_is_solved_as_well() {
  Random random(201);
  for (int trial = 0; trial < 10; ++trial) {
    Rows rows(random, 8, 2, 6);
    const Doubles x = solved(rows, rows.A, rows.b, rows.bound);
    const int n = rows.count();
    for (int r = 0; r < n; ++r) {
      double w = rows.b[r];
      for (int j = 0; j < n; ++j) w += rows.A[r * n + j] * x[j];
      if (rows.rows[r].kind != RowKind::unilateral) continue;
      CHECK(x[r] >= 0 && w > -1e-10);
      CHECK_CLOSE(x[r] * w, 0.0, 1e-10);
    }
  }
}

void adjoint_tangents_and_differences_agree() {
  Random random(202);
  for (int friction_rows : {2, 3, 5})
    for (int dofs : {40, 6}) {
      const Rows rows(random, 3, friction_rows, dofs);
      const int n = rows.count();
      const Doubles x = solved(rows, rows.A, rows.b, rows.bound);
      // a loss of the velocity, and changes that velocities have
      const Doubles loss = random.normals(dofs), push = random.normals(dofs);
      Doubles x_bar(n, 0.0), b_bar(n, 0.0), A_bar(n * n, 0.0), bound_bar(n, 0.0), db(n, 0.0), dbound(n, 0.0);
      for (int i = 0; i < n; ++i) {
        for (int k = 0; k < dofs; ++k) {
          x_bar[i] += rows.J[i * dofs + k] * loss[k];
          db[i] += rows.J[i * dofs + k] * push[k];
        }
        if (rows.rows[i].kind == RowKind::unilateral) continue;
        const bool shares =
            friction_rows == 2 && rows.rows[i].kind == RowKind::friction && i - rows.rows[i].normal == 2;
        dbound[i] = shares ? dbound[i - 1] : 0.1 * random.normal();
      }
      Memory memory(n);
      const SolverProblem<double> problem = {
          n, 0, rows.rows.data(), rows.A.data(), rows.b.data(), rows.bound.data()};
      SolverCotangent<double> bar = {x_bar.data(), b_bar.data(), A_bar.data(), bound_bar.data()};
      exact_adjoint(problem, memory.workspace, x.data(), bar);
      double backward = 0;
      for (int i = 0; i < n; ++i) backward += b_bar[i] * db[i] + bound_bar[i] * dbound[i];

      std::vector<Dual<1>> A(rows.A.begin(), rows.A.end()), b(rows.b.begin(), rows.b.end()),
          bound(rows.bound.begin(), rows.bound.end());
      for (int i = 0; i < n; ++i) b[i].tangent[0] = db[i], bound[i].tangent[0] = dbound[i];
      const std::vector<Dual<1>> tangents = solved(rows, A, b, bound);
      double forward = 0;
      for (int i = 0; i < n; ++i)
        for (int k = 0; k < dofs; ++k) forward += loss[k] * rows.J[i * dofs + k] * tangents[i].tangent[0];

      const auto along = [&](double by) {
        Doubles moved = rows.b, wider = rows.bound;
        for (int i = 0; i < n; ++i) moved[i] += by * db[i], wider[i] += by * dbound[i];
        const Doubles v = velocity(rows, solved(rows, rows.A, moved, wider));
        double sum = 0;
        for (int k = 0; k < dofs; ++k) sum += loss[k] * v[k];
        return sum;
      };
      CHECK_CLOSE(backward, forward, 1e-8);
      CHECK_CLOSE(backward, (along(1e-5) - along(-1e-5)) / 2e-5, 1e-6);
    }
}

// The corners of a box that slides and turns on the ground, moved and stretched by `by`, with torsional friction if there are
// three friction rows.
Rows face(int friction_rows, const Doubles& stretch, double by) {
  Random random(205);
  Rows rows(random, 4, friction_rows, 6);
  const int n = rows.count();
  const double half[] = {0.2, 0.13, 0.1}, inverse_mass = 0.5, inverse_inertia[] = {60, 40, 30};
  const double v[] = {0.8, -0.5, -0.02, 0, 0, 3};
  Doubles J(n * 6, 0.0);
  for (int c = 0; c < 4; ++c) {
    const double x = c & 1 ? half[0] : -half[0], y = c & 2 ? half[1] : -half[1], z = -half[2];
    const double wrenches[4][6] = {
        {0, 0, 1, y, -x, 0}, {1, 0, 0, 0, z, -y}, {0, 1, 0, -z, 0, x}, {0, 0, 0, 0, 0, 1}};
    for (int i = 0; i <= friction_rows; ++i)
      std::copy(wrenches[i], wrenches[i] + 6, J.begin() + (c * (friction_rows + 1) + i) * 6);
  }
  for (int i = 0; i < n; ++i) {
    rows.b[i] = 0;
    if (rows.rows[i].kind == RowKind::friction) rows.bound[i] = i - rows.rows[i].normal == 3 ? 0.02 : 0.3;
    for (int k = 0; k < 6; ++k) {
      double moved = J[i * 6 + k];
      for (int l = 0; l < 6; ++l) moved += by * J[i * 6 + l] * stretch[l * 6 + k];
      rows.b[i] += moved * v[k];
      rows.J[i * 6 + k] = moved * std::sqrt(k < 3 ? inverse_mass : inverse_inertia[k - 3]);
    }
  }
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) {
      rows.A[i * n + j] = 0;
      for (int k = 0; k < 6; ++k) rows.A[i * n + j] += rows.J[i * 6 + k] * rows.J[j * 6 + k];
    }
  return rows;
}

// One corner more than it needs: the choice is a linear pressure, and the gradient is that of the choice.
void a_sliding_face_has_one_load() {
  Random random(206);
  for (int friction_rows : {2, 3}) {
    const Doubles stretch = random.normals(36);
    const Rows rows = face(friction_rows, stretch, 0);
    const int n = rows.count(), corner = friction_rows + 1;
    const Doubles x = solved(rows, rows.A, rows.b, rows.bound), loss = random.normals(n);
    for (int c = 0; c < 4; ++c) CHECK(x[c * corner] > 0);
    CHECK_CLOSE(x[0] + x[3 * corner], x[corner] + x[2 * corner], 1e-5 * x[0]);

    // along the stretch, of impulses themselves
    const Rows ahead = face(friction_rows, stretch, 1e-6), behind = face(friction_rows, stretch, -1e-6);
    const auto change = [&](const Doubles& to, const Doubles& from, int i) {
      return (to[i] - from[i]) / 2e-6;
    };
    Doubles x_bar = loss, b_bar(n, 0.0), A_bar(n * n, 0.0), bound_bar(n, 0.0);
    Memory memory(n);
    SolverCotangent<double> bar = {x_bar.data(), b_bar.data(), A_bar.data(), bound_bar.data()};
    exact_adjoint(
        SolverProblem<double>{n, 0, rows.rows.data(), rows.A.data(), rows.b.data(), rows.bound.data()},
        memory.workspace, x.data(), bar);
    std::vector<Dual<1>> A(rows.A.begin(), rows.A.end()), b(rows.b.begin(), rows.b.end()),
        bound(rows.bound.begin(), rows.bound.end());
    double backward = 0, forward = 0, differences = 0;
    for (int i = 0; i < n; ++i) backward += b_bar[i] * (b[i].tangent[0] = change(ahead.b, behind.b, i));
    for (int i = 0; i < n * n; ++i) backward += A_bar[i] * (A[i].tangent[0] = change(ahead.A, behind.A, i));
    const std::vector<Dual<1>> tangents = solved(rows, A, b, bound);
    const Doubles x_ahead = solved(ahead, ahead.A, ahead.b, ahead.bound),
                  x_behind = solved(behind, behind.A, behind.b, behind.bound);
    for (int i = 0; i < n; ++i) {
      forward += loss[i] * tangents[i].tangent[0];
      differences += loss[i] * change(x_ahead, x_behind, i);
    }
    CHECK_CLOSE(backward, forward, 1e-6 * std::fabs(forward));
    CHECK_CLOSE(backward, differences, 1e-4 * std::fabs(differences));
  }
}

// A pack's environments are solved as each alone, though a neighbour joins islands or lacks contacts.
void lanes_do_not_see_each_other() {
  Random random(203);
  const Rows rows(random, 4, 2, 12);
  const int n = rows.count();
  std::vector<Lanes<4>> A(n * n), b(n), bound(n);
  std::vector<Rows> alone;
  for (int lane = 0; lane < 4; ++lane) {
    alone.emplace_back(random, 4, 2, 12);
    if (lane == 1) alone[1].bound[3] = 0.0;  // a masked contact
    if (lane == 2)                           // two islands
      for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j)
          if ((i < 6) != (j < 6)) alone[2].A[i * n + j] = 0.0;
    for (int i = 0; i < n * n; ++i) set_lane(A[i], lane, alone[lane].A[i]);
    for (int i = 0; i < n; ++i)
      set_lane(b[i], lane, alone[lane].b[i]), set_lane(bound[i], lane, alone[lane].bound[i]);
  }
  const std::vector<Lanes<4>> x = solved(rows, A, b, bound);
  for (int lane = 0; lane < 4; ++lane) {
    const Doubles y = solved(rows, alone[lane].A, alone[lane].b, alone[lane].bound);
    for (int i = 0; i < n; ++i) CHECK(same(get_lane(x[i], lane), y[i]));
  }
}

// Of a row that nothing can move as well, whose derivatives are zero.
void what_the_memory_held_does_not_count() {
  Random random(204);
  Rows rows(random, 3, 2, 12);
  const int n = rows.count(), still = n - 1;
  for (int i = 0; i < n; ++i) rows.A[i * n + still] = rows.A[still * n + i] = 0;
  rows.b[still] = 0;
  const Doubles loss = random.normals(n);
  Doubles solutions[2], gradients[2];
  for (int side = 0; side < 2; ++side) {
    Memory memory(n);
    std::fill_n(memory.workspace.inverse, n * most_friction_rows, side == 0 ? 0.0 : 7.0);
    const SolverProblem<double> problem = {
        n, 0, rows.rows.data(), rows.A.data(), rows.b.data(), rows.bound.data()};
    Doubles x(n), x_bar = loss, b_bar(n, 0.0), A_bar(n * n, 0.0), bound_bar(n, 0.0);
    exact(problem, memory.workspace, x.data());
    SolverCotangent<double> bar = {x_bar.data(), b_bar.data(), A_bar.data(), bound_bar.data()};
    exact_adjoint(problem, memory.workspace, x.data(), bar);
    CHECK(b_bar[still] == 0);
    solutions[side] = x;
    gradients[side] = b_bar;
  }
  for (int i = 0; i < n; ++i) {
    CHECK(same(solutions[0][i], solutions[1][i]));
    CHECK(same(gradients[0][i], gradients[1][i]));
  }
}

}  // namespace

int main() {
  return run({{"many sweeps", the_solution_is_that_of_many_sweeps},
              {"shared loads", what_is_carried_twice_is_solved_as_well},
              {"adjoint", adjoint_tangents_and_differences_agree},
              {"sliding face", a_sliding_face_has_one_load},
              {"lanes", lanes_do_not_see_each_other},
              {"memory", what_the_memory_held_does_not_count}});
}
