// One thread's workspace for forward steps, one pack at a time.
#pragma once

#include <limits>

#include "packs.hpp"

namespace revolute {

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
      load_parameters(storage.parameters(), parameter_values(storage, inputs, slice.environment(lane)), lane,
                      storage.model(), parameters);
  }

  bool run(const ModelStorage& storage, const RolloutArrays& arrays, const Slice& slice,
           const CancelToken* cancel) {
    const Model& model = storage.model();
    const std::size_t steps = arrays.shape.steps, q_stride = (steps + 1) * model.nq,
                      v_stride = (steps + 1) * model.nv;
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

}  // namespace revolute
