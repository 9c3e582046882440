// The Jacobian of a step, row by row: one forward step, and a backward step for each pack of output coordinates.
#include "packs.hpp"

namespace revolute {

namespace {

struct JacobianRunner {
  Pack *qpos, *qvel, *ctrl, *qpos_next, *qvel_next, *ctrl_bar;
  Parameters<Pack> parameters, parameters_bar;
  StepWorkspace<Pack> step_workspace;
  StepAdjointWorkspace<Pack> adjoint_workspace;
  StateCotangent<Pack> state_bar;

  JacobianRunner(const Model& model, Arena& arena)
      : qpos(arena.take<Pack>(model.nq)),
        qvel(arena.take<Pack>(model.nv)),
        ctrl(arena.take<Pack>(model.nu)),
        qpos_next(arena.take<Pack>(model.nq)),
        qvel_next(arena.take<Pack>(model.nv)),
        ctrl_bar(arena.take<Pack>(model.nu)),
        parameters(model, arena),
        parameters_bar(model, arena),
        step_workspace(model, arena),
        adjoint_workspace(model, arena),
        state_bar(model, arena) {}

  bool run(const ModelStorage& storage, const JacobianArrays& arrays, const Slice& slice,
           const CancelToken* cancel) {
    const Model& model = storage.model();
    const Slice same = {slice.first, 1};  // every lane holds this environment
    for (int lane = 0; lane < lanes; ++lane)
      load_parameters(storage.parameters(), parameter_values(storage, arrays.parameters, slice.first), lane,
                      model, parameters);
    gather(arrays.qpos, model.nq, 0, model.nq, same, qpos);
    gather(arrays.qvel, model.nv, 0, model.nv, same, qvel);
    gather(arrays.ctrl, model.nu, 0, model.nu, same, ctrl);
    step(model, parameters, qpos, qvel, ctrl, true, step_workspace, qpos_next, qvel_next);
    parameters_bar.clear(model);
    for (int row = 0; row < 2 * model.nv; row += lanes) {
      if (cancel && cancel->cancelled()) return false;
      pull_back(model, arrays, slice.first, row);
    }
    return true;
  }

  // Rows first .. first + lanes - 1 of A and B, one in each lane.
  void pull_back(const Model& model, const JacobianArrays& arrays, int environment, int first) {
    const int nv = model.nv, nx = 2 * nv;
    std::fill_n(state_bar.qpos, nv, Pack(0));
    std::fill_n(state_bar.qvel, nv, Pack(0));
    std::fill_n(ctrl_bar, model.nu, Pack(0));
    const int rows = std::min(lanes, nx - first);
    for (int lane = 0; lane < rows; ++lane) {
      const int i = first + lane;
      set_lane(i < nv ? state_bar.qpos[i] : state_bar.qvel[i - nv], lane, 1.0);
    }
    step_adjoint(model, parameters, qpos, qvel, ctrl, step_workspace, adjoint_workspace, state_bar, ctrl_bar,
                 parameters_bar);
    for (int lane = 0; lane < rows; ++lane) {
      double* A = arrays.A + (std::size_t(environment) * nx + first + lane) * nx;
      double* B = arrays.B + (std::size_t(environment) * nx + first + lane) * model.nu;
      for (int i = 0; i < nv; ++i) {
        A[i] = get_lane(state_bar.qpos[i], lane);
        A[nv + i] = get_lane(state_bar.qvel[i], lane);
      }
      for (int i = 0; i < model.nu; ++i) B[i] = get_lane(ctrl_bar[i], lane);
    }
  }
};

}  // namespace

bool jacobian(const ModelStorage& storage, const JacobianArrays& arrays, const Execution& execution) {
  std::vector<Slice> environments;
  for (int b = 0; b < arrays.batch; ++b) environments.push_back({b, 1});
  return spread(environments, execution.threads, [&] {
    return [&, runner = std::make_unique<LazyRunner<JacobianRunner>>(storage.model())](const Slice& slice) {
      return (**runner).run(storage, arrays, slice, execution.cancel);
    };
  });
}

}  // namespace revolute
