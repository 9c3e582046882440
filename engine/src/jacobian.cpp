// The Jacobian of a step: one forward step, and a backward step for each row of qvel+. The rows of qpos+ follow from these,
// since a step ends with  qpos+ = qpos (+) h qvel+.
#include <limits>

#include "forward_runner.hpp"
#include "revolute/sound_inputs.hpp"

namespace revolute {

namespace {

// Which row of whose Jacobian sits in each lane: rows of one environment side by side, or the same row of several
// environments. Either gives the bits of one by one.
struct RowSeats {
  Slice slice;

  bool side_by_side() const { return slice.count == 1; }
  int rows_at_once() const { return side_by_side() ? lanes : 1; }
  int used(int first, int end) const { return side_by_side() ? std::min(lanes, end - first) : slice.count; }
  int row(int first, int lane) const { return side_by_side() ? first + lane : first; }
};

// Environments in packs, but where rows side by side take fewer backward steps.
std::vector<Slice> jacobian_slices(int nv, int batch) {
  const int steps_side_by_side = (nv + lanes - 1) / lanes;
  std::vector<Slice> out;
  for (const Slice& slice : slices(batch)) {
    if (slice.count * steps_side_by_side >= nv) {
      out.push_back(slice);
    } else {
      for (int i = 0; i < slice.count; ++i) out.push_back({slice.first + i, 1});
    }
  }
  return out;
}

// Real: one environment's step, whose rows are pulled back side by side, or a pack of environments'.
template <class Real>
struct JacobianRunner {
  ForwardRunner<Real> forward;
  Real *qpos_next, *qvel_next;
  double* velocity;
  Pack *unit, *ctrl_bar;
  Parameters<Pack> parameters_bar;
  StepAdjointWorkspace<Pack> adjoint_workspace;
  StateCotangent<Pack> state_bar;

  JacobianRunner(const Model& model, Arena& arena)
      : forward(model, arena),
        qpos_next(arena.take<Real>(model.nq)),
        qvel_next(arena.take<Real>(model.nv)),
        velocity(arena.take<double>(model.nv)),
        unit(arena.take<Pack>(model.nv)),
        ctrl_bar(arena.take<Pack>(model.nu)),
        parameters_bar(model, arena),
        adjoint_workspace(model, arena),
        state_bar(model, arena) {}

  bool run(const ModelStorage& storage, const JacobianArrays& arrays, const Slice& slice,
           const CancelToken* cancel) {
    const Model& model = model_for(storage, arrays.parameters);
    const RowSeats seats = {slice};
    forward.load(storage, arrays.parameters, slice);
    forward.gather_state(model, {arrays.qpos, arrays.qvel}, 1, 0, slice);
    forward.load_ctrl(model, arrays.ctrl, 1, 0, slice);
    step(model, forward.parameters, forward.qpos, forward.qvel, forward.ctrl, true, forward.workspace,
         qpos_next, qvel_next);
    parameters_bar.clear(model);
    // an impact ends the motion at the old velocity, so qpos+ depends on the state by its moment as well
    const Impact<Real>& impact = forward.workspace.impact;
    for (int row = impact.any ? 0 : model.nv; row < 2 * model.nv; row += seats.rows_at_once()) {
      if (cancel && cancel->cancelled()) return false;
      pull_back(model, arrays, seats, row);
    }
    const auto through_moment = less(Real(0), impact.time);
    for (int lane = 0; lane < slice.count; ++lane) {
      if (!get_lane(through_moment, lane)) position_rows(model, arrays, slice.environment(lane), lane);
      mark(model, arrays, slice.environment(lane));
    }
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

  // The rows of A and B in the seats from `first` on, by the adjoint of the step.
  void pull_back(const Model& model, const JacobianArrays& arrays, const RowSeats& seats, int first) {
    const int nv = model.nv, used = seats.used(first, 2 * nv);
    std::fill_n(state_bar.qpos, nv, Pack(0));
    std::fill_n(state_bar.qvel, nv, Pack(0));
    std::fill_n(ctrl_bar, model.nu, Pack(0));
    for (int lane = 0; lane < used; ++lane) {
      const int i = seats.row(first, lane);
      set_lane(i < nv ? state_bar.qpos[i] : state_bar.qvel[i - nv], lane, 1.0);
    }
    step_adjoint(model, forward.parameters, forward.qpos, forward.qvel, forward.ctrl, forward.workspace,
                 adjoint_workspace, state_bar, ctrl_bar, parameters_bar);
    for (int lane = 0; lane < used; ++lane) {
      const Row row = at(model, arrays, seats.slice.environment(lane), seats.row(first, lane));
      for (int i = 0; i < nv; ++i) {
        row.A[i] = get_lane(state_bar.qpos[i], lane);
        row.A[nv + i] = get_lane(state_bar.qvel[i], lane);
      }
      for (int i = 0; i < model.nu; ++i) row.B[i] = get_lane(ctrl_bar[i], lane);
    }
  }

  // The rows of positions of the environment in one lane, from those of the velocities that are there already:
  //   d qpos+ = E_q d qpos + E_v d qvel+,   where E has a block for each joint.
  void position_rows(const Model& model, const JacobianArrays& arrays, int environment, int of_lane) {
    const int nv = model.nv;
    for (int k = 0; k < nv; ++k) velocity[k] = get_lane(qvel_next[k], of_lane);
    for (int first = 0; first < nv; first += lanes) {
      std::fill_n(state_bar.qpos, nv, Pack(0));
      std::fill_n(state_bar.qvel, nv, Pack(0));
      std::fill_n(unit, nv, Pack(0));
      const int rows = std::min(lanes, nv - first);
      for (int lane = 0; lane < rows; ++lane) set_lane(unit[first + lane], lane, 1.0);
      integration_adjoint(model, model.timestep, velocity, unit, state_bar.qpos, state_bar.qvel);
      for (int lane = 0; lane < rows; ++lane) position_row(model, arrays, environment, first + lane, lane);
    }
  }
  // One of them, whose entries of E are in this lane of state_bar.
  void position_row(const Model& model, const JacobianArrays& arrays, int environment, int i,
                    int lane) const {
    const int nv = model.nv;
    const Row row = at(model, arrays, environment, i);
    std::fill_n(row.A, 2 * nv, 0.0);
    std::fill_n(row.B, model.nu, 0.0);
    for (int k = 0; k < nv; ++k) {
      row.A[k] += get_lane(state_bar.qpos[k], lane);
      const double E_v = get_lane(state_bar.qvel[k], lane);
      if (E_v == 0) continue;
      const Row velocity_row = at(model, arrays, environment, nv + k);
      for (int j = 0; j < 2 * nv; ++j) row.A[j] += E_v * velocity_row.A[j];
      for (int j = 0; j < model.nu; ++j) row.B[j] += E_v * velocity_row.B[j];
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
  const Model& model = model_for(storage, arrays.parameters);
  return spread(jacobian_slices(model.nv, arrays.batch), execution.threads,
                worker<JacobianRunner>(storage, arrays, execution));
}

}  // namespace revolute
