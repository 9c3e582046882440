// Batches: rollouts, backward passes, forward derivatives and Jacobians by the public interface. Packs,
// threads and neighbours change no bit; an environment that diverges stops alone; cancelled calls stop.
#include <algorithm>
#include <chrono>
#include <thread>

#include "models.hpp"
#include "revolute/batch.hpp"

using namespace revolute;
using namespace revolute::check;

namespace {

// Several steps with contacts: the gradients of early inputs are large, and clamps switch.
constexpr double several_steps = 1e-6;
// Forward and backward derivatives are different sums of the same terms.
constexpr double same_derivative = 1e-9;

// The inputs of a batch; parameters are null or given per environment.
struct Inputs {
  int batch, steps;
  Doubles qpos, qvel, ctrl;
  std::array<Doubles, parameter_count> parameters;

  ParameterInputs parameter_inputs() const {
    ParameterInputs out;
    for (int p = 0; p < parameter_count; ++p)
      if (!parameters[p].empty()) out[p] = {parameters[p].data(), batch};
    return out;
  }
  // environment b by itself
  Inputs single(const ModelStorage& storage, int b) const {
    const Model& m = storage.model();
    const auto row = [b](const Doubles& a, std::size_t size) {
      return Doubles(a.begin() + b * size, a.begin() + (b + 1) * size);
    };
    Inputs out{1, steps, row(qpos, m.nq), row(qvel, m.nv), row(ctrl, std::size_t(steps) * m.nu), {}};
    for (int p = 0; p < parameter_count; ++p)
      if (!parameters[p].empty())
        out.parameters[p] = row(parameters[p], storage.parameter_size(Parameter(p)));
    return out;
  }
};

// States that the policy keeps, and the last.
struct Trajectory {
  Doubles qpos, qvel, last_qpos, last_qvel;
  std::vector<std::int32_t> status;
  std::vector<std::int64_t> diverged_step;
  bool completed;
};
Trajectory run_rollout(const ModelStorage& storage, const Inputs& in, const Execution& execution = {},
                       const CheckpointPolicy& policy = {}) {
  const Model& m = storage.model();
  const std::size_t rows = std::size_t(in.batch) * KeptSteps(policy, in.steps).count();
  Trajectory out{Doubles(rows * m.nq),
                 Doubles(rows * m.nv),
                 Doubles(std::size_t(in.batch) * m.nq),
                 Doubles(std::size_t(in.batch) * m.nv),
                 std::vector<std::int32_t>(in.batch),
                 std::vector<std::int64_t>(in.batch),
                 false};
  out.completed = rollout(storage,
                          {{in.batch, in.steps},
                           in.qpos.data(),
                           in.qvel.data(),
                           in.ctrl.data(),
                           in.parameter_inputs(),
                           policy,
                           {out.qpos.data(), out.qvel.data()},
                           {},
                           {out.last_qpos.data(), out.last_qvel.data()},
                           out.status.data(),
                           out.diverged_step.data()},
                          execution);
  return out;
}

struct Gradients {
  Doubles qpos, qvel, ctrl;
  std::array<Doubles, parameter_count> parameters;
  bool completed;
  std::vector<std::int64_t> replayed;
};
// bars: [K, B, T + 1, nq] and [K, B, T + 1, nv]
Gradients run_backward(const ModelStorage& storage, const Inputs& in, const Trajectory& trajectory,
                       int cotangents, const Doubles& qpos_bar, const Doubles& qvel_bar,
                       const Execution& execution = {}, const CheckpointPolicy& policy = {}) {
  const Model& m = storage.model();
  const std::size_t rows = std::size_t(cotangents) * in.batch;
  // results are overwritten, whatever was there
  Gradients out{Doubles(rows * m.nq, 7.0),
                Doubles(rows * m.nv, 7.0),
                Doubles(rows * in.steps * m.nu, 7.0),
                {},
                false,
                std::vector<std::int64_t>(in.batch)};
  BackwardArrays arrays = {{in.batch, in.steps},
                           cotangents,
                           policy,
                           {trajectory.qpos.data(), trajectory.qvel.data()},
                           in.ctrl.data(),
                           in.parameter_inputs(),
                           trajectory.status.data(),
                           out.qpos.data(),
                           out.qvel.data(),
                           out.ctrl.data(),
                           out.replayed.data(),
                           {qpos_bar.data(), qvel_bar.data()}};
  for (int p = 0; p < parameter_count; ++p) {
    out.parameters[p].assign(rows * storage.parameter_size(Parameter(p)), 7.0);
    arrays.parameter_bars[p] = out.parameters[p].data();
  }
  out.completed = backward(storage, arrays, execution);
  return out;
}

// Entries b of both must have the same bits.
void check_same(const char* name, const Doubles& all, int b, const Doubles& single) {
  bool equal = all.size() >= (b + 1) * single.size();
  for (std::size_t i = 0; equal && i < single.size(); ++i)
    equal = same(all[b * single.size() + i], single[i]);
  expect(equal, std::string(name) + ": environment " + std::to_string(b) + " differs from its single run",
         __FILE__, __LINE__);
}
void check_same(const Gradients& all, int b, const Gradients& single) {
  check_same("qpos_bar", all.qpos, b, single.qpos);
  check_same("qvel_bar", all.qvel, b, single.qvel);
  check_same("ctrl_bar", all.ctrl, b, single.ctrl);
  for (int p = 0; p < parameter_count; ++p)
    check_same(parameter_names[p], all.parameters[p], b, single.parameters[p]);
}

// Different states, controls, masses and friction in every environment of the crowd.
Inputs crowd_inputs(const ModelStorage& storage, const MujocoArrays& arrays, int batch, int steps,
                    Random& random) {
  Inputs out{batch, steps, {}, {}, random.normals(std::size_t(batch) * steps * arrays.nu), {}};
  for (int b = 0; b < batch; ++b) {
    const State state = crowd_state(storage, arrays, random);
    out.qpos.insert(out.qpos.end(), state.qpos.begin(), state.qpos.end());
    out.qvel.insert(out.qvel.end(), state.qvel.begin(), state.qvel.end());
    for (Parameter p : {Parameter::body_mass, Parameter::geom_friction})
      for (double value : storage.parameters().defaults[int(p)])
        out.parameters[int(p)].push_back(random.uniform(0.8, 1.2) * value);
  }
  return out;
}

// A pack and a half, on one thread and on three (enough steps that each has something to do); the same environments in
// another order.
void batches_equal_single_runs() {
  const MujocoArrays arrays = crowd();
  const ModelStorage storage(arrays);
  Random random(140);
  const int batch = native_lanes + native_lanes / 2 + 1, steps = 15, cotangents = 3;
  const Inputs in = crowd_inputs(storage, arrays, batch, steps, random);
  const std::size_t q_size = std::size_t(steps + 1) * arrays.nq, v_size = std::size_t(steps + 1) * arrays.nv;
  const Doubles qpos_bar = random.normals(cotangents * batch * q_size),
                qvel_bar = random.normals(cotangents * batch * v_size);
  for (int threads : {1, 3}) {
    const Trajectory all = run_rollout(storage, in, {threads, nullptr});
    const Gradients gradients =
        run_backward(storage, in, all, cotangents, qpos_bar, qvel_bar, {threads, nullptr});
    CHECK(all.completed && gradients.completed);
    for (int b = 0; b < batch; ++b) {
      CHECK(all.status[b] == 0 && all.diverged_step[b] == -1);
      const Inputs one = in.single(storage, b);
      const Trajectory single = run_rollout(storage, one);
      check_same("qpos", all.qpos, b, single.qpos);
      check_same("qvel", all.qvel, b, single.qvel);
      for (int k = 0; k < cotangents; ++k) {
        const std::size_t row = k * batch + b;
        const Doubles one_qpos_bar(qpos_bar.begin() + row * q_size, qpos_bar.begin() + (row + 1) * q_size);
        const Doubles one_qvel_bar(qvel_bar.begin() + row * v_size, qvel_bar.begin() + (row + 1) * v_size);
        check_same(gradients, int(row), run_backward(storage, one, single, 1, one_qpos_bar, one_qvel_bar));
      }
    }
  }
}

void a_diverging_environment_stops_alone() {
  const MujocoArrays arrays = two_trees();
  const ModelStorage storage(arrays);
  Random random(141);
  const int batch = native_lanes + 1, steps = 5, nq = arrays.nq;
  Inputs in{batch, steps, {}, random.normals(batch * arrays.nv), random.normals(batch * steps * arrays.nu),
            {}};
  for (int b = 0; b < batch; ++b) {
    const Doubles qpos = random_qpos(storage, arrays, random, 0.5);
    in.qpos.insert(in.qpos.end(), qpos.begin(), qpos.end());
  }
  const Trajectory calm = run_rollout(storage, in);
  // the motor's force overflows in step 2 of environment 1 and step 3 of the last
  const std::pair<int, int> wild[] = {{1, 2}, {batch - 1, 3}};
  for (const auto& [b, t] : wild) in.ctrl[(b * steps + t) * arrays.nu] = 1e308;
  const Trajectory all = run_rollout(storage, in);
  CHECK(all.completed);
  for (int b = 0; b < batch; ++b) {
    const int last = b == 1 ? 2 : b == batch - 1 ? 3 : steps;
    CHECK(all.status[b] == std::int32_t(last < steps ? Status::diverged : Status::completed));
    CHECK(all.diverged_step[b] == (last < steps ? last : -1));
    for (int t = 0; t <= steps; ++t)
      for (int i = 0; i < nq; ++i) {
        const double q = all.qpos[(std::size_t(b) * (steps + 1) + t) * nq + i];
        CHECK(t <= last ? same(q, calm.qpos[(std::size_t(b) * (steps + 1) + t) * nq + i]) : std::isnan(q));
      }
  }
}

// A pendulum with one actuator.
MujocoArrays pendulum() {
  ModelMaker m;
  m.add_body(0, {0, 0, 0}, {0, 0, 0}, 1.0);
  m.add_actuator(m.add_joint(JointType::revolute, {0, 0, 0.5}, {0, 1, 0}), 1.0, {1.0, 0, 0}, {0, 0, 0});
  return m.arrays;
}

void cancelled_calls_stop() {
  const ModelStorage storage(pendulum());
  const Inputs in{1, 3, {0.3}, {0.0}, {0, 0, 0}, {}};
  const Trajectory trajectory = run_rollout(storage, in);
  CancelToken token;
  const Doubles bar(4, 1.0);
  CHECK(run_rollout(storage, in, {1, &token}).completed &&
        run_backward(storage, in, trajectory, 1, bar, bar, {1, &token}).completed);
  token.cancel();
  CHECK(!run_rollout(storage, in, {1, &token}).completed &&
        !run_backward(storage, in, trajectory, 1, bar, bar, {1, &token}).completed);

  // while it runs, from another thread
  const int steps = 1000000;
  const Inputs endless{1, steps, {0.3}, {0.0}, Doubles(steps, 0.0), {}};
  CancelToken later;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    later.cancel();
  });
  const Trajectory stopped = run_rollout(storage, endless, {1, &later});
  other.join();
  CHECK(!stopped.completed);
}

void no_steps_give_the_start() {
  const ModelStorage storage(pendulum());
  const Inputs in{2, 0, {0.3, 0.4}, {0.1, 0.2}, {}, {}};
  const Trajectory trajectory = run_rollout(storage, in);
  CHECK_CLOSE(trajectory.qpos, in.qpos, 0.0);
  const Gradients gradients = run_backward(storage, in, trajectory, 1, {1, 2}, {3, 4});
  CHECK_CLOSE(gradients.qpos, Doubles({1, 2}), 0.0);
  CHECK_CLOSE(gradients.qvel, Doubles({3, 4}), 0.0);
  CHECK_CLOSE(gradients.parameters[int(Parameter::gravity)], Doubles(6, 0.0), 0.0);
}

// --- derivatives over several steps ------------------------------------------------------------------------

// in: start qpos as given, quaternions of any length, start qvel, ctrl, all parameters. out: all later qpos,
// all qvel.
struct Rollout {
  const ModelStorage& storage;
  int steps;

  const Model& model() const { return storage.model(); }
  int n_out() const { return steps * model().nq + (steps + 1) * model().nv; }
  std::vector<Block> blocks() const {
    std::vector<Block> out = {{"qpos", 0, model().nq, 1e-3},
                              {"qvel", model().nq, model().nv, 1e-3},
                              {"ctrl", model().nq + model().nv, steps * model().nu, 0.1}};
    for (int p = 0; p < parameter_count; ++p)
      out.push_back({parameter_names[p], out.back().begin + out.back().size,
                     storage.parameter_size(Parameter(p)), 1e-3});
    return out;
  }
  Inputs inputs(const Doubles& in) const {
    const auto part = [&](const Block& block) {
      return Doubles(in.begin() + block.begin, in.begin() + block.begin + block.size);
    };
    const std::vector<Block> all = blocks();
    Inputs out{1, steps, part(all[0]), part(all[1]), part(all[2]), {}};
    for (int p = 0; p < parameter_count; ++p) out.parameters[p] = part(all[3 + p]);
    return out;
  }
  Doubles defaults(const State& state, Random& random) const {
    Doubles in = state.qpos;
    in.insert(in.end(), state.qvel.begin(), state.qvel.end());
    for (double u : random.normals(steps * model().nu)) in.push_back(u);
    for (const Doubles& values : storage.parameters().defaults)
      in.insert(in.end(), values.begin(), values.end());
    return in;
  }
  void operator()(const double* in, double* out) const {
    const Trajectory trajectory =
        run_rollout(storage, inputs(Doubles(in, in + blocks().back().begin + blocks().back().size)));
    std::copy(trajectory.qvel.begin(), trajectory.qvel.end(),
              std::copy(trajectory.qpos.begin() + model().nq, trajectory.qpos.end(), out));
  }
};
struct RolloutAdjoint {
  const Rollout& of;
  void operator()(const double* in, const double* out_bar, double* in_bar) const {
    const Model& m = of.model();
    const Inputs inputs = of.inputs(Doubles(in, in + of.blocks().back().begin + of.blocks().back().size));
    Doubles qpos_bar(m.nq, 0.0);
    qpos_bar.insert(qpos_bar.end(), out_bar, out_bar + of.steps * m.nq);
    const Doubles qvel_bar(out_bar + of.steps * m.nq, out_bar + of.n_out());
    const Gradients gradients =
        run_backward(of.storage, inputs, run_rollout(of.storage, inputs), 1, qpos_bar, qvel_bar);
    double* next = in_bar;
    for (const Doubles* part : {&gradients.qpos, &gradients.qvel, &gradients.ctrl})
      next = std::copy(part->begin(), part->end(), next);
    for (const Doubles& part : gradients.parameters) next = std::copy(part.begin(), part.end(), next);
  }
};

void check_gradients(const char* name, Random& random, const MujocoArrays& arrays, State state, int steps,
                     double tolerance, std::vector<std::string> names) {
  const ModelStorage storage(arrays);
  const Rollout function{storage, steps};
  // quaternions that are not of unit length
  for (int j = 0; j < arrays.njnt; ++j)
    for (int i = 0; arrays.jnt_type[j] <= int(JointType::ball) && i < 4; ++i)
      state.qpos[arrays.jnt_qposadr[j] + (arrays.jnt_type[j] == int(JointType::free) ? 3 : 0) + i] *= 1.3;
  std::vector<Block> blocks;
  for (const Block& block : function.blocks())
    if (std::find(names.begin(), names.end(), block.name) != names.end()) blocks.push_back(block);
  check_adjoint(name, random, function.defaults(state, random), function.n_out(), function,
                RolloutAdjoint{function}, tolerance, blocks);
}

void gradients_match_differences() {
  Random random(142);
  MujocoArrays trees = two_trees();
  for (int integrator : {0, 1}) {
    trees.integrator = integrator;
    const ModelStorage storage(trees);
    check_gradients("two trees", random, trees,
                    {random_qpos(storage, trees, random, 0.5), random.normals(trees.nv)}, 6, smooth,
                    {"qpos", "qvel", "ctrl", "body_mass", "body_ipos", "body_inertia", "dof_damping",
                     "dof_armature", "jnt_stiffness", "gravity", "actuator_gear"});
  }
  const MujocoArrays pile = crowd();
  const ModelStorage storage(pile);
  check_gradients("crowd", random, pile, crowd_state(storage, pile, random), 3, several_steps,
                  {"qpos", "qvel", "ctrl", "body_mass", "geom_friction", "gravity", "restitution"});
}

// Jvp's tangents of one environment along directions of qpos (tangent), qvel, ctrl and the masses.
void forward_derivatives_are_transposes_of_gradients() {
  const MujocoArrays arrays = crowd();
  const ModelStorage storage(arrays);
  Random random(143);
  const int batch = 3, steps = 5, nv = arrays.nv, nq = arrays.nq;
  const Inputs in = crowd_inputs(storage, arrays, batch, steps, random);
  const Trajectory trajectory = run_rollout(storage, in);
  const std::size_t masses = storage.parameter_size(Parameter::body_mass);
  const Doubles q_tan = random.normals(batch * nv), v_tan = random.normals(batch * nv),
                u_tan = random.normals(batch * steps * arrays.nu);
  const Doubles mass_tan = random.normals(batch * masses);
  Doubles qpos_tan(batch * (steps + 1) * nv), qvel_tan(qpos_tan.size());
  JvpArrays arguments = {{batch, steps},  trajectory.qpos.data(), trajectory.qvel.data(),
                         in.ctrl.data(),  in.parameter_inputs(),  q_tan.data(),
                         v_tan.data(),    u_tan.data(),           {},
                         qpos_tan.data(), qvel_tan.data()};
  arguments.parameter_tangents[int(Parameter::body_mass)] = {mass_tan.data(), batch};
  CHECK(jvp(storage, arguments, {2, nullptr}));
  const Doubles qpos_bar = random.normals(batch * (steps + 1) * nq),
                qvel_bar = random.normals(qvel_tan.size());
  const Gradients gradients = run_backward(storage, in, trajectory, 1, qpos_bar, qvel_bar);
  // both sides with quaternions in tangent coordinates
  const auto tangent = [&](const Doubles& qpos, const Doubles& bar, std::size_t row) {
    Doubles out(nv);
    for (int j = 0; j < arrays.njnt; ++j) {
      const Joint& joint = storage.model().joints[j];
      const int linear = linear_coordinates(joint.type);
      const double *q = &qpos[row * nq + joint.qpos], *q_bar = &bar[row * nq + joint.qpos];
      std::copy_n(q_bar, linear, &out[joint.dof]);
      if (joint.type > JointType::ball) continue;
      q += linear;
      q_bar += linear;
      add3(&out[joint.dof + linear],
           tangent_cotangent(load_quaternion(q), Quaternion<double>{q_bar[0], q_bar[1], q_bar[2], q_bar[3]}));
    }
    return out;
  };
  bool computed_twice = false;  // one sum may be the other's by chance
  for (int b = 0; b < batch; ++b) {
    double forward = 0, size = 0;
    for (int t = 0; t <= steps; ++t) {
      const std::size_t row = b * (steps + 1) + t;
      const Doubles bar = tangent(trajectory.qpos, qpos_bar, row);
      for (int k = 0; k < nv; ++k) {
        const double terms[] = {bar[k] * qpos_tan[row * nv + k],
                                qvel_bar[row * nv + k] * qvel_tan[row * nv + k]};
        forward += terms[0] + terms[1];
        size += std::fabs(terms[0]) + std::fabs(terms[1]);
      }
    }
    const Doubles start = tangent(in.qpos, gradients.qpos, b);
    double reverse = 0;
    for (int k = 0; k < nv; ++k)
      reverse += start[k] * q_tan[b * nv + k] + gradients.qvel[b * nv + k] * v_tan[b * nv + k];
    for (int i = 0; i < steps * arrays.nu; ++i)
      reverse += gradients.ctrl[b * steps * arrays.nu + i] * u_tan[b * steps * arrays.nu + i];
    for (std::size_t i = 0; i < masses; ++i)
      reverse += gradients.parameters[int(Parameter::body_mass)][b * masses + i] * mass_tan[b * masses + i];
    CHECK(std::fabs(forward - reverse) <= same_derivative * size);
    computed_twice = computed_twice || forward != reverse;
  }
  CHECK(computed_twice);
}

// A and B times a direction is the forward derivative of one step.
void jacobians_of_one_step() {
  const MujocoArrays arrays = crowd();
  const ModelStorage storage(arrays);
  Random random(144);
  const int batch = 2, nv = arrays.nv, nu = arrays.nu, nx = 2 * nv;
  const Inputs in = crowd_inputs(storage, arrays, batch, 1, random);
  Doubles A(batch * nx * nx), B(batch * nx * nu);
  std::vector<std::uint8_t> finite(batch);
  CHECK(jacobian(storage,
                 {batch, in.qpos.data(), in.qvel.data(), in.ctrl.data(), in.parameter_inputs(), A.data(),
                  B.data(), finite.data()},
                 {2, nullptr}));
  CHECK(finite[0] && finite[1]);
  const Trajectory trajectory = run_rollout(storage, in);
  const Doubles q_tan = random.normals(batch * nv), v_tan = random.normals(batch * nv),
                u_tan = random.normals(batch * nu);
  Doubles qpos_tan(batch * 2 * nv), qvel_tan(batch * 2 * nv);
  CHECK(jvp(storage,
            {{batch, 1},
             trajectory.qpos.data(),
             trajectory.qvel.data(),
             in.ctrl.data(),
             in.parameter_inputs(),
             q_tan.data(),
             v_tan.data(),
             u_tan.data(),
             {},
             qpos_tan.data(),
             qvel_tan.data()},
            {}));
  for (int b = 0; b < batch; ++b) {
    Doubles got(nx, 0.0), wanted(&qpos_tan[(2 * b + 1) * nv], &qpos_tan[(2 * b + 1) * nv] + nv);
    wanted.insert(wanted.end(), &qvel_tan[(2 * b + 1) * nv], &qvel_tan[(2 * b + 1) * nv] + nv);
    for (int i = 0; i < nx; ++i) {
      for (int k = 0; k < nv; ++k)
        got[i] +=
            A[(b * nx + i) * nx + k] * q_tan[b * nv + k] + A[(b * nx + i) * nx + nv + k] * v_tan[b * nv + k];
      for (int k = 0; k < nu; ++k) got[i] += B[(b * nx + i) * nu + k] * u_tan[b * nu + k];
    }
    CHECK_CLOSE(got, wanted, same_derivative);
  }
}

// All policies, on batches of packs and of single environments whose lanes hold cotangents, a diverging one among them.
void policies_change_no_bit() {
  const MujocoArrays arrays = crowd();
  const ModelStorage storage(arrays);
  Random random(150);
  const int steps = 11, cotangents = 2 * native_lanes + 1;
  for (int batch : {1, 2, native_lanes + 1}) {
    Inputs in = crowd_inputs(storage, arrays, batch, steps, random);
    if (batch > 1) in.qvel[arrays.nv] = 1e300;
    const Trajectory every = run_rollout(storage, in);
    CHECK((every.status.back() == 1) == (batch == 2));
    Doubles bars[2] = {random.normals(std::size_t(cotangents) * batch * (steps + 1) * arrays.nq),
                       random.normals(std::size_t(cotangents) * batch * (steps + 1) * arrays.nv)};
    const Gradients wanted = run_backward(storage, in, every, cotangents, bars[0], bars[1]);
    for (CheckpointPolicy policy : {CheckpointPolicy{CheckpointKind::interval, 1},
                                    {CheckpointKind::interval, 4},
                                    {CheckpointKind::interval, 50},
                                    {CheckpointKind::slots, 1},
                                    {CheckpointKind::slots, 3},
                                    {CheckpointKind::slots, 50}}) {
      const Trajectory kept = run_rollout(storage, in, {2, nullptr}, policy);
      check_same("last qpos", kept.last_qpos, 0, every.last_qpos);
      const Gradients got =
          run_backward(storage, in, kept, cotangents, bars[0], bars[1], {2, nullptr}, policy);
      check_same(got, 0, wanted);
      CHECK(got.replayed == std::vector<std::int64_t>(batch, replayed_steps(policy, steps)));
    }
  }
}

}  // namespace

int main() {
  return run({{"batches and single runs", batches_equal_single_runs},
              {"divergence", a_diverging_environment_stops_alone},
              {"checkpoint policies", policies_change_no_bit},
              {"cancellation", cancelled_calls_stop},
              {"no steps", no_steps_give_the_start},
              {"gradients against differences", gradients_match_differences},
              {"forward derivatives", forward_derivatives_are_transposes_of_gradients},
              {"Jacobians", jacobians_of_one_step}});
}
