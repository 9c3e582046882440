// Forces and torques on bodies: against Jacobians of the mass centres straight from MuJoCo's arrays; the adjoint.
#include "allocation.hpp"
#include "models.hpp"
#include "packing.hpp"
#include "reference.hpp"
#include "revolute/stages/applied_wrenches.hpp"

using namespace revolute;
using namespace revolute::check;

namespace {

// in: tangent of qpos, forces and torques of the bodies, their mass centres. out: generalized forces.
struct Stage {
  const ModelStorage& storage;
  Doubles qpos;

  int inputs() const { return storage.model().nv + 9 * storage.model().nbody; }

  template <class Real>
  struct At {
    Owned<Parameters<Real>> parameters;
    Owned<Kinematics<Real>> kinematics;
    std::vector<Real> wrenches;
    std::vector<Force<Real>> sums;

    explicit At(const Model& model)
        : parameters(model), kinematics(model), wrenches(6 * model.nbody), sums(model.nv) {}
  };

  template <class Real>
  void run(const Real* in, At<Real>& at, Real* tau) const {
    const Model& model = storage.model();
    load_defaults(storage, *at.parameters);
    std::copy_n(in + model.nv, 6 * model.nbody, at.wrenches.data());
    std::copy_n(in + model.nv + 6 * model.nbody, 3 * model.nbody, at.parameters->ipos);
    at.parameters->inputs[int(Input::xfrc_applied)] = at.wrenches.data();
    std::vector<Real> start(qpos.begin(), qpos.end()), moved(model.nq), still(model.nv, Real(0));
    displace(model, start.data(), in, moved.data());
    kinematics(model, *at.parameters, moved.data(), still.data(), *at.kinematics);
    std::fill_n(tau, model.nv, Real(0));
    add_applied_wrenches(model, *at.parameters, *at.kinematics, at.sums.data(), tau);
  }
  template <class Real>
  void operator()(const Real* in, Real* out) const {
    At<Real> at(storage.model());
    run(in, at, out);
  }
};

struct StageAdjoint {
  const Stage& of;

  template <class Real>
  void operator()(const Real* in, const Real* out_bar, Real* in_bar) const {
    const Model& model = of.storage.model();
    Stage::At<Real> at(model);
    std::vector<Real> tau(model.nv), bars(6 * model.nbody, Real(0));
    std::vector<Motion<Real>> T(model.nv);
    of.run(in, at, tau.data());
    Owned<Parameters<Real>> parameters_bar(model);
    Owned<KinematicsCotangent<Real>> kin_bar(model);
    parameters_bar->clear(model);
    parameters_bar->inputs[int(Input::xfrc_applied)] = bars.data();
    kin_bar->clear(model);
    applied_wrenches_adjoint(model, *at.parameters, *at.kinematics, at.sums.data(), out_bar, T.data(),
                             *kin_bar, *parameters_bar);
    kinematics_adjoint(model, *at.parameters, *at.kinematics, *kin_bar, in_bar, *parameters_bar);
    for (int i = 0; i < 6 * model.nbody; ++i) in_bar[model.nv + i] += bars[i];
    for (int i = 0; i < 3 * model.nbody; ++i)
      in_bar[model.nv + 6 * model.nbody + i] += parameters_bar->ipos[i];
  }
};

Doubles inputs_of(const MujocoArrays& arrays, Random& random) {
  Doubles in(arrays.nv, 0.0);
  const Doubles wrenches = random.normals(6 * arrays.nbody);
  in.insert(in.end(), wrenches.begin(), wrenches.end());
  in.insert(in.end(), arrays.body_ipos.begin(), arrays.body_ipos.end());
  return in;
}

void forces_act_at_the_mass_centres() {
  const MujocoArrays arrays = two_trees();
  const ModelStorage storage(arrays);
  Random random(70);
  for (int trial = 0; trial < 5; ++trial) {
    const Doubles qpos = random_qpos(storage, arrays, random, 1.0), in = inputs_of(arrays, random);
    Doubles tau(arrays.nv);
    Stage{storage, qpos}(in.data(), tau.data());
    const ReferencePose pose = reference_pose(arrays, qpos);
    Dense expected(arrays.nv, 1);
    for (int b = 1; b < arrays.nbody; ++b) {
      const double* const w = &in[arrays.nv + 6 * b];
      const Doubles torque_force = {w[3], w[4], w[5], w[0], w[1], w[2]};
      expected =
          expected + transposed(jacobian(pose, b, mass_centre(arrays, pose, b))) * column(torque_force);
    }
    CHECK_CLOSE(tau, expected.entries, rounding);
  }
}

void adjoint_and_lanes() {
  const MujocoArrays arrays = two_trees();
  const ModelStorage storage(arrays);
  Random random(71);
  const int nv = arrays.nv, nbody = arrays.nbody;
  for (int trial = 0; trial < 3; ++trial) {
    const Stage stage{storage, random_qpos(storage, arrays, random, 1.0)};
    const StageAdjoint adjoint{stage};
    const Doubles in = inputs_of(arrays, random);
    check_adjoint(
        "applied wrenches", random, in, nv, stage, adjoint, smooth,
        {{"qpos", 0, nv}, {"xfrc_applied", nv, 6 * nbody}, {"body_ipos", nv + 6 * nbody, 3 * nbody}});
    const std::vector<Doubles> environments = environments_around(random, in, 0.7);
    check_lanes("applied wrenches", environments, nv, stage);
    check_adjoint_lanes("applied wrenches", random, environments, nv, adjoint);
  }
}

void takes_nothing_from_the_heap() {
  const MujocoArrays arrays = two_trees();
  const ModelStorage storage(arrays);
  const Model& model = storage.model();
  Random random(72);
  const Stage stage{storage, random_qpos(storage, arrays, random, 1.0)};
  Stage::At<double> at(model);
  Doubles tau(model.nv), bars(6 * model.nbody);
  const Doubles in = inputs_of(arrays, random);
  stage.run(in.data(), at, tau.data());
  Owned<Parameters<double>> parameters_bar(model);
  Owned<KinematicsCotangent<double>> kin_bar(model);
  parameters_bar->clear(model);
  parameters_bar->inputs[int(Input::xfrc_applied)] = bars.data();
  kin_bar->clear(model);
  std::vector<Motion<double>> T(model.nv);
  check_no_allocation("applied wrenches", [&] {
    add_applied_wrenches(model, *at.parameters, *at.kinematics, at.sums.data(), tau.data());
    applied_wrenches_adjoint(model, *at.parameters, *at.kinematics, at.sums.data(), tau.data(), T.data(),
                             *kin_bar, *parameters_bar);
  });
}

}  // namespace

int main() {
  return run({{"forces act at the mass centres", forces_act_at_the_mass_centres},
              {"adjoint and lanes", adjoint_and_lanes},
              {"takes nothing from the heap", takes_nothing_from_the_heap}});
}
