// The Jacobian of a step: one forward step, and a backward step for each row of qvel+. The rows of qpos+ follow from these,
// since a step ends with  qpos+ = qpos (+) h qvel+. With the integrator rk4 all rows are pulled back.
#include <limits>

#include "forward_runner.hpp"
#include "revolute/sound_inputs.hpp"

namespace revolute {

namespace {

// The row and environment in each lane of a Bar: either several rows of one environment side by side, over a step in double,
// or the same row of several environments. Both give the same bits as one row at a time.
template <class Real, class Bar>
struct RowSeats {
  static constexpr bool side_by_side = Width<Real>::value == 1;
  static constexpr int rows_at_once = side_by_side ? Width<Bar>::value : 1;
  Slice slice;

  int used(int first, int end) const {
    return side_by_side ? std::min(rows_at_once, end - first) : slice.count;
  }
  int row(int first, int lane) const { return side_by_side ? first + lane : first; }
};

// After the full packs, the remaining rows are pulled back by a narrow pack if they fit: a backward step of two lanes
// takes six sevenths of the time of one of eight.
using NarrowPack = Lanes<2>;

// Environments in packs, or one by one if rows side by side take fewer backward steps.
std::vector<Slice> jacobian_slices(const Model& model, int batch) {
  const int nv = model.nv, steps_side_by_side = (nv + lanes - 1) / lanes;
  std::vector<Slice> out;
  for (const Slice& slice : slices(model, batch)) {
    if (slice.count * steps_side_by_side >= nv) {
      out.push_back(slice);
    } else {
      for (int i = 0; i < slice.count; ++i) out.push_back({slice.first + i, 1});
    }
  }
  return out;
}

// Size of a state: tangent of the configuration, velocities, activations.
int state_size(const Model& model) { return model.nv + velocities(model); }

struct Row {
  double *A, *B;
};
Row at(const Model& model, const JacobianArrays& arrays, int environment, int i) {
  const std::size_t nx = state_size(model), row = environment * nx + i;
  return {arrays.A + row * nx, arrays.B + row * model.nu};
}

// Computes rows of A and B by the adjoint of the step.
template <class Bar>
struct RowPullback {
  Bar* ctrl_bar;
  InputArrays<Bar> input_bars;
  Parameters<Bar> parameters_bar;
  StepAdjointWorkspace<Bar> workspace;
  StateCotangent<Bar> state_bar;

  RowPullback(const Model& model, Arena& arena)
      : ctrl_bar(arena.take<Bar>(model.nu)),
        input_bars(model, arena),
        parameters_bar(model, arena),
        workspace(model, arena),
        state_bar(model, arena) {
    input_bars.attach_bars(parameters_bar);
  }

  // Computes the rows in the seats from `first` on; returns the row after them.
  template <class Real>
  int run(const Model& model, const JacobianArrays& arrays, const Slice& slice,
          const ForwardRunner<Real>& step, int first) {
    const RowSeats<Real, Bar> seats = {slice};
    const int nv = model.nv, used = seats.used(first, state_size(model));
    parameters_bar.clear(model);
    std::fill_n(state_bar.qpos, nv, Bar(0));
    std::fill_n(state_bar.qvel, velocities(model), Bar(0));
    std::fill_n(ctrl_bar, model.nu, Bar(0));
    for (int lane = 0; lane < used; ++lane) {
      const int i = seats.row(first, lane);
      set_lane(i < nv ? state_bar.qpos[i] : state_bar.qvel[i - nv], lane, 1.0);
    }
    step_adjoint(model, step.parameters, step.qpos, step.qvel, step.ctrl, step.workspace, workspace,
                 state_bar, ctrl_bar, parameters_bar);
    for (int lane = 0; lane < used; ++lane) {
      const Row row = at(model, arrays, slice.environment(lane), seats.row(first, lane));
      for (int i = 0; i < nv; ++i) row.A[i] = get_lane(state_bar.qpos[i], lane);
      for (int i = 0; i < velocities(model); ++i) row.A[nv + i] = get_lane(state_bar.qvel[i], lane);
      for (int i = 0; i < model.nu; ++i) row.B[i] = get_lane(ctrl_bar[i], lane);
    }
    return first + seats.rows_at_once;
  }
};

// Real holds one environment's step, whose rows are pulled back side by side, or the steps of a pack of environments.
template <class Real>
struct JacobianRunner {
  ForwardRunner<Real> forward;
  Real *qpos_next, *qvel_next;
  double* velocity;
  Pack* unit;
  RowPullback<Pack> pullback;
  RowPullback<NarrowPack> narrow_pullback;
  StateCotangent<Pack> state_bar;

  JacobianRunner(const Model& model, Arena& arena)
      : forward(model, arena),
        qpos_next(arena.take<Real>(model.nq)),
        qvel_next(arena.take<Real>(velocities(model))),
        velocity(arena.take<double>(model.nv)),
        unit(arena.take<Pack>(model.nv)),
        pullback(model, arena),
        narrow_pullback(model, arena),
        state_bar(model, arena) {}

  bool run(const ModelStorage& storage, const JacobianArrays& arrays, const Slice& slice,
           const CancelToken* cancel) {
    const Model& model = model_for(storage, arrays.parameters);
    forward.load(storage, arrays.parameters, slice);
    forward.gather_state(model, {arrays.qpos, arrays.qvel}, 1, 0, slice);
    forward.load_ctrl(model, arrays.ctrl, {1, 1}, 0, slice);
    forward.inputs.attach(model, [&](int i) { return arrays.inputs[i] != nullptr; }, forward.parameters);
    for (int i = 0; i < input_count; ++i)
      if (const int size = input_size(model, i); arrays.inputs[i])
        gather(arrays.inputs[i], size, 0, size, slice, forward.inputs.of[i]);
    step(model, forward.parameters, forward.qpos, forward.qvel, forward.ctrl, true, forward.workspace,
         qpos_next, qvel_next);
    // an impact ends the motion at the old velocity, so qpos+ also depends on the state through the time of the impact
    const Impact<Real>& impact = forward.workspace.impact;
    const bool by_velocity = !is_runge_kutta(model);  // whether qpos+ = qpos (+) h qvel+
    for (int row = impact.any || !by_velocity ? 0 : model.nv; row < state_size(model);) {
      if (cancel && cancel->cancelled()) return false;
      row = pull_back(model, arrays, slice, row);
    }
    const auto through_moment = impact.inside(model);
    for (int lane = 0; lane < slice.count; ++lane) {
      if (by_velocity && !get_lane(through_moment, lane))
        position_rows(model, arrays, slice.environment(lane), lane);
      mark(model, arrays, slice.environment(lane));
    }
    return true;
  }

  static void mark(const Model& model, const JacobianArrays& arrays, int environment) {
    const std::size_t nx = state_size(model), by_state = nx * nx, by_ctrl = nx * model.nu;
    const Row first = at(model, arrays, environment, 0);
    const bool finite = all_finite(first.A, by_state) && all_finite(first.B, by_ctrl);
    arrays.finite[environment] = finite;
    if (finite) return;
    std::fill_n(first.A, by_state, std::numeric_limits<double>::quiet_NaN());
    std::fill_n(first.B, by_ctrl, std::numeric_limits<double>::quiet_NaN());
  }

  // Pulls back some rows from `first` on; returns the row after them.
  int pull_back(const Model& model, const JacobianArrays& arrays, const Slice& slice, int first) {
    if constexpr (Width<Real>::value == 1)
      if (state_size(model) - first <= Width<NarrowPack>::value)
        return narrow_pullback.run(model, arrays, slice, forward, first);
    return pullback.run(model, arrays, slice, forward, first);
  }

  // Computes the position rows of the environment in one lane from its velocity rows, which must be there already:
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
  // Computes one position row; its entries of E are in this lane of state_bar.
  void position_row(const Model& model, const JacobianArrays& arrays, int environment, int i,
                    int lane) const {
    const int nv = model.nv;
    const Row row = at(model, arrays, environment, i);
    std::fill_n(row.A, state_size(model), 0.0);
    std::fill_n(row.B, model.nu, 0.0);
    for (int k = 0; k < nv; ++k) {
      row.A[k] += get_lane(state_bar.qpos[k], lane);
      const double E_v = get_lane(state_bar.qvel[k], lane);
      if (E_v == 0) continue;
      const Row velocity_row = at(model, arrays, environment, nv + k);
      for (int j = 0; j < state_size(model); ++j) row.A[j] += E_v * velocity_row.A[j];
      for (int j = 0; j < model.nu; ++j) row.B[j] += E_v * velocity_row.B[j];
    }
  }
};

}  // namespace

bool jacobian(const ModelStorage& storage, const JacobianArrays& arrays, const Execution& execution) {
  const Model& model = model_for(storage, arrays.parameters);
  const double steps = double(arrays.batch) * (1 + state_size(model));
  return spread(jacobian_slices(model, arrays.batch), worthwhile_threads(execution, model, steps),
                worker<JacobianRunner>(storage, arrays, execution));
}

}  // namespace revolute
