// Articulated-body inertia: solves against a dense mass matrix, the sum of J' I J over the bodies; factors'
// adjoint.
#include "allocation.hpp"
#include "models.hpp"
#include "packing.hpp"
#include "reference.hpp"

using namespace revolute;
using namespace revolute::check;

namespace {

void solves_with_the_mass_matrix() {
  const MujocoArrays arrays = two_trees();
  const ModelStorage storage(arrays);
  const Model& model = storage.model();
  Random random(60);
  for (int trial = 0; trial < 10; ++trial) {
    const Doubles qpos = random_qpos(storage, arrays, random, 1.0), qvel(model.nv, 0.0),
                  b = random.normals(model.nv);
    Owned<Parameters<double>> parameters(model);
    Owned<Kinematics<double>> kin(model);
    Owned<Factors<double>> factors(model);
    Owned<SolveScratch<double>> scratch(model);
    load_defaults(storage, *parameters);
    kinematics(model, *parameters, qpos.data(), qvel.data(), *kin);
    const Doubles diagonal = mass_diagonal(arrays);
    articulated_inertia(model, diagonal.data(), *kin, *factors);
    Doubles x(model.nv), in_place = b;
    solve(model, *kin, *factors, b.data(), x.data(), *scratch);
    const Dense M = mass_matrix(arrays, reference_pose(arrays, qpos));
    CHECK_CLOSE((M * column(x)).entries, b, solved);
    CHECK_CLOSE(x, solve_dense(M, column(b)).entries, solved);
    solve(model, *kin, *factors, in_place.data(), in_place.data(), *scratch);
    CHECK_CLOSE(in_place, x, 0.0);
  }
}

// A body alone: 1/D along x is 1/m.
void a_free_body_is_its_own_inertia() {
  ModelMaker m;
  const int body = m.add_body(0, {0, 0, 0}, {0, 0, 0}, 2.0);
  m.add_joint(JointType::free, {0, 0, 0}, {0, 0, 1});
  m.centre_mass(body, {0.1, 0.2, 0.3});
  std::fill(m.arrays.body_iquat.begin(), m.arrays.body_iquat.end(), 0.0);
  m.arrays.body_iquat[0] = m.arrays.body_iquat[4] = 1.0;
  const ModelStorage storage(m.arrays);
  const Model& model = storage.model();
  Owned<Parameters<double>> parameters(model);
  Owned<Kinematics<double>> kin(model);
  Owned<Factors<double>> factors(model);
  Owned<SolveScratch<double>> scratch(model);
  load_defaults(storage, *parameters);
  const Doubles still(6, 0.0), b = {2, 4, 6, 0.1, 0.4, 0.9};
  Doubles x(6);
  kinematics(model, *parameters, m.arrays.qpos0.data(), still.data(), *kin);
  articulated_inertia(model, still.data(), *kin, *factors);
  solve(model, *kin, *factors, b.data(), x.data(), *scratch);
  CHECK_CLOSE(x, Doubles({1, 2, 3, 1, 2, 3}), rounding);
}

// in: axes, link inertias, diagonal. out: U and D.
struct Stage {
  const ModelStorage& storage;

  const Model& model() const { return storage.model(); }
  int n_out() const { return 7 * model().nv; }
  std::vector<Block> blocks() const {
    const int nv = model().nv;
    return {{"S", 0, 6 * nv}, {"I", 6 * nv, 10 * nv}, {"diagonal", 16 * nv, nv}};
  }
  // the axes and inertias of a state
  Doubles inputs(const MujocoArrays& arrays, const Doubles& qpos) const {
    const int nv = model().nv;
    Owned<Parameters<double>> parameters(model());
    Owned<Kinematics<double>> kin(model());
    const Doubles still(nv, 0.0);
    load_defaults(storage, *parameters);
    kinematics(model(), *parameters, qpos.data(), still.data(), *kin);
    Doubles in(17 * nv, 0.0);
    Writer<double> to{in.data()};
    for (int k = 0; k < nv; ++k) to.add(kin->S[k]);
    for (int k = 0; k < nv; ++k) to.add(model().dofs[k].has_inertia ? kin->I[k] : zero_inertia<double>());
    for (double entry : mass_diagonal(arrays)) to.add(entry);
    return in;
  }
  template <class Real>
  void run(const Real* in, Kinematics<Real>& kin, Factors<Real>& factors) const {
    const int nv = model().nv;
    Reader<Real> from{in};
    for (int k = 0; k < nv; ++k) kin.S[k] = from.motion();
    for (int k = 0; k < nv; ++k) kin.I[k] = from.inertia();
    articulated_inertia(model(), from.next, kin, factors);
  }
  template <class Real>
  void operator()(const Real* in, Real* out) const {
    Owned<Kinematics<Real>> kin(model());
    Owned<Factors<Real>> factors(model());
    run(in, *kin, *factors);
    Writer<Real> to{out};
    for (int k = 0; k < model().nv; ++k) {
      to.add(factors->U[k]);
      to.add(Real(1) / factors->D_inverse[k]);
    }
  }
};
struct StageAdjoint {
  const Stage& of;
  template <class Real>
  void operator()(const Real* in, const Real* out_bar, Real* in_bar) const {
    const Model& model = of.model();
    Owned<Kinematics<Real>> kin(model);
    Owned<Factors<Real>> factors(model);
    Owned<KinematicsCotangent<Real>> kin_bar(model);
    Owned<FactorsCotangent<Real>> bar(model);
    of.run(in, *kin, *factors);
    kin_bar->clear(model);
    bar->clear(model);
    Reader<Real> from{out_bar};
    for (int k = 0; k < model.nv; ++k) {
      bar->U[k] += from.motion();
      bar->D[k] += from.scalar();
    }
    articulated_inertia_adjoint(model, *kin, *factors, *bar, *kin_bar, in_bar + 16 * model.nv);
    Writer<Real> to{in_bar};
    for (int k = 0; k < model.nv; ++k) to.add(kin_bar->S[k]);
    for (int k = 0; k < model.nv; ++k) to.add_cotangent(kin_bar->I[k]);
  }
};

void adjoint_and_lanes() {
  const MujocoArrays arrays = two_trees();
  const ModelStorage storage(arrays);
  const Stage stage{storage};
  const StageAdjoint adjoint{stage};
  Random random(61);
  for (int trial = 0; trial < 3; ++trial) {
    const Doubles in = stage.inputs(arrays, random_qpos(storage, arrays, random, 1.0));
    check_adjoint("articulated_inertia", random, in, stage.n_out(), stage, adjoint, smooth, stage.blocks());
    std::vector<Doubles> environments;
    for (int lane = 0; lane < 8; ++lane)
      environments.push_back(stage.inputs(arrays, random_qpos(storage, arrays, random, 1.0)));
    check_lanes("articulated_inertia", environments, stage.n_out(), stage);
    check_adjoint_lanes("articulated_inertia", random, environments, stage.n_out(), adjoint);
  }
}

void takes_nothing_from_the_heap() {
  const MujocoArrays arrays = two_trees();
  const ModelStorage storage(arrays);
  const Model& model = storage.model();
  const Stage stage{storage};
  const Doubles in = stage.inputs(arrays, arrays.qpos0);
  Owned<Kinematics<double>> kin(model);
  Owned<Factors<double>> factors(model);
  Owned<SolveScratch<double>> scratch(model);
  Owned<KinematicsCotangent<double>> kin_bar(model);
  Owned<FactorsCotangent<double>> bar(model);
  kin_bar->clear(model);
  Doubles x(model.nv, 1.0), diagonal_bar(model.nv, 0.0);
  check_no_allocation("articulated_inertia", [&] {
    stage.run(in.data(), *kin, *factors);
    solve(model, *kin, *factors, x.data(), x.data(), *scratch);
    bar->clear(model);
    articulated_inertia_adjoint(model, *kin, *factors, *bar, *kin_bar, diagonal_bar.data());
  });
}

}  // namespace

int main() {
  return run({{"solves", solves_with_the_mass_matrix},
              {"a free body", a_free_body_is_its_own_inertia},
              {"adjoint and lanes", adjoint_and_lanes},
              {"allocation", takes_nothing_from_the_heap}});
}
