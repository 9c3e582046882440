// Actuation: actuators with their ranges, springs, damping; values by MuJoCo's formula, and the adjoint.
#include "allocation.hpp"
#include "models.hpp"

using namespace revolute;
using namespace revolute::check;

namespace {

// in: tangent of qpos, qvel, ctrl, damping, stiffness, gear. out: tau.
struct Stage {
  const ModelStorage& storage;
  Doubles qpos;

  const Model& model() const { return storage.model(); }
  std::vector<Block> blocks() const {
    const int nv = model().nv, nu = model().nu, nj = model().njnt;
    return {{"qpos", 0, nv},
            {"qvel", nv, nv},
            {"ctrl", 2 * nv, nu},
            {"damping", 2 * nv + nu, nv},
            {"stiffness", 3 * nv + nu, nj},
            {"gear", 3 * nv + nu + nj, nu}};
  }
  int n_in() const { return blocks().back().begin + model().nu; }
  Doubles inputs(Random& random) const {
    Doubles in(model().nv, 0.0);
    const Doubles rest = random.normals(n_in() - model().nv);
    in.insert(in.end(), rest.begin(), rest.end());
    return in;
  }

  template <class Real>
  void load(const Real* in, Real* moved, Parameters<Real>& parameters) const {
    const int nv = model().nv, nu = model().nu, nj = model().njnt;
    std::vector<Real> start(qpos.begin(), qpos.end());
    displace(model(), start.data(), in, moved);
    std::copy_n(in + 2 * nv + nu, nv, parameters.damping);
    std::copy_n(in + 3 * nv + nu, nj, parameters.stiffness);
    std::copy_n(in + 3 * nv + nu + nj, nu, parameters.gear);
  }
  template <class Real>
  void operator()(const Real* in, Real* tau) const {
    Owned<Parameters<Real>> parameters(model());
    std::vector<Real> moved(model().nq);
    load(in, moved.data(), *parameters);
    actuation(model(), *parameters, moved.data(), in + model().nv, in + 2 * model().nv, tau);
  }
};
struct StageAdjoint {
  const Stage& of;
  template <class Real>
  void operator()(const Real* in, const Real* tau_bar, Real* in_bar) const {
    const Model& model = of.model();
    const int nv = model.nv, nu = model.nu, nj = model.njnt;
    Owned<Parameters<Real>> parameters(model), bar(model);
    std::vector<Real> moved(model.nq);
    of.load(in, moved.data(), *parameters);
    bar->clear(model);
    actuation_adjoint(model, *parameters, moved.data(), in + nv, in + 2 * nv, tau_bar, in_bar, in_bar + nv,
                      in_bar + 2 * nv, *bar);
    std::copy_n(bar->damping, nv, in_bar + 2 * nv + nu);
    std::copy_n(bar->stiffness, nj, in_bar + 3 * nv + nu);
    std::copy_n(bar->gear, nu, in_bar + 3 * nv + nu + nj);
  }
};

double clamped(double x, bool limited, const double* range) {
  return limited ? std::fmin(std::fmax(x, range[0]), range[1]) : x;
}

// tau = gear force - damping qvel - stiffness (qpos - rest); the ball's spring is checked in test_joints
void forces_follow_mujocos_formula() {
  const MujocoArrays a = two_trees();
  const ModelStorage storage(a);
  Random random(50);
  int cut = 0, free = 0;
  for (int trial = 0; trial < 20; ++trial) {
    const Stage stage{storage, random_qpos(storage, a, random, 1.0)};
    const Doubles in = stage.inputs(random);
    const double *qvel = &in[a.nv], *ctrl = qvel + a.nv, *damping = ctrl + a.nu, *stiffness = damping + a.nv,
                 *gear = stiffness + a.njnt;
    Doubles wanted(a.nv);
    for (int k = 0; k < a.nv; ++k) wanted[k] = -damping[k] * qvel[k];
    for (int j = 0; j < a.njnt; ++j) {
      const int q = a.jnt_qposadr[j];
      if (a.jnt_type[j] >= int(JointType::prismatic))
        wanted[a.jnt_dofadr[j]] -= stiffness[j] * (stage.qpos[q] - a.qpos_spring[q]);
    }
    for (int u = 0; u < a.nu; ++u) {
      const double used = clamped(ctrl[u], a.act_ctrllimited[u], &a.act_ctrlrange[2 * u]);
      const double length = gear[u] * stage.qpos[a.act_qpos[u]], velocity = gear[u] * qvel[a.act_dof[u]];
      const double force = a.act_gain[u] * used + a.act_bias[3 * u] + a.act_bias[3 * u + 1] * length +
                           a.act_bias[3 * u + 2] * velocity;
      const double applied = clamped(force, a.act_forcelimited[u], &a.act_forcerange[2 * u]);
      ++(used != ctrl[u] || applied != force ? cut : free);
      wanted[a.act_dof[u]] += gear[u] * applied;
    }
    Doubles tau = value(stage, in, a.nv);
    for (int j = 0; j < a.njnt; ++j)
      for (int i = 0; a.jnt_type[j] == int(JointType::ball) && i < 3; ++i)
        tau[a.jnt_dofadr[j] + i] = wanted[a.jnt_dofadr[j] + i];
    CHECK_CLOSE(tau, wanted, rounding);
  }
  CHECK(cut > 5 && free > 5);
}

void ranges_pass_nothing_back_beyond_and_all_on_the_bound() {
  ModelMaker m;
  m.add_body(0, {0, 0, 0}, {0, 0, 0}, 1.0);
  const int joint = m.add_joint(JointType::revolute, {0, 0, 0}, {0, 0, 1});
  m.limit_ctrl(m.add_actuator(joint, 1.0, 2.0, {0, 0, 0}), -1.0, 1.0);
  m.limit_force(m.add_actuator(joint, 1.0, 2.0, {0, 0, 0}), -3.0, 3.0);
  const ModelStorage storage(m.arrays);
  const Stage stage{storage, {0.0}};
  const StageAdjoint adjoint{stage};
  const auto slopes = [&](double ctrl_a, double ctrl_b) {
    const Doubles in = {0, 0, ctrl_a, ctrl_b, 0, 0, 1, 1}, tau_bar = {1};
    Doubles in_bar(in.size(), 0.0);
    adjoint(in.data(), tau_bar.data(), in_bar.data());
    return Doubles{in_bar[2], in_bar[3]};
  };
  CHECK_CLOSE(slopes(0.5, 0.5), Doubles({2, 2}), 0.0);
  CHECK_CLOSE(slopes(1.01, 1.51), Doubles({0, 0}), 0.0);
  CHECK_CLOSE(slopes(-1.01, -1.51), Doubles({0, 0}), 0.0);
  CHECK_CLOSE(slopes(1.0, 1.5), Doubles({2, 2}), 0.0);
  CHECK_CLOSE(slopes(-1.0, -1.5), Doubles({2, 2}), 0.0);
}

void adjoint_lanes_and_allocation() {
  const MujocoArrays arrays = two_trees();
  const ModelStorage storage(arrays);
  Random random(51);
  for (int trial = 0; trial < 4; ++trial) {
    const Stage stage{storage, random_qpos(storage, arrays, random, 0.7)};
    const StageAdjoint adjoint{stage};
    const Doubles in = stage.inputs(random);
    check_adjoint("actuation", random, in, arrays.nv, stage, adjoint, smooth, stage.blocks());
    const std::vector<Doubles> environments = environments_around(random, in, 1.0);
    check_lanes("actuation", environments, arrays.nv, stage);
    check_adjoint_lanes("actuation", random, environments, arrays.nv, adjoint);

    Owned<Parameters<double>> parameters(storage.model()), bar(storage.model());
    load_defaults(storage, *parameters);
    bar->clear(storage.model());
    Doubles tau(arrays.nv), in_bar(in.size(), 0.0);
    const double *qvel = &in[arrays.nv], *ctrl = qvel + arrays.nv;
    check_no_allocation("actuation", [&] {
      actuation(storage.model(), *parameters, stage.qpos.data(), qvel, ctrl, tau.data());
      actuation_adjoint(storage.model(), *parameters, stage.qpos.data(), qvel, ctrl, tau.data(), &in_bar[0],
                        &in_bar[0], &in_bar[0], *bar);
    });
  }
}

}  // namespace

int main() {
  return run({{"forces", forces_follow_mujocos_formula},
              {"ranges", ranges_pass_nothing_back_beyond_and_all_on_the_bound},
              {"adjoint, lanes, allocation", adjoint_lanes_and_allocation}});
}
