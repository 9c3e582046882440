// Measures numbers at given states, and pulls their cotangents back: kinematics, and the sensors of a trajectory.
#include "ambient_cotangents.hpp"
#include "revolute/stages/measurement.hpp"
#include "seats.hpp"

namespace revolute {

// The cotangents of a single environment fill a pack.
inline bool fills_pack(const MeasureArrays& arrays, const Slice& slice) {
  return slice.count > 1 || arrays.cotangents > 1;
}

namespace {

template <class Real>
struct MeasureRunner {
  Real *qpos, *qvel, *ctrl, *values, *bar, *tangent, *qvel_bar, *ctrl_bar, *ambient;
  InputArrays<Real> inputs;
  Parameters<Real> parameters;
  Measurement<Real> at;
  MeasurementAdjointWorkspace<Real> adjoint;
  std::vector<Parameters<Real>> parameter_bars;
  std::vector<InputArrays<Real>> input_bars;

  MeasureRunner(const Model& model, const Probes* probes, int groups, Arena& arena)
      : inputs(model, arena),
        parameters(model, arena),
        at(model, *probes, arena),
        adjoint(model, *probes, arena) {
    for (Real** array : {&qpos, &ambient}) *array = arena.take<Real>(model.nq);
    for (Real** array : {&qvel, &qvel_bar}) *array = arena.take<Real>(velocities(model));
    tangent = arena.take<Real>(model.nv);
    for (Real** array : {&ctrl, &ctrl_bar}) *array = arena.take<Real>(model.nu);
    for (Real** array : {&values, &bar}) *array = arena.take<Real>(probes->size);
    for (int g = 0; g < groups; ++g) {
      parameter_bars.emplace_back(model, arena);
      input_bars.emplace_back(model, arena);
      input_bars.back().attach_bars(parameter_bars.back());
    }
  }

  bool run(const ModelStorage& storage, const MeasureArrays& arrays, const Slice& slice,
           const CancelToken* cancel) {
    const Model& model = model_for(storage, arrays.parameters);
    const Seats<Real> seats = {slice, arrays.cotangents};
    const std::int64_t count = arrays.shape.steps;
    load_parameters_of(storage, arrays.parameters, slice, model, true, parameters);
    inputs.attach(model, [&](int i) { return arrays.inputs[i] != nullptr; }, parameters);
    for (int g = 0; g < seats.groups(); ++g) {
      parameter_bars[g].clear(model);
      input_bars[g].clear(model);
    }
    for (std::int64_t i = 0; i < count; ++i) {
      if (cancel && cancel->cancelled()) return false;
      gather(arrays.qpos, count * model.nq, i * model.nq, model.nq, slice, qpos);
      gather(arrays.qvel, count * velocities(model), i * velocities(model), velocities(model), slice, qvel);
      if (arrays.ctrl) gather(arrays.ctrl, count * model.nu, i * model.nu, model.nu, slice, ctrl);
      for (int k = 0; k < input_count; ++k)
        if (const int size = input_size(model, k); arrays.inputs[k])
          gather(arrays.inputs[k], count * size, i * size, size, slice, inputs.of[k]);
      const Probes& probes = *arrays.probes;
      measurement(model, parameters, probes, Real(arrays.time[i]), qpos, qvel, ctrl, at, values);
      if (arrays.values)
        scatter(values, count * probes.size, i * probes.size, probes.size, slice, arrays.values);
      for (int g = 0; g < seats.groups(); ++g) {
        if (cancel && cancel->cancelled()) return false;
        pull_back(model, arrays, seats, g, i);
      }
    }
    for (int g = 0; g < seats.groups(); ++g)
      write_parameter_bars(storage, arrays, seats, g, model, parameter_bars[g]);
    return true;
  }

  void pull_back(const Model& model, const MeasureArrays& arrays, const Seats<Real>& seats, int g,
                 std::int64_t i) {
    const int size = arrays.probes->size;
    std::fill_n(tangent, model.nv, Real(0));
    std::fill_n(qvel_bar, velocities(model), Real(0));
    std::fill_n(ctrl_bar, model.nu, Real(0));
    const std::size_t count = arrays.shape.steps;
    for (int lane = 0; lane < Width<Real>::value; ++lane) {
      const double* row = arrays.values_bar + (seats.row(g, lane, arrays.shape.batch) * count + i) * size;
      for (int k = 0; k < size; ++k) set_lane(bar[k], lane, row[k]);
    }
    measurement_adjoint(model, parameters, *arrays.probes, qpos, qvel, ctrl, at, bar, adjoint,
                        {tangent, qvel_bar, ctrl_bar, &parameter_bars[g]});
    const auto write = [&](const Real* from, int n, double* to) {
      if (!to) return;
      for (int lane = 0; lane < seats.used(g); ++lane) {
        double* row = to + (seats.row(g, lane, arrays.shape.batch) * count + i) * n;
        for (int k = 0; k < n; ++k) row[k] = get_lane(from[k], lane);
      }
    };
    write(tangent, model.nv, arrays.tangent_bar);
    write(qvel_bar, velocities(model), arrays.qvel_bar);
    write(ctrl_bar, model.nu, arrays.ctrl_bar);
    if (!arrays.qpos_bar) return;
    ambient_cotangents(model, qpos, tangent, ambient);
    write(ambient, model.nq, arrays.qpos_bar);
  }
};

}  // namespace

bool measure(const ModelStorage& storage, const MeasureArrays& arrays, const Execution& execution) {
  const Model& model = model_for(storage, arrays.parameters);
  const double states = double(arrays.shape.batch) * double(arrays.shape.steps) * (1 + arrays.cotangents);
  return spread(slices(model, arrays.shape.batch), worthwhile_threads(execution, model, states),
                worker<MeasureRunner>(storage, arrays, execution, arrays.probes, arrays.cotangents));
}

}  // namespace revolute
