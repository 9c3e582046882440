// The sparse matrix of Newton's method and the mass matrix, against dense ones.
#include <algorithm>
#include <set>

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

// Spheres in a heap, each touching its neighbours: more trees than one order serves.
MujocoArrays heap_of_spheres() {
  ModelMaker m;
  m.arrays.margin = 0.02;
  std::vector<int> geoms = {m.add_geom(0, plane_geom, {0, 0, 1})};
  for (int i = 0; i < 36; ++i) {
    const int body =
        m.add_body(0, {0.19 * (i % 3), 0.19 * (i / 3 % 3), 0.09 + 0.19 * (i / 9)}, {0, 0, 0}, 1.0);
    m.add_joint(JointType::free, {0, 0, 0}, {0, 0, 1});
    geoms.push_back(m.add_geom(body, sphere_geom, {0.1, 0, 0}, {0.01, 0, 0.005}));
  }
  for (std::size_t i = 0; i < geoms.size(); ++i)
    for (std::size_t j = i + 1; j < geoms.size(); ++j) m.add_pair(geoms[i], geoms[j]);
  return m.arrays;
}

// The entries of the factors when trees are eliminated in this order: every tree is a chain of as many rows as it has degrees
// of freedom, in blocks with those that are its neighbours at its turn.
int filled_entries(const Model& m, const SoftStage<double>& at, const std::vector<int>& order) {
  std::vector<std::set<int>> neighbours(m.ntree);
  for (int c = 0; c < at.constraints.count; ++c) {
    const Support& support = at.constraints.list[c].support;
    const int a = m.dofs[support.dofs[0]].tree, b = m.dofs[support.dofs[support.count - 1]].tree;
    if (a != b) neighbours[a].insert(b), neighbours[b].insert(a);
  }
  int entries = 0;
  for (int tree : order) {
    const std::set<int> rest = neighbours[tree];
    entries += 6 * 7 / 2 + 36 * int(rest.size());
    for (int other : rest) {
      neighbours[other].insert(rest.begin(), rest.end());
      neighbours[other].erase(other);
      neighbours[other].erase(tree);
    }
  }
  return entries;
}

// A heap is eliminated in an order that fills in less than the file's.
void a_heap_fills_in_little() {
  Random random(257);
  const MujocoArrays arrays = softened(heap_of_spheres(), Cone::pyramidal, Integrator::euler);
  const State state = {random_qpos(ModelStorage(arrays), arrays, random, 0.002), random.normals(arrays.nv)};
  check_at(arrays, state, random, true);
  const ModelStorage storage(arrays);
  const Model& m = storage.model();
  CHECK(is_crowded(m));
  Workspace<double> ws(m);
  next_state(storage, state, {}, ws);
  const SoftStage<double>& at = ws.step->soft.stage;
  std::vector<int> order, of_file;
  for (int i = 0; i < m.nv; i += 6) order.push_back(m.dofs[at.newton.H.islands.dofs[i]].tree);
  for (int t = m.ntree - 1; t >= 0; --t) of_file.push_back(t);
  int entries = 0;
  for (int k = 0; k < m.nv; ++k) entries += at.newton.H.rows[k].count;
  CHECK(entries == filled_entries(m, at, order));
  CHECK(entries < 0.8 * filled_entries(m, at, of_file));
  std::sort(order.begin(), order.end());
  for (int t = 0; t < m.ntree; ++t) CHECK(order[t] == t);
}

}  // namespace

int main() {
  return run(
      {{"sparse equals dense", sparse_equals_dense}, {"a heap fills in little", a_heap_fills_in_little}});
}
