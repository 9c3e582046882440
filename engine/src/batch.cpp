// Packs of environments: gather, run the steps, scatter; spread over threads.
#include "revolute/batch.hpp"

#include <algorithm>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "revolute/scalar/lanes.hpp"
#include "revolute/step.hpp"

#ifndef REVOLUTE_LANES
#define REVOLUTE_LANES 4
#endif

namespace revolute {

namespace {

constexpr int lanes = REVOLUTE_LANES;
using Pack = Lanes<lanes>;

// Environments first .. first + count - 1 of the batch. Lanes beyond count repeat the last environment.
struct Slice {
  int first, count;
  int environment(int lane) const { return first + std::min(lane, count - 1); }
};

template <class Real>
void gather(const double* array, std::size_t stride, std::size_t offset, int size, const Slice& slice, Real* out) {
  for (int lane = 0; lane < Width<Real>::value; ++lane) {
    const double* row = array + slice.environment(lane) * stride + offset;
    for (int i = 0; i < size; ++i) set_lane(out[i], lane, row[i]);
  }
}
template <class Real>
void scatter(const Real* values, std::size_t stride, std::size_t offset, int size, const Slice& slice, double* array) {
  for (int lane = 0; lane < slice.count; ++lane) {
    double* row = array + slice.environment(lane) * stride + offset;
    for (int i = 0; i < size; ++i) row[i] = get_lane(values[i], lane);
  }
}

ParameterPointers parameter_values(const ModelStorage& storage, const ParameterInputs& inputs, int environment) {
  ParameterPointers out;
  for (int p = 0; p < parameter_count; ++p) {
    const std::size_t size = storage.parameter_size(Parameter(p));
    out[p] = !inputs[p].values ? storage.parameters().defaults[p].data() : inputs[p].values + (inputs[p].rows > 1 ? environment * size : 0);
  }
  return out;
}

// Workspace of one thread for forward steps of one pack at a time.
template <class Real>
struct ForwardRunner {
  Real *qpos, *qvel, *ctrl;
  Parameters<Real> parameters;
  StepWorkspace<Real> workspace;

  ForwardRunner(const Model& model, Arena& arena)
      : qpos(arena.take<Real>(model.nq)),
        qvel(arena.take<Real>(model.nv)),
        ctrl(arena.take<Real>(model.nu)),
        parameters(model, arena),
        workspace(model, arena) {}

  void load(const ModelStorage& storage, const ParameterInputs& inputs, const Slice& slice) {
    for (int lane = 0; lane < Width<Real>::value; ++lane)
      load_parameters(storage.parameters(), parameter_values(storage, inputs, slice.environment(lane)), lane, storage.model(), parameters);
  }

  bool run(const ModelStorage& storage, const RolloutArrays& arrays, const Slice& slice, const CancelToken* cancel) {
    const Model& model = storage.model();
    const std::size_t steps = arrays.shape.steps, q_stride = (steps + 1) * model.nq, v_stride = (steps + 1) * model.nv;
    load(storage, arrays.parameters, slice);
    gather(arrays.qpos0, model.nq, 0, model.nq, slice, qpos);
    gather(arrays.qvel0, model.nv, 0, model.nv, slice, qvel);
    scatter(qpos, q_stride, 0, model.nq, slice, arrays.qpos);
    scatter(qvel, v_stride, 0, model.nv, slice, arrays.qvel);
    for (int lane = 0; lane < slice.count; ++lane) {
      arrays.status[slice.environment(lane)] = std::int32_t(Status::completed);
      arrays.diverged_step[slice.environment(lane)] = -1;
    }
    for (std::size_t t = 0; t < steps; ++t) {
      if (cancel && cancel->cancelled()) return false;
      gather(arrays.ctrl, steps * model.nu, t * model.nu, model.nu, slice, ctrl);
      step(model, parameters, qpos, qvel, ctrl, false, workspace, qpos, qvel);
      note_divergence(model, arrays, slice, t);
      scatter(qpos, q_stride, (t + 1) * model.nq, model.nq, slice, arrays.qpos);
      scatter(qvel, v_stride, (t + 1) * model.nv, model.nv, slice, arrays.qvel);
    }
    return true;
  }

  // An environment with a non-finite state becomes NaN throughout, so that no later number looks like a result.
  void note_divergence(const Model& model, const RolloutArrays& arrays, const Slice& slice, std::size_t t) {
    MaskOf<Real> finite = is_finite(qpos[0]);
    for (int i = 1; i < model.nq; ++i) finite = finite & is_finite(qpos[i]);
    for (int i = 0; i < model.nv; ++i) finite = finite & is_finite(qvel[i]);
    if (all(finite)) return;
    const Real nan(std::numeric_limits<double>::quiet_NaN());
    for (int i = 0; i < model.nq; ++i) qpos[i] = select(finite, qpos[i], nan);
    for (int i = 0; i < model.nv; ++i) qvel[i] = select(finite, qvel[i], nan);
    for (int lane = 0; lane < slice.count; ++lane) {
      const int environment = slice.environment(lane);
      if (get_lane(finite, lane) || arrays.diverged_step[environment] >= 0) continue;
      arrays.status[environment] = std::int32_t(Status::diverged);
      arrays.diverged_step[environment] = std::int64_t(t);
    }
  }
};

// Workspace of one thread for the backward pass of one pack: a forward step replayed, then pulled back K times.
template <class Real>
struct BackwardRunner {
  ForwardRunner<Real> forward;
  StepAdjointWorkspace<Real> workspace;
  Real *qpos_next, *qvel_next, *ctrl_bar, *ambient;
  std::vector<StateCotangent<Real>> states;
  std::vector<Parameters<Real>> parameter_bars;

  BackwardRunner(const Model& model, int cotangents, Arena& arena) : forward(model, arena), workspace(model, arena) {
    qpos_next = arena.take<Real>(model.nq);
    qvel_next = arena.take<Real>(model.nv);
    ctrl_bar = arena.take<Real>(model.nu);
    ambient = arena.take<Real>(model.nq);
    for (int k = 0; k < cotangents; ++k) {
      states.emplace_back(model, arena);
      parameter_bars.emplace_back(model, arena);
    }
  }

  bool run(const ModelStorage& storage, const BackwardArrays& arrays, const Slice& slice, const CancelToken* cancel) {
    const Model& model = storage.model();
    const std::size_t steps = arrays.shape.steps, q_stride = (steps + 1) * model.nq, v_stride = (steps + 1) * model.nv;
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
      step(model, forward.parameters, forward.qpos, forward.qvel, forward.ctrl, true, forward.workspace, qpos_next, qvel_next);
      for (int k = 0; k < arrays.cotangents; ++k) {
        std::fill_n(ctrl_bar, model.nu, Real(0));
        step_adjoint(model, forward.parameters, forward.qpos, forward.qvel, forward.ctrl, forward.workspace, workspace, states[k], ctrl_bar,
                     parameter_bars[k]);
        if (arrays.ctrl_bar)
          scatter(ctrl_bar, steps * model.nu, t * model.nu, model.nu, slice, arrays.ctrl_bar + k * arrays.shape.batch * steps * model.nu);
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
  void add_state_cotangent(const Model& model, const BackwardArrays& arrays, const Slice& slice, int k, std::size_t t) {
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
      add3(states[k].qpos + joint.dof + linear, tangent_cotangent(q, Quaternion<Real>{bar[0], bar[1], bar[2], bar[3]}));
    }
  }

  static Real inverse_length(const Real* q) { return Real(1) / sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]); }

  void write_results(const ModelStorage& storage, const BackwardArrays& arrays, const Slice& slice, int k) {
    const Model& model = storage.model();
    const std::size_t batch = arrays.shape.batch;
    if (arrays.qvel0_bar) scatter(states[k].qvel, model.nv, 0, model.nv, slice, arrays.qvel0_bar + k * batch * model.nv);
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
        add_parameter_cotangents(storage.parameters(), parameter_values(storage, arrays.parameters, environment), lane, model,
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
      const Quaternion<Real> bar = ambient_cotangent(load_quaternion(q), inverse_length(q) * load3(tangent + joint.dof + linear));
      Real* out = ambient + joint.qpos + linear;
      out[0] = bar.w;
      out[1] = bar.x;
      out[2] = bar.y;
      out[3] = bar.z;
    }
  }
};

// Environments in packs of `lanes`; a single one that is left over runs alone.
std::vector<Slice> slices(int batch) {
  std::vector<Slice> out;
  for (int first = 0; first < batch; first += lanes) out.push_back({first, std::min(lanes, batch - first)});
  return out;
}

template <class Runner, class... Extra>
class LazyRunner {
 public:
  LazyRunner(const Model& model, Extra... extra) : arena_(measure(model, extra...)), runner_(model, extra..., arena_) {}
  Runner& operator*() { return runner_; }

 private:
  static std::size_t measure(const Model& model, Extra... extra) {
    Arena counting;
    Runner sized(model, extra..., counting);
    return counting.used();
  }
  Arena arena_;
  Runner runner_;
};

// Calls work(slice) for all slices on up to `threads` threads; `make_worker` gives each thread its own workspace.
template <class MakeWorker>
bool spread(const std::vector<Slice>& work, int threads, MakeWorker make_worker) {
  std::atomic<std::size_t> next{0};
  std::atomic<bool> completed{true};
  std::exception_ptr failure;
  std::mutex failure_mutex;
  const auto run = [&] {
    try {
      auto worker = make_worker();
      for (std::size_t i = next++; i < work.size() && completed; i = next++)
        if (!worker(work[i])) completed = false;
    } catch (...) {
      const std::lock_guard<std::mutex> lock(failure_mutex);
      failure = std::current_exception();
      completed = false;
    }
  };
  std::vector<std::thread> others;
  const int count = std::min<int>(threads, int(work.size()));
  for (int i = 1; i < count; ++i) others.emplace_back(run);
  run();
  for (std::thread& thread : others) thread.join();
  if (failure) std::rethrow_exception(failure);
  return completed;
}

// A worker that has a runner for single environments and one for packs, each made when first needed.
template <template <class> class Runner, class Arrays, class... Extra>
auto worker(const ModelStorage& storage, const Arrays& arrays, const Execution& execution, Extra... extra) {
  return [&storage, &arrays, &execution, extra...] {
    using Single = LazyRunner<Runner<double>, Extra...>;
    using Packed = LazyRunner<Runner<Pack>, Extra...>;
    return [&storage, &arrays, &execution, single = std::unique_ptr<Single>(), packed = std::unique_ptr<Packed>(),
            extra...](const Slice& slice) mutable {
      if (slice.count == 1) {
        if (!single) single = std::make_unique<Single>(storage.model(), extra...);
        return (**single).run(storage, arrays, slice, execution.cancel);
      }
      if (!packed) packed = std::make_unique<Packed>(storage.model(), extra...);
      return (**packed).run(storage, arrays, slice, execution.cancel);
    };
  };
}

}  // namespace

bool rollout(const ModelStorage& storage, const RolloutArrays& arrays, const Execution& execution) {
  return spread(slices(arrays.shape.batch), execution.threads, worker<ForwardRunner>(storage, arrays, execution));
}

bool backward(const ModelStorage& storage, const BackwardArrays& arrays, const Execution& execution) {
  return spread(slices(arrays.shape.batch), execution.threads, worker<BackwardRunner>(storage, arrays, execution, arrays.cotangents));
}

}  // namespace revolute
