// The sparse matrix of Newton's method and the mass matrix, against dense ones.
#include "dense.hpp"
#include "reference.hpp"
#include "steps.hpp"

using namespace revolute;
using namespace revolute::check;

namespace {

// J of all rows, and H = M + J' B J, dense.
struct DenseProblem {
  std::vector<Doubles> M, J, H;
};
DenseProblem dense_problem(const Model& m, const SoftStage<double>& at) {
  DenseProblem out;
  out.M.assign(m.nv, Doubles(m.nv, 0.0));
  for (int k = 0; k < m.nv; ++k) {
    const MatrixRow row = tree_row(m, k);
    for (int i = 0; i < row.count; ++i) out.M[k][row.dofs[i]] = out.M[row.dofs[i]][k] = at.M.row(m, k)[i];
  }
  out.H = out.M;
  for (int c = 0; c < at.constraints.count; ++c) {
    const SoftConstraint<double>& constraint = at.constraints.list[c];
    const int rows = constraint.cost.rows;
    std::vector<Doubles> J(rows, Doubles(m.nv, 0.0));
    for (int k = 0; k < m.nv; ++k) {
      Doubles unit(m.nv, 0.0), y(rows);
      unit[k] = 1;
      constraint_times(at.constraints, constraint, unit.data(), y.data());
      for (int r = 0; r < rows; ++r) J[r][k] = y[r];
    }
    const double* const B = at.newton.curvature + constraint.block;
    for (int i = 0; i < m.nv; ++i)
      for (int j = 0; j < m.nv; ++j)
        for (int r = 0; r < rows; ++r)
          for (int s = 0; s < rows; ++s) out.H[i][j] += J[r][i] * B[r * rows + s] * J[s][j];
    out.J.insert(out.J.end(), J.begin(), J.end());
  }
  return out;
}
Doubles times(const std::vector<Doubles>& A, const Doubles& x) {
  Doubles out;
  for (const Doubles& row : A) out.push_back(inner(row, x));
  return out;
}

void check_at(const MujocoArrays& arrays, const State& state, Random& random, bool coupled) {
  const ModelStorage storage(arrays);
  const Model& m = storage.model();
  Workspace<double> ws(m);
  next_state(storage, state, random.normals(m.nu), ws);
  SoftStage<double>& at = ws.step->soft.stage;
  const DenseProblem dense = dense_problem(m, at);
  CHECK(at.constraints.count > 0);
  bool static_shape = true;
  for (int k = 0; k < m.nv; ++k)
    static_shape = static_shape && at.newton.H.rows[k].dofs == tree_row(m, k).dofs;
  CHECK(static_shape != coupled);
  // H^-1 and M^-1
  const Doubles x = random.normals(m.nv);
  Doubles back = times(dense.H, x);
  solve(m, at.newton.H, back.data());
  CHECK_CLOSE(back, x, solved);
  back = times(dense.M, x);
  Doubles product(m.nv);
  multiply(m, at.M, x.data(), product.data());
  CHECK_CLOSE(product, back, rounding);
  solve(m, at.factors, back.data());
  CHECK_CLOSE(back, x, solved);
  // rows of J: the wrenches and the entries along the supports say the same
  std::vector<Motion<double>> V(m.nv);
  link_velocities(m, at.kinematics.S, x.data(), V.data());
  for (int r = 0; r < at.constraints.rows; ++r)
    CHECK_CLOSE(row_times(at.constraints.row_J[r], x.data(), V.data()), inner(dense.J[r], x), solved);
  // the gradient vanishes at the solution: M a + J' s' = f
  Doubles force = times(dense.M, Doubles(at.newton.a, at.newton.a + m.nv));
  for (int r = 0; r < at.constraints.rows; ++r)
    for (int k = 0; k < m.nv; ++k) force[k] += dense.J[r][k] * at.newton.slope[r];
  CHECK_CLOSE(force, Doubles(at.force, at.force + m.nv), solved);
}

void sparse_equals_dense() {
  Random random(251);
  for (Cone cone : {Cone::pyramidal, Cone::elliptic}) {
    MujocoArrays arrays = softened(crowd(), cone, Integrator::euler);
    check_at(arrays, crowd_state(ModelStorage(arrays), arrays, random), random, true);
    arrays = softened(linked_bodies(), cone, Integrator::euler);
    check_at(arrays, {random_qpos(ModelStorage(arrays), arrays, random, 0.1), random.normals(arrays.nv)},
             random, true);
    arrays = softened(limited_chain(), cone, Integrator::euler);
    check_at(arrays, {random_qpos(ModelStorage(arrays), arrays, random, 0.4), random.normals(arrays.nv)},
             random, false);
  }
}

}  // namespace

int main() { return run({{"sparse equals dense", sparse_equals_dense}}); }
