// The Jacobian of a step: one forward step, and a backward step for each pack of rows of qvel+. The rows of qpos+ follow
// from these, since a step ends with  qpos+ = qpos (+) h qvel+.
#include <limits>

#include "packs.hpp"

namespace revolute {

namespace {

struct JacobianRunner {
  Pack *qpos, *qvel, *ctrl, *qpos_next, *qvel_next, *unit, *ctrl_bar;
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
        unit(arena.take<Pack>(model.nv)),
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
    load_parameters(storage.parameters(), parameter_values(storage, arrays.parameters, slice.first),
                    every_lane, model, parameters);
    gather(arrays.qpos, model.nq, 0, model.nq, same, qpos);
    gather(arrays.qvel, model.nv, 0, model.nv, same, qvel);
    gather(arrays.ctrl, model.nu, 0, model.nu, same, ctrl);
    step(model, parameters, qpos, qvel, ctrl, true, step_workspace, qpos_next, qvel_next);
    parameters_bar.clear(model);
    // an impact ends the motion at the old velocity, so qpos+ depends on the state by its moment as well
    const bool through_velocity = !step_workspace.impact.any;
    const int first_row = through_velocity ? model.nv : 0;
    for (int row = first_row; row < 2 * model.nv; row += lanes) {
      if (cancel && cancel->cancelled()) return false;
      pull_back(model, arrays, slice.first, row);
    }
    if (through_velocity)
      for (int row = 0; row < model.nv; row += lanes) position_rows(model, arrays, slice.first, row);
    mark(model, arrays, slice.first);
    return true;
  }

  static void mark(const Model& model, const JacobianArrays& arrays, int environment) {
    const std::size_t nx = 2 * model.nv, by_state = nx * nx, by_ctrl = nx * model.nu;
    const Row first = at(model, arrays, environment, 0);
    const bool finite = all_finite(first.A, by_state) && all_finite(first.B, by_ctrl);
    arrays.finite[environment] = finite;
    if (finite) return;
    std::fill_n(first.A, by_state, std::numeric_limits<double>::quiet_NaN());
    std::fill_n(first.B, by_ctrl, std::numeric_limits<double>::quiet_NaN());
  }

  // Rows first .. first + lanes - 1 of A and B, one in each lane, by the adjoint of the step.
  void pull_back(const Model& model, const JacobianArrays& arrays, int environment, int first) {
    const int nv = model.nv;
    std::fill_n(state_bar.qpos, nv, Pack(0));
    std::fill_n(state_bar.qvel, nv, Pack(0));
    std::fill_n(ctrl_bar, model.nu, Pack(0));
    const int rows = std::min(lanes, 2 * nv - first);
    for (int lane = 0; lane < rows; ++lane) {
      const int i = first + lane;
      set_lane(i < nv ? state_bar.qpos[i] : state_bar.qvel[i - nv], lane, 1.0);
    }
    step_adjoint(model, parameters, qpos, qvel, ctrl, step_workspace, adjoint_workspace, state_bar, ctrl_bar,
                 parameters_bar);
    for (int lane = 0; lane < rows; ++lane) {
      const Row row = at(model, arrays, environment, first + lane);
      for (int i = 0; i < nv; ++i) {
        row.A[i] = get_lane(state_bar.qpos[i], lane);
        row.A[nv + i] = get_lane(state_bar.qvel[i], lane);
      }
      for (int i = 0; i < model.nu; ++i) row.B[i] = get_lane(ctrl_bar[i], lane);
    }
  }

  // The same rows of a position, from those of the velocities that are there already:
  //   d qpos+ = E_q d qpos + E_v d qvel+,   where E has a block for each joint.
  void position_rows(const Model& model, const JacobianArrays& arrays, int environment, int first) {
    const int nv = model.nv;
    std::fill_n(state_bar.qpos, nv, Pack(0));
    std::fill_n(state_bar.qvel, nv, Pack(0));
    std::fill_n(unit, nv, Pack(0));
    const int rows = std::min(lanes, nv - first);
    for (int lane = 0; lane < rows; ++lane) set_lane(unit[first + lane], lane, 1.0);
    integration_adjoint(model, Pack(model.timestep), qvel_next, unit, state_bar.qpos, state_bar.qvel);
    for (int lane = 0; lane < rows; ++lane) {
      const Row row = at(model, arrays, environment, first + lane);
      std::fill_n(row.A, 2 * nv, 0.0);
      std::fill_n(row.B, model.nu, 0.0);
      for (int k = 0; k < nv; ++k) {
        row.A[k] += get_lane(state_bar.qpos[k], lane);
        const double E_v = get_lane(state_bar.qvel[k], lane);
        if (E_v == 0) continue;
        const Row velocity = at(model, arrays, environment, nv + k);
        for (int i = 0; i < 2 * nv; ++i) row.A[i] += E_v * velocity.A[i];
        for (int i = 0; i < model.nu; ++i) row.B[i] += E_v * velocity.B[i];
      }
    }
  }

  struct Row {
    double *A, *B;
  };
  static Row at(const Model& model, const JacobianArrays& arrays, int environment, int i) {
    const std::size_t nx = 2 * model.nv, row = environment * nx + i;
    return {arrays.A + row * nx, arrays.B + row * model.nu};
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
