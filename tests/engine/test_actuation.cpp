// Actuation: actuators with their ranges, springs, damping; values by MuJoCo's formula, and the adjoint.
#include <algorithm>
#include <utility>

#include "allocation.hpp"
#include "models.hpp"

using namespace revolute;
using namespace revolute::check;

namespace {

// in: tangent of qpos, qvel, ctrl, damping, armature, stiffness, gear. out: tau, diagonal.
struct Stage {
  const ModelStorage& storage;
  Doubles qpos;

  const Model& model() const { return storage.model(); }
  std::vector<Block> blocks() const {
    const Model& m = model();
    std::vector<Block> out;
    int begin = 0;
    const std::pair<const char*, int> sizes[] = {
        {"qpos", m.nv},        {"qvel", m.nv}, {"ctrl", m.nu},     {"damping", m.nv},  {"armature", m.nv},
        {"stiffness", m.njnt}, {"gear", m.nu}, {"gain", 3 * m.nu}, {"bias", 3 * m.nu}, {"spring", m.nq}};
    for (const auto& [name, size] : sizes) {
      out.push_back({name, begin, size});
      begin += size;
    }
    return out;
  }
  Doubles inputs(Random& random) const {
    Doubles in(model().nv, 0.0);
    const int drawn = blocks()[6].begin + model().nu;
    const Doubles rest = random.normals(drawn - model().nv);
    in.insert(in.end(), rest.begin(), rest.end());
    for (Parameter p : {Parameter::actuator_gainprm, Parameter::actuator_biasprm, Parameter::qpos_spring}) {
      const Doubles& own = storage.parameters().defaults[int(p)];
      in.insert(in.end(), own.begin(), own.end());
    }
    return in;
  }

  // Parameters, moved qpos, and where qvel and ctrl are.
  template <class Real>
  struct Loaded {
    Owned<Parameters<Real>> parameters;
    std::vector<Real> qpos;
    const Real *qvel, *ctrl;
    Real h;
    ActuationInput<Real> input(const Transmissions<Real>& none) const {
      return {qpos.data(), qvel, ctrl, &none, nullptr};
    }
  };
  template <class Real>
  Loaded<Real> load(const Real* in) const {
    const Model& m = model();
    Loaded<Real> out{Owned<Parameters<Real>>(m), std::vector<Real>(m.nq), in + m.nv, in + 2 * m.nv,
                     Real(m.timestep)};
    const std::vector<Real> start(qpos.begin(), qpos.end());
    displace(m, start.data(), in, out.qpos.data());
    const Real* next = out.ctrl + m.nu;
    const std::pair<Real*, int> arrays[] = {
        {out.parameters->damping, m.nv},     {out.parameters->armature, m.nv},
        {out.parameters->stiffness, m.njnt}, {out.parameters->gear, m.nu},
        {out.parameters->gain, 3 * m.nu},    {out.parameters->bias, 3 * m.nu},
        {out.parameters->spring, m.nq}};
    for (const auto& [array, size] : arrays) {
      std::copy_n(next, size, array);
      next += size;
    }
    return out;
  }
  template <class Real>
  void operator()(const Real* in, Real* out) const {
    Loaded<Real> at = load(in);
    Owned<Transmissions<Real>> none(model());
    actuation(model(), *at.parameters, at.h, at.input(*none), *none, out, out + model().nv);
  }
};
struct StageAdjoint {
  const Stage& of;
  template <class Real>
  void operator()(const Real* in, const Real* out_bar, Real* in_bar) const {
    const Model& m = of.model();
    Stage::Loaded<Real> at = of.load(in);
    Owned<Parameters<Real>> bar(m);
    bar->clear(m);
    Real* ctrl_bar = in_bar + 2 * m.nv;
    Owned<Transmissions<Real>> none(m);
    Owned<TransmissionsCotangent<Real>> none_bar(m);
    actuation_adjoint(
        m, *at.parameters, at.h, at.input(*none),
        ActuationCotangent<Real, Real>{out_bar, out_bar + m.nv, out_bar + m.nv, nullptr, nullptr}, *none_bar,
        static_cast<Real*>(nullptr), in_bar, in_bar + m.nv, ctrl_bar, *bar);
    Real* next = ctrl_bar + m.nu;
    const std::pair<const Real*, int> arrays[] = {
        {bar->damping, m.nv},  {bar->armature, m.nv}, {bar->stiffness, m.njnt}, {bar->gear, m.nu},
        {bar->gain, 3 * m.nu}, {bar->bias, 3 * m.nu}, {bar->spring, m.nq}};
    for (const auto& [array, size] : arrays) {
      std::copy_n(array, size, next);
      next += size;
    }
  }
};

double clamped(double x, bool limited, const double* range) {
  return limited ? std::fmin(std::fmax(x, range[0]), range[1]) : x;
}

// tau = gear force - damping qvel - stiffness (qpos - rest); the ball's spring is checked in test_joints.
// diagonal = armature + h damping, and minus h d tau/d qvel of the actuators where the integrator takes them
// implicitly
void forces_follow_mujocos_formula() {
  MujocoArrays a = two_trees();
  Random random(50);
  int cut = 0, free = 0;
  for (int trial = 0; trial < 20; ++trial) {
    a.integrator = trial % 2;
    const ModelStorage storage(a);
    const Stage stage{storage, random_qpos(storage, a, random, 1.0)};
    const Doubles in = stage.inputs(random);
    const double *qvel = &in[a.nv], *ctrl = qvel + a.nv, *damping = ctrl + a.nu, *armature = damping + a.nv;
    const double *stiffness = armature + a.nv, *gear = stiffness + a.njnt;
    Doubles wanted(2 * a.nv);
    for (int k = 0; k < a.nv; ++k) {
      wanted[k] = -damping[k] * qvel[k];
      wanted[a.nv + k] = armature[k] + a.timestep * damping[k];
    }
    for (int j = 0; j < a.njnt; ++j) {
      const int q = a.jnt_qposadr[j];
      if (a.jnt_type[j] >= int(JointType::prismatic))
        wanted[a.jnt_dofadr[j]] -= stiffness[j] * (stage.qpos[q] - a.qpos_spring[q]);
    }
    for (int u = 0; u < a.nu; ++u) {
      const double *gain = &a.act_gain[3 * u], *bias = &a.act_bias[3 * u];
      const double used = clamped(ctrl[u], a.act_ctrllimited[u], &a.act_ctrlrange[2 * u]);
      const double length = gear[u] * stage.qpos[a.act_qpos[u]], velocity = gear[u] * qvel[a.act_dof[u]];
      const double force = (gain[0] + gain[1] * length + gain[2] * velocity) * used + bias[0] +
                           bias[1] * length + bias[2] * velocity;
      const double applied = clamped(force, a.act_forcelimited[u], &a.act_forcerange[2 * u]);
      ++(used != ctrl[u] || applied != force ? cut : free);
      wanted[a.act_dof[u]] += gear[u] * applied;
      if (a.integrator == 1 && applied == force)
        wanted[a.nv + a.act_dof[u]] -= a.timestep * gear[u] * gear[u] * (gain[2] * used + bias[2]);
    }
    Doubles got = value(stage, in, 2 * a.nv);
    for (int j = 0; j < a.njnt; ++j)
      for (int i = 0; a.jnt_type[j] == int(JointType::ball) && i < 3; ++i)
        got[a.jnt_dofadr[j] + i] = wanted[a.jnt_dofadr[j] + i];
    CHECK_CLOSE(got, wanted, rounding);
  }
  CHECK(cut > 5 && free > 5);
}

void ranges_pass_nothing_back_beyond_and_all_on_the_bound() {
  ModelMaker m;
  m.add_body(0, {0, 0, 0}, {0, 0, 0}, 1.0);
  const int joint = m.add_joint(JointType::revolute, {0, 0, 0}, {0, 0, 1});
  m.limit_ctrl(m.add_actuator(joint, 1.0, {2.0, 0, 0}, {0, 0, 0}), -1.0, 1.0);
  m.limit_force(m.add_actuator(joint, 1.0, {2.0, 0, 0}, {0, 0, 0}), -3.0, 3.0);
  const ModelStorage storage(m.arrays);
  const Stage stage{storage, {0.0}};
  const StageAdjoint adjoint{stage};
  const auto slopes = [&](double ctrl_a, double ctrl_b) {
    Doubles in = {0, 0, ctrl_a, ctrl_b, 0, 0, 0, 1, 1};
    in.insert(in.end(), {2, 0, 0, 2, 0, 0});     // gain
    in.insert(in.end(), {0, 0, 0, 0, 0, 0, 0});  // bias, rest
    const Doubles tau_bar = {1, 0};
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
  MujocoArrays arrays = two_trees();
  Random random(51);
  for (int trial = 0; trial < 6; ++trial) {
    arrays.integrator = trial % 2;
    const ModelStorage storage(arrays);
    const Model& model = storage.model();
    const Stage stage{storage, random_qpos(storage, arrays, random, 0.7)};
    const StageAdjoint adjoint{stage};
    const Doubles in = stage.inputs(random);
    check_adjoint("actuation", random, in, 2 * model.nv, stage, adjoint, smooth, stage.blocks());
    const std::vector<Doubles> environments = environments_around(random, in, 1.0);
    check_lanes("actuation", environments, 2 * model.nv, stage);
    check_adjoint_lanes("actuation", random, environments, 2 * model.nv, adjoint);

    Stage::Loaded<double> at = stage.load(in.data());
    Owned<Parameters<double>> bar(model);
    bar->clear(model);
    Owned<Transmissions<double>> none(model);
    Owned<TransmissionsCotangent<double>> none_bar(model);
    Doubles tau(model.nv), diagonal(model.nv), q_bar(model.nv, 0.0), ctrl_bar(model.nu, 0.0);
    check_no_allocation("actuation", [&] {
      actuation(model, *at.parameters, at.h, at.input(*none), *none, tau.data(), diagonal.data());
      actuation_adjoint(
          model, *at.parameters, at.h, at.input(*none),
          ActuationCotangent<double, double>{tau.data(), diagonal.data(), diagonal.data(), nullptr, nullptr},
          *none_bar, static_cast<double*>(nullptr), q_bar.data(), q_bar.data(), ctrl_bar.data(), *bar);
    });
  }
}

}  // namespace

int main() {
  return run({{"forces", forces_follow_mujocos_formula},
              {"ranges", ranges_pass_nothing_back_beyond_and_all_on_the_bound},
              {"adjoint, lanes, allocation", adjoint_lanes_and_allocation}});
}
