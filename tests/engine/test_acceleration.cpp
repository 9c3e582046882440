// Acceleration without contact: Newton's and Euler's equations of every body, momentum, power, and the
// adjoint.
#include "allocation.hpp"
#include "models.hpp"
#include "packing.hpp"
#include "reference.hpp"

using namespace revolute;
using namespace revolute::check;

namespace {

// The stages up to the acceleration at one state.
struct At {
  Owned<Parameters<double>> parameters;
  Owned<Kinematics<double>> kinematics;
  Owned<Factors<double>> factors;
  Owned<SolveScratch<double>> scratch;
  Owned<Acceleration<double>> acceleration;

  At(const ModelStorage& storage, const MujocoArrays& arrays, const Doubles& qpos, const Doubles& qvel,
     const Doubles& tau)
      : parameters(storage.model()),
        kinematics(storage.model()),
        factors(storage.model()),
        scratch(storage.model()),
        acceleration(storage.model()) {
    const Model& model = storage.model();
    load_defaults(storage, *parameters);
    revolute::kinematics(model, *parameters, qpos.data(), qvel.data(), *kinematics);
    const Doubles diagonal = mass_diagonal(arrays);
    articulated_inertia(model, diagonal.data(), *kinematics, *factors);
    std::copy(tau.begin(), tau.end(), acceleration->tau);
    revolute::acceleration(model, *parameters, model.timestep, *kinematics, *factors, qvel.data(), *scratch,
                           *acceleration);
  }
  Doubles a0(int nv) { return {acceleration->a0, acceleration->a0 + nv}; }
};

// d/dt of quantity(qpos, qvel) on the path that starts with (qpos, qvel) and accelerates with a0
template <class Quantity>
Doubles rate(const ModelStorage& storage, const Doubles& qpos, const Doubles& qvel, const Doubles& a0,
             const Quantity& quantity) {
  const double t = 2e-3;
  const auto at = [&](double s) {
    Doubles moved = qvel, speed = qvel;
    for (std::size_t k = 0; k < qvel.size(); ++k) {
      moved[k] = s * qvel[k] + 0.5 * s * s * a0[k];
      speed[k] = qvel[k] + s * a0[k];
    }
    return column(quantity(displaced(storage.model(), qpos, moved), speed));
  };
  return ((1 / (12 * t)) * (8.0 * (at(t) + -1.0 * at(-t)) + -1.0 * (at(2 * t) + -1.0 * at(-2 * t)))).entries;
}

// tau = sum over bodies of J' (d momentum / dt - gravity) + (armature + h damping) a0
void every_body_obeys_newton_and_euler() {
  const MujocoArrays arrays = two_trees();
  const ModelStorage storage(arrays);
  Random random(70);
  for (int trial = 0; trial < 5; ++trial) {
    const Doubles qpos = random_qpos(storage, arrays, random, 1.0), qvel = random.normals(arrays.nv),
                  tau = random.normals(arrays.nv);
    const Doubles a0 = At(storage, arrays, qpos, qvel, tau).a0(arrays.nv);
    const ReferencePose pose = reference_pose(arrays, qpos);
    Dense sum(arrays.nv, 1);
    for (int b = 1; b < arrays.nbody; ++b) {
      Doubles force = rate(storage, qpos, qvel, a0, [&](const Doubles& q, const Doubles& v) {
        return body_momentum(arrays, reference_pose(arrays, q), b, v).entries;
      });
      for (int i = 0; i < 3; ++i) force[3 + i] -= arrays.body_mass[b] * arrays.gravity[i];
      sum = sum + transposed(jacobian(pose, b, mass_centre(arrays, pose, b))) * column(force);
    }
    for (int k = 0; k < arrays.nv; ++k) sum(k, 0) += mass_diagonal(arrays)[k] * a0[k];
    CHECK_CLOSE(sum.entries, tau, differenced);
  }
}

// d/dt (kinetic + potential energy) = (tau - (armature + h damping) a0) . v
void power_balances() {
  const MujocoArrays arrays = two_trees();
  const ModelStorage storage(arrays);
  Random random(71);
  const Doubles qpos = random_qpos(storage, arrays, random, 1.0), qvel = random.normals(arrays.nv),
                tau = random.normals(arrays.nv);
  const Doubles a0 = At(storage, arrays, qpos, qvel, tau).a0(arrays.nv);
  double power = inner(tau, qvel);
  for (int k = 0; k < arrays.nv; ++k) power -= mass_diagonal(arrays)[k] * a0[k] * qvel[k];
  const Doubles change = rate(storage, qpos, qvel, a0, [&](const Doubles& q, const Doubles& v) {
    return Doubles{kinetic_energy(arrays, q, v) + potential_energy(arrays, q)};
  });
  CHECK_CLOSE(change[0], power, differenced);
}

// Forces between the bodies of a free tree change neither its linear nor its angular momentum.
void a_free_tree_keeps_its_momentum() {
  MujocoArrays arrays = floating_tree();
  arrays.gravity = {0, 0, 0};
  arrays.dof_armature.assign(arrays.nv, 0.0);
  arrays.dof_damping.assign(arrays.nv, 0.0);
  const ModelStorage storage(arrays);
  Random random(72);
  const Doubles qpos = random_qpos(storage, arrays, random, 1.0), qvel = random.normals(arrays.nv);
  Doubles tau = random.normals(arrays.nv);
  std::fill_n(tau.begin(), 6, 0.0);
  const Doubles a0 = At(storage, arrays, qpos, qvel, tau).a0(arrays.nv);
  const Doubles change = rate(storage, qpos, qvel, a0, [&](const Doubles& q, const Doubles& v) {
    return total_momentum(arrays, q, v);
  });
  CHECK_CLOSE(change, Doubles(6, 0.0), differenced);
}

// --- adjoint -----------------------------------------------------------------------------------------------

// in: axes, link inertias, qvel, diagonal, gravity, tau.
struct Inputs {
  const ModelStorage& storage;
  const MujocoArrays& arrays;

  const Model& model() const { return storage.model(); }
  std::vector<Block> blocks() const {
    const int nv = model().nv;
    return {{"S", 0, 6 * nv},          {"I", 6 * nv, 10 * nv},  {"qvel", 16 * nv, nv},
            {"diagonal", 17 * nv, nv}, {"gravity", 18 * nv, 3}, {"tau", 18 * nv + 3, nv}};
  }
  Doubles draw(Random& random) const {
    const int nv = model().nv;
    const Doubles qvel = random.normals(nv), tau = random.normals(nv);
    At state(storage, arrays, random_qpos(storage, arrays, random, 1.0), qvel, tau);
    Doubles in(19 * nv + 3, 0.0);
    Writer<double> to{in.data()};
    for (int k = 0; k < nv; ++k) to.add(state.kinematics->S[k]);
    for (int k = 0; k < nv; ++k)
      to.add(model().dofs[k].has_inertia ? state.kinematics->I[k] : zero_inertia<double>());
    for (double v : qvel) to.add(v);
    for (double entry : mass_diagonal(arrays)) to.add(entry);
    to.add(Point{0.3, 0.2, -9.0});
    for (double t : tau) to.add(t);
    return in;
  }
  template <class Real>
  const Real* qvel(const Real* in) const {
    return in + 16 * model().nv;
  }
  template <class Real>
  const Real* diagonal(const Real* in) const {
    return in + 17 * model().nv;
  }
  template <class Real>
  void load(const Real* in, Parameters<Real>& parameters, Kinematics<Real>& kin) const {
    const int nv = model().nv;
    Reader<Real> from{in};
    for (int k = 0; k < nv; ++k) kin.S[k] = from.motion();
    for (int k = 0; k < nv; ++k) kin.I[k] = from.inertia();
    link_velocities(model(), kin.S, qvel(in), kin.V);
    *parameters.gravity = Reader<Real>{in + 18 * nv}.vector();
  }
  template <class Real>
  void store(const KinematicsCotangent<Real>& kin_bar, const Parameters<Real>& parameters_bar,
             Real* in_bar) const {
    const int nv = model().nv;
    Writer<Real> to{in_bar};
    for (int k = 0; k < nv; ++k) to.add(kin_bar.S[k]);
    for (int k = 0; k < nv; ++k) to.add_cotangent(kin_bar.I[k]);
    Writer<Real>{in_bar + 18 * nv}.add(*parameters_bar.gravity);
  }
};

// out: v*
struct Stage {
  Inputs inputs;

  template <class Real>
  void run(const Real* in, Parameters<Real>& parameters, Kinematics<Real>& kin, Factors<Real>& factors,
           SolveScratch<Real>& scratch, Acceleration<Real>& out) const {
    const Model& model = inputs.model();
    const Real h(model.timestep);
    inputs.load(in, parameters, kin);
    articulated_inertia(model, inputs.diagonal(in), kin, factors);
    std::copy_n(in + 18 * model.nv + 3, model.nv, out.tau);
    acceleration(model, parameters, h, kin, factors, inputs.qvel(in), scratch, out);
  }
  template <class Real>
  void operator()(const Real* in, Real* out) const {
    const Model& model = inputs.model();
    Owned<Parameters<Real>> parameters(model);
    Owned<Kinematics<Real>> kin(model);
    Owned<Factors<Real>> factors(model);
    Owned<SolveScratch<Real>> scratch(model);
    Owned<Acceleration<Real>> at(model);
    run(in, *parameters, *kin, *factors, *scratch, *at);
    for (int k = 0; k < model.nv; ++k) out[k] += at->v_free[k];
  }
};
struct StageAdjoint {
  const Stage& of;
  template <class Real>
  void operator()(const Real* in, const Real* v_free_bar, Real* in_bar) const {
    const Model& model = of.inputs.model();
    const Real h(model.timestep);
    const int nv = model.nv;
    Owned<Parameters<Real>> parameters(model), parameters_bar(model);
    Owned<Kinematics<Real>> kin(model);
    Owned<Factors<Real>> factors(model);
    Owned<SolveScratch<Real>> solving(model);
    Owned<Acceleration<Real>> at(model);
    Owned<KinematicsCotangent<Real>> kin_bar(model);
    Owned<AccelerationAdjointScratch<Real>> scratch(model);
    of.run(in, *parameters, *kin, *factors, *solving, *at);
    record_acceleration(model, *parameters, *kin, of.inputs.qvel(in), static_cast<const Real*>(nullptr), *at);
    parameters_bar->clear(model);
    kin_bar->clear(model);
    // v* = qvel + h a0,  w0 = h M^-1 v*_bar = tau_bar
    std::vector<Real> w0(nv);
    std::copy_n(v_free_bar, nv, in_bar + 16 * nv);
    std::vector<Force<Real>> F_v(nv);
    solve(model, *kin, *factors, v_free_bar, w0.data(), *solving);
    for (Real& entry : w0) entry *= h;
    const AccelerationAdjointInput<Real> input = {w0.data(), nullptr, nullptr, F_v.data()};
    acceleration_adjoint(model, *kin, *at, of.inputs.qvel(in), input, *scratch, *kin_bar, in_bar + 16 * nv,
                         in_bar + 17 * nv, *parameters_bar);
    of.inputs.store(*kin_bar, *parameters_bar, in_bar);
    std::copy(w0.begin(), w0.end(), in_bar + 18 * nv + 3);
  }
};

// The scalar L of the stage's equation (3) with what the constraint rows add, all of w0, a0, w, x, F_w, F_v
// held fixed.
struct Held {
  Doubles w0, a0, w, x, F_w, F_v;
};
struct WithRows {
  Inputs inputs;
  const Held& held;

  template <class Real>
  void operator()(const Real* in, Real* out) const {
    const Model& model = inputs.model();
    const int nv = model.nv;
    Owned<Parameters<Real>> parameters(model);
    Owned<Kinematics<Real>> kin(model);
    inputs.load(in, *parameters, *kin);
    const auto reals = [](const Doubles& a) { return std::vector<Real>(a.begin(), a.end()); };
    const std::vector<Real> w0 = reals(held.w0), a0 = reals(held.a0), w = reals(held.w), x = reals(held.x);
    const std::vector<Real> F_w = reals(held.F_w), F_v = reals(held.F_v);
    std::vector<Motion<Real>> Z(nv), W(nv), X(nv), A(nv);
    link_velocities(model, kin->S, w0.data(), Z.data());
    link_velocities(model, kin->S, w.data(), W.data());
    link_velocities(model, kin->S, x.data(), X.data());
    link_accelerations(model, *parameters->gravity, *kin, inputs.qvel(in), a0.data(), A.data());
    Real L(0);
    for (int k = 0; k < nv; ++k) {
      L += dot(W[k], Reader<Real>{&F_w[6 * k]}.force()) + dot(kin->V[k], Reader<Real>{&F_v[6 * k]}.force());
      L -= inputs.diagonal(in)[k] * (w0[k] * a0[k] + w[k] * x[k]);
      if (!model.dofs[k].has_inertia) continue;
      const RigidInertia<Real>& I = kin->I[k];
      L -= dot(Z[k], I * A[k] + cross_force(kin->V[k], I * kin->V[k])) + dot(W[k], I * X[k]);
    }
    out[0] += L;
  }
};
struct WithRowsAdjoint {
  const WithRows& of;
  template <class Real>
  void operator()(const Real* in, const Real* out_bar, Real* in_bar) const {
    const Model& model = of.inputs.model();
    const int nv = model.nv;
    Owned<Parameters<Real>> parameters(model), parameters_bar(model);
    Owned<Kinematics<Real>> kin(model);
    Owned<Acceleration<Real>> at(model);
    Owned<KinematicsCotangent<Real>> kin_bar(model);
    Owned<AccelerationAdjointScratch<Real>> scratch(model);
    of.inputs.load(in, *parameters, *kin);
    parameters_bar->clear(model);
    kin_bar->clear(model);
    // the scalar's cotangent scales w0, w (with F_w) and F_v
    std::vector<Real> w0(nv), w(nv), x(nv);
    std::vector<Force<Real>> F_v(nv);
    for (int k = 0; k < nv; ++k) {
      w0[k] = out_bar[0] * Real(of.held.w0[k]);
      w[k] = Real(of.held.w[k]);
      x[k] = out_bar[0] * Real(of.held.x[k]);
      at->a0[k] = Real(of.held.a0[k]);
      const auto force = [&](const Doubles& a) {
        return out_bar[0] * Force<Real>{vector3<Real>(&a[6 * k]), vector3<Real>(&a[6 * k + 3])};
      };
      at->W_bar[k] = force(of.held.F_w);
      F_v[k] = force(of.held.F_v);
    }
    const AccelerationAdjointInput<Real> input = {w0.data(), w.data(), x.data(), F_v.data()};
    record_acceleration(model, *parameters, *kin, of.inputs.qvel(in), x.data(), *at);
    acceleration_adjoint(model, *kin, *at, of.inputs.qvel(in), input, *scratch, *kin_bar, in_bar + 16 * nv,
                         in_bar + 17 * nv, *parameters_bar);
    of.inputs.store(*kin_bar, *parameters_bar, in_bar);
  }
};

template <class Function, class Adjoint>
void check_stage(const char* name, Random& random, const Inputs& inputs, int n_out, const Function& function,
                 const Adjoint& adjoint, const std::vector<Block>& blocks) {
  check_adjoint(name, random, inputs.draw(random), n_out, function, adjoint, smooth, blocks);
  std::vector<Doubles> environments;
  for (int lane = 0; lane < 8; ++lane) environments.push_back(inputs.draw(random));
  check_lanes(name, environments, n_out, function);
  check_adjoint_lanes(name, random, environments, n_out, adjoint);
}

void adjoint_and_lanes() {
  const MujocoArrays arrays = two_trees();
  const ModelStorage storage(arrays);
  const Stage stage{{storage, arrays}};
  const StageAdjoint adjoint{stage};
  Random random(73);
  for (int trial = 0; trial < 3; ++trial)
    check_stage("acceleration", random, stage.inputs, arrays.nv, stage, adjoint, stage.inputs.blocks());
}

void adjoint_with_constraint_rows() {
  const MujocoArrays arrays = two_trees();
  const ModelStorage storage(arrays);
  Random random(74);
  const int nv = arrays.nv;
  const Held held{random.normals(nv), random.normals(nv),     random.normals(nv),
                  random.normals(nv), random.normals(6 * nv), random.normals(6 * nv)};
  const WithRows function{{storage, arrays}, held};
  const WithRowsAdjoint adjoint{function};
  std::vector<Block> blocks = function.inputs.blocks();
  blocks.pop_back();  // tau does not enter
  check_stage("acceleration with rows", random, function.inputs, 1, function, adjoint, blocks);
}

void takes_nothing_from_the_heap() {
  const MujocoArrays arrays = two_trees();
  const ModelStorage storage(arrays);
  const Model& model = storage.model();
  Random random(75);
  const Doubles qpos = arrays.qpos0, qvel = random.normals(model.nv), w0 = random.normals(model.nv);
  At at(storage, arrays, qpos, qvel, random.normals(model.nv));
  Owned<KinematicsCotangent<double>> kin_bar(model);
  Owned<AccelerationAdjointScratch<double>> scratch(model);
  Owned<Parameters<double>> parameters_bar(model);
  Doubles qvel_bar(model.nv, 0.0), diagonal_bar(model.nv, 0.0);
  std::vector<Force<double>> F_v(model.nv);
  parameters_bar->clear(model);
  check_no_allocation("acceleration", [&] {
    acceleration(model, *at.parameters, model.timestep, *at.kinematics, *at.factors, qvel.data(), *at.scratch,
                 *at.acceleration);
    record_acceleration(model, *at.parameters, *at.kinematics, qvel.data(),
                        static_cast<const double*>(nullptr), *at.acceleration);
    kin_bar->clear(model);
    acceleration_adjoint(model, *at.kinematics, *at.acceleration, qvel.data(),
                         {w0.data(), nullptr, nullptr, F_v.data()}, *scratch, *kin_bar, qvel_bar.data(),
                         diagonal_bar.data(), *parameters_bar);
  });
}

}  // namespace

int main() {
  return run({{"Newton and Euler", every_body_obeys_newton_and_euler},
              {"power", power_balances},
              {"momentum", a_free_tree_keeps_its_momentum},
              {"adjoint and lanes", adjoint_and_lanes},
              {"adjoint with constraint rows", adjoint_with_constraint_rows},
              {"allocation", takes_nothing_from_the_heap}});
}
