// The Delassus matrix and the velocity change against dense matrices, and the adjoint of its rows and
// factors.
#include "allocation.hpp"
#include "packing.hpp"
#include "reference.hpp"
#include "stages.hpp"

using namespace revolute;
using namespace revolute::check;

namespace {

// J row by row, from J applied to each degree of freedom's axis.
Dense dense_jacobian(Stages<double>& at) {
  const int nv = at.model().nv;
  Dense J(at.rows->count, nv);
  for (int k = 0; k < nv; ++k) {
    Doubles unit(nv, 0.0);
    std::vector<Motion<double>> V(nv);
    unit[k] = 1;
    link_velocities(at.model(), at.kinematics->S, unit.data(), V.data());
    for (int r = 0; r < at.rows->count; ++r) J(r, k) = row_times(at.rows->J[r], unit.data(), V.data());
  }
  return J;
}

struct Scene {
  MujocoArrays arrays;
  ModelStorage storage;
  State state;

  Scene(const MujocoArrays& arrays, Random& random) : arrays(arrays), storage(arrays) {
    state = {random_qpos(storage, arrays, random, 0.3), random.normals(arrays.nv)};
    if (arrays.ngeom > 0) state = crowd_state(storage, arrays, random);
  }
  Stages<double> stages() const { return stages_at(storage, state.qpos, state.qvel, state.qvel); }
};

void A_and_velocity_change_match_dense_matrices() {
  Random random(130);
  for (MujocoArrays arrays : {crowd(), linked_bodies(), limited_chain()}) {
    arrays.cfm = 1e-3;
    const Scene scene(arrays, random);
    Stages<double> at = scene.stages();
    Owned<Delassus<double>> delassus(at.model());
    revolute::delassus(at.model(), *at.kinematics, *at.factors, *at.rows, *delassus);
    const int n = at.rows->count;
    const Dense J = dense_jacobian(at),
                X = solve_dense(mass_matrix(arrays, reference_pose(arrays, scene.state.qpos)), transposed(J));
    const Dense A = J * X;
    Doubles got, wanted;
    for (int r = 0; r < n; ++r)
      for (int s = 0; s < n; ++s) {
        // no entries between islands, because they are zero
        const SolverRow& row = at.rows->solver[r];
        got.push_back(s < row.begin || s >= row.end ? 0.0 : delassus->A[row.A + s - row.begin]);
        wanted.push_back(A(r, s) + (r == s ? arrays.cfm : 0.0));
      }
    CHECK(n > 3);
    CHECK_CLOSE(got, wanted, solved);
    const Doubles lambda = random.normals(n);
    Doubles x(arrays.nv);
    velocity_change(at.model(), *at.kinematics, *at.factors, *at.rows, *delassus, lambda.data(), x.data(),
                    *at.scratch);
    CHECK_CLOSE(x, (X * column(lambda)).entries, solved);
  }
}

// --- adjoint -----------------------------------------------------------------------------------------------

// The rows of a scene, which stay the same; in: axes, link inertias, diagonal, J of every row. out: A.
struct Stage {
  const Scene& scene;
  int rows, A_size;

  static constexpr int per_row = 12 + row_dofs;
  explicit Stage(const Scene& scene) : scene(scene) {
    Stages<double> at = scene.stages();
    rows = at.rows->count;
    const SolverRow& last = at.rows->solver[rows - 1];
    A_size = int(last.A) + last.end - last.begin;
  }
  const Model& model() const { return scene.storage.model(); }
  std::vector<Block> blocks() const {
    const int nv = model().nv;
    return {
        {"S", 0, 6 * nv}, {"I", 6 * nv, 10 * nv}, {"diagonal", 16 * nv, nv}, {"J", 17 * nv, per_row * rows}};
  }
  Doubles inputs() const {
    const int nv = model().nv;
    Stages<double> at = scene.stages();
    Doubles in(17 * nv + per_row * rows, 0.0);
    Writer<double> to{in.data()};
    for (int k = 0; k < nv; ++k) to.add(at.kinematics->S[k]);
    for (int k = 0; k < nv; ++k)
      to.add(model().dofs[k].has_inertia ? at.kinematics->I[k] : zero_inertia<double>());
    for (double entry : at.diagonal) to.add(entry);
    for (int r = 0; r < rows; ++r) {
      const RowJacobian<double>& J = at.rows->J[r];
      to.add(J.force_a);
      to.add(J.force_b);
      for (int i = 0; i < row_dofs; ++i) to.add(i < J.dofs ? J.coefficient[i] : 0.0);
    }
    return in;
  }
  template <class Real>
  struct Done {
    Stages<Real> at;
    Owned<Delassus<Real>> delassus;
  };
  template <class Real>
  Done<Real> run(const Real* in) const {
    const auto reals = [](const Doubles& a) { return std::vector<Real>(a.begin(), a.end()); };
    Done<Real> done{Stages<Real>(scene.storage, reals(scene.state.qpos), reals(scene.state.qvel),
                                 reals(scene.state.qvel)),
                    Owned<Delassus<Real>>(model())};
    Stages<Real>& at = done.at;
    at.run();
    const int nv = model().nv;
    Reader<Real> from{in};
    for (int k = 0; k < nv; ++k) at.kinematics->S[k] = from.motion();
    for (int k = 0; k < nv; ++k) at.kinematics->I[k] = from.inertia();
    articulated_inertia(model(), from.next, *at.kinematics, *at.factors);
    from.next += nv;
    for (int r = 0; r < rows; ++r) {
      RowJacobian<Real>& J = at.rows->J[r];
      J.force_a = from.force();
      J.force_b = from.force();
      for (Real& coefficient : J.coefficient) coefficient = from.scalar();
    }
    delassus(model(), *at.kinematics, *at.factors, *at.rows, *done.delassus);
    return done;
  }
  template <class Real>
  void operator()(const Real* in, Real* out) const {
    Done<Real> done = run(in);
    for (int i = 0; i < A_size; ++i) out[i] += done.delassus->A[i];
  }
};
struct StageAdjoint {
  const Stage& of;
  template <class Real>
  void operator()(const Real* in, const Real* out_bar, Real* in_bar) const {
    const Model& m = of.model();
    Stage::Done<Real> done = of.run(in);
    Stages<Real>& at = done.at;
    Owned<DelassusCotangent<Real>> bar(m);
    Owned<ConstraintRowsCotangent<Real>> rows_bar(m);
    Owned<FactorsCotangent<Real>> factors_bar(m);
    Owned<KinematicsCotangent<Real>> kin_bar(m);
    bar->clear(*at.rows);
    rows_bar->clear(*at.rows, *at.contacts);
    factors_bar->clear(m);
    kin_bar->clear(m);
    for (int i = 0; i < of.A_size; ++i) bar->A[i] += out_bar[i];
    delassus_adjoint(m, *at.kinematics, *at.factors, *at.rows, *done.delassus, *bar, *rows_bar, *factors_bar,
                     *kin_bar);
    articulated_inertia_adjoint(m, *at.kinematics, *at.factors, *factors_bar, *kin_bar, in_bar + 16 * m.nv);
    Writer<Real> to{in_bar};
    for (int k = 0; k < m.nv; ++k) to.add(kin_bar->S[k]);
    for (int k = 0; k < m.nv; ++k) to.add_cotangent(kin_bar->I[k]);
    to.next += m.nv;
    for (int r = 0; r < of.rows; ++r) {
      to.add(rows_bar->J[r].force_a);
      to.add(rows_bar->J[r].force_b);
      for (const Real& coefficient : rows_bar->J[r].coefficient) to.add(coefficient);
    }
  }
};

void adjoint_and_lanes() {
  Random random(131);
  for (const MujocoArrays& arrays : {crowd(), linked_bodies(), limited_chain()}) {
    const Scene scene(arrays, random);
    const Stage stage(scene);
    const StageAdjoint adjoint{stage};
    const Doubles in = stage.inputs();
    check_adjoint("delassus", random, in, stage.A_size, stage, adjoint, smooth, stage.blocks());
    const std::vector<Doubles> environments = environments_around(random, in, 0.01);
    check_lanes("delassus", environments, stage.A_size, stage);
    check_adjoint_lanes("delassus", random, environments, stage.A_size, adjoint);
  }
}

void takes_nothing_from_the_heap() {
  Random random(132);
  const Scene scene(crowd(), random);
  Stages<double> at = scene.stages();
  const Model& m = at.model();
  Owned<Delassus<double>> delassus(m);
  Owned<DelassusCotangent<double>> bar(m);
  Owned<ConstraintRowsCotangent<double>> rows_bar(m);
  Owned<FactorsCotangent<double>> factors_bar(m);
  Owned<KinematicsCotangent<double>> kin_bar(m);
  rows_bar->clear(*at.rows, *at.contacts);
  factors_bar->clear(m);
  kin_bar->clear(m);
  Doubles x(m.nv);
  check_no_allocation("delassus", [&] {
    revolute::delassus(m, *at.kinematics, *at.factors, *at.rows, *delassus);
    velocity_change(m, *at.kinematics, *at.factors, *at.rows, *delassus, at.rows->b, x.data(), *at.scratch);
    bar->clear(*at.rows);
    delassus_adjoint(m, *at.kinematics, *at.factors, *at.rows, *delassus, *bar, *rows_bar, *factors_bar,
                     *kin_bar);
  });
}

}  // namespace

int main() {
  return run({{"A and the velocity change", A_and_velocity_change_match_dense_matrices},
              {"adjoint and lanes", adjoint_and_lanes},
              {"allocation", takes_nothing_from_the_heap}});
}
