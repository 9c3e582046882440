// The backward pass over a rollout: each step replayed from its stored state and pulled back.
#include "forward_runner.hpp"

namespace revolute {

namespace {

// Workspace of one thread for the backward pass of one pack: a forward step replayed, then pulled back K times.
template <class Real>
struct BackwardRunner {
  ForwardRunner<Real> forward;
  StepAdjointWorkspace<Real> workspace;
  Real *qpos_next, *qvel_next, *ctrl_bar, *ambient;
  std::vector<StateCotangent<Real>> states;
  std::vector<Parameters<Real>> parameter_bars;

  BackwardRunner(const Model& model, int cotangents, Arena& arena)
      : forward(model, arena), workspace(model, arena) {
    qpos_next = arena.take<Real>(model.nq);
    qvel_next = arena.take<Real>(model.nv);
    ctrl_bar = arena.take<Real>(model.nu);
    ambient = arena.take<Real>(model.nq);
    for (int k = 0; k < cotangents; ++k) {
      states.emplace_back(model, arena);
      parameter_bars.emplace_back(model, arena);
    }
  }

  bool run(const ModelStorage& storage, const BackwardArrays& arrays, const Slice& slice,
           const CancelToken* cancel) {
    const Model& model = storage.model();
    const std::size_t steps = arrays.shape.steps, q_stride = (steps + 1) * model.nq,
                      v_stride = (steps + 1) * model.nv;
    forward.load(storage, arrays.parameters, slice);
    for (int k = 0; k < arrays.cotangents; ++k) {
      parameter_bars[k].clear(model);
      std::fill_n(states[k].qpos, model.nv, Real(0));
      std::fill_n(states[k].qvel, model.nv, Real(0));
    }
    for (std::size_t t = steps; t-- > 0;) {
      if (cancel && cancel->cancelled()) return false;
      gather(arrays.qpos, q_stride, (t + 1) * model.nq, model.nq, slice, forward.qpos);
      for (int k = 0; k < arrays.cotangents; ++k) add_state_cotangent(model, arrays, slice, k, t + 1);
      gather(arrays.qpos, q_stride, t * model.nq, model.nq, slice, forward.qpos);
      gather(arrays.qvel, v_stride, t * model.nv, model.nv, slice, forward.qvel);
      gather(arrays.ctrl, steps * model.nu, t * model.nu, model.nu, slice, forward.ctrl);
      step(model, forward.parameters, forward.qpos, forward.qvel, forward.ctrl, true, forward.workspace,
           qpos_next, qvel_next);
      for (int k = 0; k < arrays.cotangents; ++k) {
        std::fill_n(ctrl_bar, model.nu, Real(0));
        step_adjoint(model, forward.parameters, forward.qpos, forward.qvel, forward.ctrl, forward.workspace,
                     workspace, states[k], ctrl_bar, parameter_bars[k]);
        if (arrays.ctrl_bar)
          scatter(ctrl_bar, steps * model.nu, t * model.nu, model.nu, slice,
                  arrays.ctrl_bar + k * arrays.shape.batch * steps * model.nu);
      }
    }
    gather(arrays.qpos, q_stride, 0, model.nq, slice, forward.qpos);
    for (int k = 0; k < arrays.cotangents; ++k) {
      add_state_cotangent(model, arrays, slice, k, 0);
      write_results(storage, arrays, slice, k);
    }
    return true;
  }

  // Adds the caller's cotangents of state t, projected on the tangent space at forward.qpos.
  void add_state_cotangent(const Model& model, const BackwardArrays& arrays, const Slice& slice, int k,
                           std::size_t t) {
    const std::size_t rows = arrays.shape.steps + 1, first = std::size_t(k) * arrays.shape.batch * rows;
    if (arrays.qvel_bar) {
      gather(arrays.qvel_bar + first * model.nv, rows * model.nv, t * model.nv, model.nv, slice, qvel_next);
      for (int i = 0; i < model.nv; ++i) states[k].qvel[i] += qvel_next[i];
    }
    if (!arrays.qpos_bar) return;
    gather(arrays.qpos_bar + first * model.nq, rows * model.nq, t * model.nq, model.nq, slice, ambient);
    for (int j = 0; j < model.njnt; ++j) {
      const Joint& joint = model.joints[j];
      const int linear = joint.type == JointType::free ? 3 : joint.type == JointType::ball ? 0 : 1;
      for (int i = 0; i < linear; ++i) states[k].qpos[joint.dof + i] += ambient[joint.qpos + i];
      if (joint.type > JointType::ball) continue;
      const Real* bar = ambient + joint.qpos + linear;
      const Quaternion<Real> q = load_quaternion(forward.qpos + joint.qpos + linear);
      add3(states[k].qpos + joint.dof + linear,
           tangent_cotangent(q, Quaternion<Real>{bar[0], bar[1], bar[2], bar[3]}));
    }
  }

  static Real inverse_length(const Real* q) {
    return Real(1) / sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
  }

  void write_results(const ModelStorage& storage, const BackwardArrays& arrays, const Slice& slice, int k) {
    const Model& model = storage.model();
    const std::size_t batch = arrays.shape.batch;
    if (arrays.qvel0_bar)
      scatter(states[k].qvel, model.nv, 0, model.nv, slice, arrays.qvel0_bar + k * batch * model.nv);
    if (arrays.qpos0_bar) {
      to_ambient(model, states[k].qpos);
      scatter(ambient, model.nq, 0, model.nq, slice, arrays.qpos0_bar + k * batch * model.nq);
    }
    for (int lane = 0; lane < slice.count; ++lane) {
      const int environment = slice.environment(lane);
      ParameterBarPointers out{};
      bool wanted = false;
      for (int p = 0; p < parameter_count; ++p) {
        if (!arrays.parameter_bars[p]) continue;
        const std::size_t size = storage.parameter_size(Parameter(p));
        out[p] = arrays.parameter_bars[p] + (k * batch + environment) * size;
        std::fill_n(out[p], size, 0.0);
        wanted = true;
      }
      if (wanted)
        add_parameter_cotangents(storage.parameters(),
                                 parameter_values(storage, arrays.parameters, environment), lane, model,
                                 parameter_bars[k], out);
    }
  }

  // The tangent cotangent of the start state as one by qpos; the model reads qpos / |qpos|.
  void to_ambient(const Model& model, const Real* tangent) {
    for (int j = 0; j < model.njnt; ++j) {
      const Joint& joint = model.joints[j];
      const int linear = joint.type == JointType::free ? 3 : joint.type == JointType::ball ? 0 : 1;
      for (int i = 0; i < linear; ++i) ambient[joint.qpos + i] = tangent[joint.dof + i];
      if (joint.type > JointType::ball) continue;
      const Real* q = forward.qpos + joint.qpos + linear;
      const Quaternion<Real> bar =
          ambient_cotangent(load_quaternion(q), inverse_length(q) * load3(tangent + joint.dof + linear));
      Real* out = ambient + joint.qpos + linear;
      out[0] = bar.w;
      out[1] = bar.x;
      out[2] = bar.y;
      out[3] = bar.z;
    }
  }
};

}  // namespace

bool backward(const ModelStorage& storage, const BackwardArrays& arrays, const Execution& execution) {
  return spread(slices(arrays.shape.batch), execution.threads,
                worker<BackwardRunner>(storage, arrays, execution, arrays.cotangents));
}

}  // namespace revolute
