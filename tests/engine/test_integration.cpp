// Integration of a whole model: every joint at its own place, unit quaternions, and the adjoint.
#include "allocation.hpp"
#include "models.hpp"

using namespace revolute;
using namespace revolute::check;

namespace {

// in: tangent of qpos, next qvel. out: tangent of the next qpos at `next`.
struct Stage {
  const Model& model;
  double h;
  Doubles qpos, next;

  template <class Real>
  void operator()(const Real* in, Real* out) const {
    std::vector<Real> start(qpos.begin(), qpos.end()), moved(model.nq), reached(model.nq);
    displace(model, start.data(), in, moved.data());
    integration(model, Real(h), moved.data(), in + model.nv, reached.data());
    tangent_between(model, next, reached.data(), out);
  }
};
struct StageAdjoint {
  const Stage& of;
  template <class Real>
  void operator()(const Real* in, const Real* out_bar, Real* in_bar) const {
    integration_adjoint(of.model, Real(of.h), in + of.model.nv, out_bar, in_bar, in_bar + of.model.nv);
  }
};

void moves_by_the_exponential_map() {
  const MujocoArrays arrays = two_trees();
  const ModelStorage storage(arrays);
  Random random(40);
  const double h = 0.02;
  const Doubles qpos = random_qpos(storage, arrays, random, 1.0);
  Doubles qvel = random.normals(arrays.nv), next(arrays.nq), scaled = qvel;
  integration(storage.model(), h, qpos.data(), qvel.data(), next.data());
  for (double& v : scaled) v *= h;
  CHECK_CLOSE(next, displaced(storage.model(), qpos, scaled), rounding);
}

// Many steps in place do not let quaternions shrink or grow.
void quaternions_stay_of_unit_length() {
  const MujocoArrays arrays = two_trees();
  const ModelStorage storage(arrays);
  Random random(41);
  Doubles qpos = random_qpos(storage, arrays, random, 1.0);
  const Doubles qvel = random.normals(arrays.nv);
  for (int step = 0; step < 10000; ++step)
    integration(storage.model(), 0.01, qpos.data(), qvel.data(), qpos.data());
  for (int j = 0; j < arrays.njnt; ++j) {
    if (arrays.jnt_type[j] > int(JointType::ball)) continue;
    const double* q = &qpos[arrays.jnt_qposadr[j] + (arrays.jnt_type[j] == int(JointType::free) ? 3 : 0)];
    CHECK_CLOSE(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3], 1.0, rounding);
  }
}

void adjoint_lanes_and_allocation() {
  const MujocoArrays arrays = two_trees();
  const ModelStorage storage(arrays);
  const Model& model = storage.model();
  Random random(42);
  for (double h : {0.01, 0.7}) {
    Stage stage{model, h, random_qpos(storage, arrays, random, 1.0), Doubles(model.nq)};
    Doubles in(2 * model.nv, 0.0);
    for (int k = 0; k < model.nv; ++k) in[model.nv + k] = random.normal();
    integration(model, h, stage.qpos.data(), &in[model.nv], stage.next.data());
    const StageAdjoint adjoint{stage};
    check_adjoint("integration", random, in, model.nv, stage, adjoint, smooth,
                  {{"qpos", 0, model.nv}, {"qvel", model.nv, model.nv}});
    const std::vector<Doubles> environments = environments_around(random, in, 0.5);
    check_lanes("integration", environments, model.nv, stage);
    check_adjoint_lanes("integration", random, environments, model.nv, adjoint);

    Doubles next(model.nq), in_bar(2 * model.nv, 0.0);
    const Doubles out_bar = random.normals(model.nv);
    check_no_allocation("integration", [&] {
      integration(model, h, stage.qpos.data(), &in[model.nv], next.data());
      integration_adjoint(model, h, &in[model.nv], out_bar.data(), in_bar.data(), &in_bar[model.nv]);
    });
  }
}

}  // namespace

int main() {
  return run({{"exponential map", moves_by_the_exponential_map},
              {"unit quaternions", quaternions_stay_of_unit_length},
              {"adjoint, lanes, allocation", adjoint_lanes_and_allocation}});
}
