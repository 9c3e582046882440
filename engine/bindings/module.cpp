// Everything that Python sees of the engine: plain arrays in, plain arrays out. revolute_engine has checked the arguments.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "contact_pairs.hpp"
#include "read_arrays.hpp"
#include "revolute/batch.hpp"
#include "revolute/contacts.hpp"
#include "revolute/probes.hpp"
#include "revolute/sound_inputs.hpp"

#ifndef REVOLUTE_MODULE_NAME
#define REVOLUTE_MODULE_NAME _engine_generic
#endif
#ifndef REVOLUTE_LANES
#define REVOLUTE_LANES 4
#endif
#ifndef REVOLUTE_ISA_NAME
#define REVOLUTE_ISA_NAME "generic"
#endif

namespace py = pybind11;

namespace revolute {
namespace {

using Array = py::array_t<double, py::array::c_style | py::array::forcecast>;
using Shape = std::vector<py::ssize_t>;

// Returns the result of `work`; other Python threads run in the meantime.
template <class Work>
auto unlocked(const Work& work) {
  const py::gil_scoped_release released;
  return work();
}

int parameter_index(const std::string& name) {
  for (int p = 0; p < parameter_count; ++p)
    if (name == parameter_names[p]) return p;
  throw py::key_error(name);
}

// Returns -1 for a name that is no input.
int input_index(const std::string& name) {
  for (int i = 0; i < input_count; ++i)
    if (name == input_names[i]) return i;
  return -1;
}
// Reads a dict of inputs by name, one row per state; None gives no inputs.
InputRows input_rows(const py::object& given, std::vector<Array>& owners) {
  InputRows out{};
  if (given.is_none()) return out;
  for (const auto& [name, value] : given.cast<py::dict>()) {
    owners.push_back(value.cast<Array>());
    out.at(std::size_t(input_index(name.cast<std::string>()))) = owners.back().data();
  }
  return out;
}

// `owners` keeps the converted arrays alive as long as the pointers are used.
ParameterInputs parameter_inputs(const py::dict& parameters, std::vector<Array>& owners) {
  ParameterInputs out;
  for (const auto& [name, value] : parameters) {
    owners.push_back(value.cast<Array>());
    out[parameter_index(name.cast<std::string>())] = {owners.back().data(), int(owners.back().shape(0))};
  }
  return out;
}

using StridedArray = py::array_t<double, 0>;

BroadcastInput broadcast_input(const StridedArray& array) {
  const auto stride = [&](int axis) {
    return std::ptrdiff_t(array.strides(axis)) / std::ptrdiff_t(sizeof(double));
  };
  return {array.data(), stride(0), stride(1), stride(2)};
}

// Appends tuples (kind, index, type, id, reference type, reference id, shape, vector, cutoff, positive, size, integers,
// numbers, offset, reference offset), as in ProbeRequest.
void read_probes(const ModelStorage& model, const py::handle& requests, Probes& out) {
  for (const py::handle& entry : requests) {
    const auto request = entry.cast<py::tuple>();
    const auto number = [&](int i) { return request[i].cast<int>(); };
    add_probe(model,
              {ProbeKind(number(0)), number(1), PlaceType(number(2)), number(3), PlaceType(number(4)),
               number(5), number(6), request[7].cast<std::array<double, 3>>(), request[8].cast<double>(),
               request[9].cast<bool>(), number(10), request[11].cast<std::vector<int>>(),
               request[12].cast<std::vector<double>>(), request[13].cast<std::vector<double>>(),
               request[14].cast<std::vector<double>>()},
              out);
  }
}

// Reads tuples (quantity, running, times, form, probes, entries, weight, target); weight and target are broadcast to
// [B, time, entries]. Entries of a measured quantity are places in the numbers of the term's own probes.
Loss read_loss(const ModelStorage& model, const py::list& terms, std::vector<StridedArray>& owners) {
  Loss out;
  for (const py::handle& entry : terms) {
    const auto term = entry.cast<py::tuple>();
    auto entries = term[5].cast<std::vector<int>>();
    const int before = out.probes.size;
    read_probes(model, term[4], out.probes);
    if (out.probes.size > before)
      for (int& place : entries) place += before;
    owners.push_back(term[6].cast<StridedArray>());
    const BroadcastInput weight = broadcast_input(owners.back());
    owners.push_back(term[7].cast<StridedArray>());
    out.terms.push_back({Quantity(term[0].cast<int>()), term[1].cast<bool>(),
                         term[2].cast<std::vector<std::int64_t>>(), LossForm(term[3].cast<int>()),
                         std::move(entries), weight, broadcast_input(owners.back())});
  }
  return out;
}

// Reads a controller from a dict of its numbers and arrays, which are broadcast to [B, C, n]; None means no controller.
ControllerInputs read_controller(const ModelStorage& model, const py::object& given,
                                 std::vector<StridedArray>& owners) {
  ControllerInputs out;
  if (given.is_none()) return out;
  const auto controller = given.cast<py::dict>();
  const auto array = [&](const char* name) -> const StridedArray& {
    owners.push_back(controller[name].cast<StridedArray>());
    return owners.back();
  };
  for (int i = 0; i < input_count; ++i)
    if (controller.contains(input_names[i])) out.inputs[i] = broadcast_input(array(input_names[i]));
  if (controller.contains("gain")) {
    out.kind = ControllerKind::feedback;
    out.gain = broadcast_input(array("gain"));
    out.qpos = broadcast_input(array("qpos"));
    out.qvel = broadcast_input(array("qvel"));
    return out;
  }
  if (!controller.contains("observe")) return out;
  out.kind = ControllerKind::policy;
  out.mlp.hidden = controller["hidden"].cast<std::vector<int>>();
  out.mlp.activation = Activation(controller["activation"].cast<int>());
  out.mlp.squash = controller["squash"].cast<bool>();
  out.mlp.weights = array("weights").data();
  out.mlp.scale = array("scale").data();
  const StridedArray& goal = array("goal");
  out.mlp.goal_size = int(goal.shape(2));
  out.goal = broadcast_input(goal);
  // tuples (kind, probes)
  for (const py::handle& entry : controller["observe"]) {
    const auto observed = entry.cast<py::tuple>();
    const auto kind = ObservationKind(observed[0].cast<int>());
    const int first = out.mlp.probes.size;
    read_probes(model, observed[1], out.mlp.probes);
    const bool measured = kind == ObservationKind::measured;
    out.mlp.observe.push_back(whole(model.model(), kind, measured ? first : 0,
                                    measured ? out.mlp.probes.size - first : out.mlp.goal_size));
  }
  if (controller.contains("previous_ctrl")) out.previous_ctrl = broadcast_input(array("previous_ctrl"));
  return out;
}

// Reads tangents of the controller's arrays from a dict and broadcasts them the same way; None means no tangents.
ControllerTangents read_controller_tangents(const py::object& given, std::vector<StridedArray>& owners) {
  ControllerTangents out;
  if (given.is_none()) return out;
  const auto tangents = given.cast<py::dict>();
  for (const auto& [name, to] : {std::pair{"gain", &out.gain}, std::pair{"qpos", &out.qpos},
                                 std::pair{"qvel", &out.qvel}, std::pair{"goal", &out.goal}}) {
    if (!tangents.contains(name)) continue;
    owners.push_back(tangents[name].cast<StridedArray>());
    *to = broadcast_input(owners.back());
  }
  for (int i = 0; i < input_count; ++i) {
    if (!tangents.contains(input_names[i])) continue;
    owners.push_back(tangents[input_names[i]].cast<StridedArray>());
    out.inputs[i] = broadcast_input(owners.back());
  }
  if (!tangents.contains("weights")) return out;
  owners.push_back(tangents["weights"].cast<StridedArray>());
  out.weights = owners.back().data();
  return out;
}

CheckpointPolicy read_policy(const std::string& kind, std::int64_t count) {
  for (const auto& [name, value] :
       {std::pair{"every", CheckpointKind::every}, std::pair{"interval", CheckpointKind::interval},
        std::pair{"slots", CheckpointKind::slots}, std::pair{"none", CheckpointKind::none}})
    if (kind == name) return {value, count};
  throw py::key_error(kind);
}

py::object rollout_python(const ModelStorage& model, const Array& qpos0, const Array& qvel0,
                          const Array& ctrl, std::int64_t hold, const py::object& controller,
                          const py::dict& parameters, const std::string& policy, std::int64_t policy_count,
                          bool all_states, int threads, const CancelToken* cancel) {
  const Model& m = model.model();
  const int batch = int(ctrl.shape(0));
  const py::ssize_t steps = ctrl.shape(1) * hold;
  std::vector<Array> owners;
  std::vector<StridedArray> controller_owners;
  RolloutArrays arrays{{batch, steps, hold},
                       qpos0.data(),
                       qvel0.data(),
                       ctrl.data(),
                       parameter_inputs(parameters, owners),
                       read_policy(policy, policy_count),
                       {},
                       {},
                       {},
                       nullptr,
                       nullptr};
  py::dict out;
  const auto states = [&](const char* name, py::ssize_t count) {
    Array qpos(Shape{batch, count, m.nq}), qvel(Shape{batch, count, velocities(m)});
    out[name] = py::make_tuple(qpos, qvel);
    return StateArrays{qpos.mutable_data(), qvel.mutable_data()};
  };
  arrays.kept = states("kept", KeptSteps(arrays.policy, steps).count());
  if (all_states) arrays.states = states("states", steps + 1);
  arrays.last = states("last", 1);
  py::array_t<std::int32_t> status(batch);
  py::array_t<std::int64_t> diverged_step(batch), unsettled_step(batch);
  out["status"] = status;
  out["diverged_step"] = diverged_step;
  out["unsettled_step"] = unsettled_step;
  arrays.unsettled_step = unsettled_step.mutable_data();
  Array residual(Shape{batch});
  out["residual"] = residual;
  arrays.residual = residual.mutable_data();
  arrays.controller = read_controller(model, controller, controller_owners);
  if (arrays.controller.kind != ControllerKind::none) {
    Array applied(Shape{batch, ctrl.shape(1), m.nu});
    out["ctrl"] = applied;
    arrays.applied = applied.mutable_data();
  }
  arrays.status = status.mutable_data();
  arrays.diverged_step = diverged_step.mutable_data();
  if (!unlocked([&] { return rollout(model, arrays, {threads, cancel}); })) return py::none();
  return out;
}

py::object advance_python(const ModelStorage& model, const Array& qpos0, const Array& qvel0,
                          const Array& ctrl, std::int64_t steps, const py::object& controller, int threads,
                          const CancelToken* cancel) {
  const Model& m = model.model();
  std::vector<StridedArray> owners;
  const int batch = int(ctrl.shape(0));
  Array qpos(Shape{batch, m.nq}), qvel(Shape{batch, velocities(m)});
  py::array_t<std::int32_t> status(batch);
  py::array_t<std::int64_t> unsettled_step(batch);
  Array residual(Shape{batch});
  std::vector<std::int64_t> diverged_step(batch);
  RolloutArrays arrays{};
  arrays.shape = {batch, steps};
  arrays.qpos0 = qpos0.data();
  arrays.qvel0 = qvel0.data();
  arrays.ctrl = ctrl.data();
  arrays.held = true;
  arrays.policy.kind = CheckpointKind::none;
  arrays.last = {qpos.mutable_data(), qvel.mutable_data()};
  arrays.status = status.mutable_data();
  arrays.diverged_step = diverged_step.data();
  arrays.unsettled_step = unsettled_step.mutable_data();
  arrays.residual = residual.mutable_data();
  arrays.controller = read_controller(model, controller, owners);
  if (!unlocked([&] { return rollout(model, arrays, {threads, cancel}); })) return py::none();
  return py::make_tuple(qpos, qvel, status, unsettled_step, residual);
}

// Makes arrays for the gradients named in `wrt`, by name; `arrays` gets their addresses.
py::dict gradient_arrays(const ModelStorage& model, const std::vector<std::string>& wrt,
                         BackwardArrays& arrays) {
  const Model& m = model.model();
  const py::ssize_t cotangents = arrays.cotangents, batch = arrays.shape.batch;
  const py::ssize_t periods = arrays.shape.periods();
  const ControllerInputs& controller = arrays.controller;
  const auto rows = [&](const BroadcastInput& input) { return input.time_stride == 0 ? 1 : periods; };
  py::dict out;
  const auto result = [&](const std::string& name, Shape shape) {
    Array array(shape);
    out[name.c_str()] = array;
    // without steps, nothing is written for inputs of steps
    if (periods == 0) std::fill_n(array.mutable_data(), array.size(), 0.0);
    return array.mutable_data();
  };
  for (const std::string& name : wrt) {
    if (name == "qpos") {
      arrays.qpos0_bar = result(name, {cotangents, batch, m.nq});
    } else if (name == "qvel") {
      arrays.qvel0_bar = result(name, {cotangents, batch, velocities(m)});
    } else if (name == "ctrl") {
      arrays.ctrl_bar = result(name, {cotangents, batch, periods, m.nu});
    } else if (name == "feedback.gain") {
      arrays.controller_bars.gain =
          result(name, {cotangents, batch, rows(controller.gain), py::ssize_t(m.nu) * error_size(m)});
    } else if (name == "feedback.qpos") {
      arrays.controller_bars.qpos = result(name, {cotangents, batch, rows(controller.qpos), m.nq});
    } else if (name == "feedback.qvel") {
      arrays.controller_bars.qvel = result(name, {cotangents, batch, rows(controller.qvel), velocities(m)});
    } else if (const int i = input_index(name); i >= 0) {
      arrays.controller_bars.inputs[i] =
          result(name, {cotangents, batch, rows(controller.inputs[i]), input_size(m, i)});
    } else if (name == "policy.weights") {
      arrays.controller_bars.weights =
          result(name, {cotangents, batch, py::ssize_t(controller.mlp.weight_count(m))});
    } else if (name == "policy.goal") {
      arrays.controller_bars.goal =
          result(name, {cotangents, batch, rows(controller.goal), controller.mlp.goal_size});
    } else {
      const int p = parameter_index(name);
      arrays.parameter_bars[p] =
          result(name, {cotangents, batch, py::ssize_t(model.parameter_size(Parameter(p)))});
    }
  }
  return out;
}

py::object backward_python(const ModelStorage& model, const std::string& policy, std::int64_t policy_count,
                           const Array& kept_qpos, const Array& kept_qvel, const Array& ctrl,
                           std::int64_t hold, const py::object& controller,
                           const py::array_t<std::int32_t>& status, const py::dict& parameters,
                           int cotangents, const std::optional<Array>& qpos_bar,
                           const std::optional<Array>& qvel_bar, const std::optional<Array>& ctrl_bar,
                           const std::optional<py::array_t<std::int64_t>>& bar_steps,
                           const std::vector<std::string>& wrt, double clip, double contact_distance,
                           int threads, const CancelToken* cancel) {
  const int batch = int(ctrl.shape(0));
  std::vector<Array> owners;
  std::vector<StridedArray> controller_owners;
  py::array_t<std::int64_t> replayed(batch), clipped(Shape{cotangents, batch});
  BackwardArrays arrays{{batch, ctrl.shape(1) * hold, hold},
                        cotangents,
                        read_policy(policy, policy_count),
                        {kept_qpos.data(), kept_qvel.data()},
                        ctrl.data(),
                        parameter_inputs(parameters, owners),
                        status.data(),
                        nullptr,
                        nullptr,
                        nullptr,
                        replayed.mutable_data(),
                        {}};
  if (qpos_bar) arrays.bars.qpos = qpos_bar->data();
  if (qvel_bar) arrays.bars.qvel = qvel_bar->data();
  if (ctrl_bar) arrays.bars.ctrl = ctrl_bar->data();
  if (bar_steps) {
    arrays.bars.steps = bar_steps->data();
    arrays.bars.count = bar_steps->size();
  }
  arrays.contact_distance = contact_distance;
  arrays.controller = read_controller(model, controller, controller_owners);
  arrays.clip = clip;
  arrays.clipped = clipped.mutable_data();
  const py::dict pulled = gradient_arrays(model, wrt, arrays);
  if (!unlocked([&] { return backward(model, arrays, {threads, cancel}); })) return py::none();
  return py::make_tuple(pulled, replayed, clipped);
}

py::object value_and_gradient_python(const ModelStorage& model, const Array& qpos0, const Array& qvel0,
                                     const Array& ctrl, std::int64_t hold, const py::object& controller,
                                     const py::dict& parameters, const std::string& policy,
                                     std::int64_t policy_count, const py::list& terms,
                                     const std::vector<std::string>& wrt, double clip,
                                     double contact_distance, int threads, const CancelToken* cancel) {
  const int batch = int(ctrl.shape(0));
  const BatchShape shape = {batch, ctrl.shape(1) * hold, hold};
  std::vector<Array> owners;
  std::vector<StridedArray> loss_owners, controller_owners;
  const Loss loss = read_loss(model, terms, loss_owners);
  Array value(Shape{batch});
  py::array_t<std::int32_t> status(batch);
  py::array_t<std::int64_t> diverged_step(batch), unsettled_step(batch), replayed(batch),
      clipped(Shape{1, batch});
  Array residual(Shape{batch});
  py::array_t<std::uint8_t> cotangents_finite(batch);
  const ParameterInputs inputs = parameter_inputs(parameters, owners);
  const CheckpointPolicy read = read_policy(policy, policy_count);
  ValueAndGradientArrays arrays{{shape,
                                 qpos0.data(),
                                 qvel0.data(),
                                 ctrl.data(),
                                 inputs,
                                 read,
                                 {},
                                 {},
                                 {},
                                 status.mutable_data(),
                                 diverged_step.mutable_data(),
                                 &loss,
                                 value.mutable_data()},
                                {shape,
                                 1,
                                 read,
                                 {},
                                 ctrl.data(),
                                 inputs,
                                 status.data(),
                                 nullptr,
                                 nullptr,
                                 nullptr,
                                 replayed.mutable_data(),
                                 {},
                                 &loss,
                                 cotangents_finite.mutable_data()}};
  arrays.rollout.controller = arrays.backward.controller =
      read_controller(model, controller, controller_owners);
  std::vector<double> applied;
  if (arrays.rollout.controller.kind != ControllerKind::none) {
    applied.resize(std::size_t(ctrl.size()));
    arrays.rollout.applied = applied.data();
    arrays.backward.ctrl = applied.data();
  }
  arrays.backward.clip = clip;
  arrays.backward.clipped = clipped.mutable_data();
  arrays.backward.contact_distance = contact_distance;
  arrays.rollout.unsettled_step = unsettled_step.mutable_data();
  arrays.rollout.residual = residual.mutable_data();
  const py::dict pulled = gradient_arrays(model, wrt, arrays.backward);
  if (!unlocked([&] { return value_and_gradient(model, arrays, {threads, cancel}); })) return py::none();
  return py::make_tuple(value, status, diverged_step, pulled, replayed, cotangents_finite, clipped,
                        unsettled_step, residual);
}

py::object jvp_python(const ModelStorage& model, const Array& qpos, const Array& qvel, const Array& ctrl,
                      std::int64_t hold, const py::object& controller, const py::dict& parameters,
                      const Array& qpos_tan, const Array& qvel_tan, const Array& ctrl_tan,
                      const py::dict& parameter_tangents, const py::object& controller_tangents, int threads,
                      const CancelToken* cancel) {
  const Model& m = model.model();
  const int batch = int(ctrl.shape(0));
  const py::ssize_t steps = ctrl.shape(1) * hold;
  Array qpos_out(Shape{batch, steps + 1, m.nv}), qvel_out(Shape{batch, steps + 1, velocities(m)});
  std::vector<StridedArray> controller_owners;
  std::vector<Array> owners;
  JvpArrays arrays = {{batch, steps, hold},
                      qpos.data(),
                      qvel.data(),
                      ctrl.data(),
                      parameter_inputs(parameters, owners),
                      qpos_tan.data(),
                      qvel_tan.data(),
                      ctrl_tan.data(),
                      parameter_inputs(parameter_tangents, owners),
                      qpos_out.mutable_data(),
                      qvel_out.mutable_data()};
  arrays.controller = read_controller(model, controller, controller_owners);
  arrays.controller_tangents = read_controller_tangents(controller_tangents, controller_owners);
  Array ctrl_out(Shape{batch, ctrl.shape(1), m.nu});
  arrays.applied_tan = ctrl_out.mutable_data();
  if (!unlocked([&] { return jvp(model, arrays, {threads, cancel}); })) return py::none();
  return py::make_tuple(qpos_out, qvel_out, ctrl_out);
}

py::object jacobian_python(const ModelStorage& model, const Array& qpos, const Array& qvel, const Array& ctrl,
                           const py::object& inputs, const py::dict& parameters, int threads,
                           const CancelToken* cancel) {
  const py::ssize_t nx = model.model().nv + velocities(model.model()), nu = model.model().nu;
  const bool batched = ctrl.ndim() == 2;
  const int batch = batched ? int(ctrl.shape(0)) : 1;
  Array A = batched ? Array({py::ssize_t(batch), nx, nx}) : Array({nx, nx});
  Array B = batched ? Array({py::ssize_t(batch), nx, nu}) : Array({nx, nu});
  std::vector<Array> owners;
  std::vector<std::uint8_t> finite(batch);
  const JacobianArrays arrays = {batch,
                                 qpos.data(),
                                 qvel.data(),
                                 ctrl.data(),
                                 parameter_inputs(parameters, owners),
                                 A.mutable_data(),
                                 B.mutable_data(),
                                 finite.data(),
                                 input_rows(inputs, owners)};
  if (!unlocked([&] { return jacobian(model, arrays, {threads, cancel}); })) return py::none();
  return py::make_tuple(A, B, std::any_of(finite.begin(), finite.end(), [](std::uint8_t is) { return is; }));
}

constexpr py::ssize_t few_environments = 64;   // a batch up to this size is checked in one piece
constexpr py::ssize_t many_numbers = 1 << 16;  // other Python threads should not wait for more

bool are_sound(const ModelStorage& model, const Array& qpos, const Array& qvel, const Array& ctrl, int axes,
               double least, double most) {
  const Model& m = model.model();
  const bool batched = ctrl.ndim() == axes + 1;
  const py::ssize_t batch = batched ? ctrl.shape(0) : 1;
  const auto sound = [&](const Array& state, int size) {
    return state.ndim() == 1 + batched && state.shape(batched) == size && state.size() == batch * size &&
           all_finite(state.data(), state.size());
  };
  return (batched || ctrl.ndim() == axes) && batch > 0 && batch <= few_environments &&
         ctrl.shape(ctrl.ndim() - 1) == m.nu && ctrl.size() <= many_numbers &&
         all_finite(ctrl.data(), ctrl.size()) && sound(qpos, m.nq) && sound(qvel, velocities(m)) &&
         quaternions_within(m, qpos.data(), batch, least, most);
}

py::object sound_jacobian(const ModelStorage& model, const Array& qpos, const Array& qvel, const Array& ctrl,
                          double least, double most, int threads, const CancelToken* cancel) {
  if (!are_sound(model, qpos, qvel, ctrl, 1, least, most)) return py::bool_(false);
  return jacobian_python(model, qpos, qvel, ctrl, py::none(), {}, threads, cancel);
}

bool all_finite_python(const Array& values) {
  std::optional<py::gil_scoped_release> released;
  if (values.size() > many_numbers) released.emplace();
  return all_finite(values.data(), values.size());
}

py::array_t<bool> finite_rows_python(const Array& values) {
  const py::ssize_t cotangents = values.shape(0), batch = values.shape(1);
  const std::size_t size = values.size() ? values.size() / (cotangents * batch) : 0;
  py::array_t<bool> out(batch);
  bool* const finite = out.mutable_data();
  std::optional<py::gil_scoped_release> released;
  if (values.size() > many_numbers) released.emplace();
  for (py::ssize_t b = 0; b < batch; ++b) {
    finite[b] = true;
    for (py::ssize_t k = 0; k < cotangents; ++k)
      finite[b] = finite[b] && all_finite(values.data() + (k * batch + b) * size, size);
  }
  return out;
}

// States to measure at, and what to measure; they keep the memory of the arrays.
struct MeasureInputs {
  std::vector<Array> owners;
  Probes probes;
  MeasureArrays arrays;

  // ctrl is None when no probe needs it.
  MeasureInputs(const ModelStorage& model, const py::list& requests, const Array& qpos, const Array& qvel,
                const std::optional<Array>& ctrl, const py::object& inputs, const Array& time,
                const py::dict& parameters)
      : arrays{{int(qpos.shape(0)), qpos.shape(1)},
               &probes,
               qpos.data(),
               qvel.data(),
               ctrl ? ctrl->data() : nullptr,
               time.data(),
               parameter_inputs(parameters, owners),
               input_rows(inputs, owners)} {
    read_probes(model, requests, probes);
  }
};

// Returns arrays [B, count, ...].
py::object measure_python(const ModelStorage& model, const py::list& requests, const Array& qpos,
                          const Array& qvel, const std::optional<Array>& ctrl, const py::object& inputs,
                          const Array& time, const py::dict& parameters, int threads,
                          const CancelToken* cancel) {
  MeasureInputs states(model, requests, qpos, qvel, ctrl, inputs, time, parameters);
  Array values(Shape{qpos.shape(0), qpos.shape(1), states.probes.size});
  states.arrays.values = values.mutable_data();
  if (!unlocked([&] { return measure(model, states.arrays, {threads, cancel}); })) return py::none();
  return std::move(values);
}

// `wrt` may name qpos, tangent, qvel, ctrl, parameters and inputs of steps.
py::object measure_backward_python(const ModelStorage& model, const py::list& requests, const Array& qpos,
                                   const Array& qvel, const std::optional<Array>& ctrl,
                                   const py::object& inputs, const Array& time, const py::dict& parameters,
                                   const Array& values_bar, const std::vector<std::string>& wrt, int threads,
                                   const CancelToken* cancel) {
  const Model& m = model.model();
  const py::ssize_t cotangents = values_bar.shape(0), batch = qpos.shape(0), count = qpos.shape(1);
  MeasureInputs states(model, requests, qpos, qvel, ctrl, inputs, time, parameters);
  MeasureArrays& arrays = states.arrays;
  arrays.cotangents = int(cotangents);
  arrays.values_bar = values_bar.data();
  py::dict out;
  for (const std::string& name : wrt) {
    const auto result = [&](Shape shape) {
      Array array(shape);
      out[name.c_str()] = array;
      return array.mutable_data();
    };
    if (name == "qpos") {
      arrays.qpos_bar = result({cotangents, batch, count, m.nq});
    } else if (name == "tangent") {
      arrays.tangent_bar = result({cotangents, batch, count, m.nv});
    } else if (name == "qvel") {
      arrays.qvel_bar = result({cotangents, batch, count, velocities(m)});
    } else if (name == "ctrl") {
      arrays.ctrl_bar = result({cotangents, batch, count, m.nu});
    } else if (const int i = input_index(name); i >= 0) {
      arrays.input_bars[i] = result({cotangents, batch, count, input_size(m, i)});
    } else {
      const int p = parameter_index(name);
      arrays.parameter_bars[p] = result({cotangents, batch, py::ssize_t(model.parameter_size(Parameter(p)))});
    }
  }
  if (!unlocked([&] { return measure(model, arrays, {threads, cancel}); })) return py::none();
  return std::move(out);
}

py::dict contact_arrays(const std::vector<ContactRecord>& contacts) {
  const auto count = py::ssize_t(contacts.size());
  py::array_t<int> geom(Shape{count, 2});
  py::array_t<double> distance(Shape{count}), position(Shape{count, 3}), frame(Shape{count, 3, 3}),
      force(Shape{count, 6});
  for (py::ssize_t i = 0; i < count; ++i) {
    const ContactRecord& contact = contacts[std::size_t(i)];
    geom.mutable_at(i, 0) = contact.geom_a;
    geom.mutable_at(i, 1) = contact.geom_b;
    distance.mutable_at(i) = contact.distance;
    std::copy_n(contact.position, 3, position.mutable_data(i));
    std::copy_n(contact.frame, 9, frame.mutable_data(i));
    std::copy_n(contact.force, 6, force.mutable_data(i));
  }
  py::dict out;
  out["geom"] = geom;
  out["distance"] = distance;
  out["position"] = position;
  out["frame"] = frame;
  out["force"] = force;
  return out;
}
py::dict contacts_python(const ModelStorage& model, const Array& qpos) {
  return contact_arrays(find_contacts(model, qpos.data()));
}
// Reads qpos [N, nq], qvel [N, nv], ctrl [N, nu]; parameters have one row for all states or one per state.
py::dict contact_forces_python(const ModelStorage& model, const Array& qpos, const Array& qvel,
                               const Array& ctrl, const py::object& given_inputs,
                               const py::dict& parameters) {
  const Model& m = model.model();
  std::vector<Array> owners;
  const ParameterInputs given = parameter_inputs(parameters, owners);
  const InputRows rows = input_rows(given_inputs, owners);
  const py::ssize_t states = qpos.shape(0);
  std::vector<ContactRecord> all;
  std::vector<std::int64_t> counts;
  unlocked([&] {
    for (py::ssize_t i = 0; i < states; ++i) {
      ParameterPointers values;
      for (int p = 0; p < parameter_count; ++p) {
        const std::size_t size = model.parameter_size(Parameter(p)), row = given[p].rows > 1 ? i : 0;
        values[p] = given[p].values ? given[p].values + row * size : model.parameters().defaults[p].data();
      }
      InputRows inputs{};
      for (int k = 0; k < input_count; ++k)
        if (rows[k]) inputs[k] = rows[k] + i * input_size(m, k);
      const auto found = find_contact_forces(model, values, qpos.data() + i * m.nq,
                                             qvel.data() + i * velocities(m), ctrl.data() + i * m.nu, inputs);
      counts.push_back(std::int64_t(found.size()));
      all.insert(all.end(), found.begin(), found.end());
    }
    return true;
  });
  py::dict out = contact_arrays(all);
  out["count"] = py::array_t<std::int64_t>(py::ssize_t(counts.size()), counts.data());
  return out;
}

}  // namespace
}  // namespace revolute

PYBIND11_MODULE(REVOLUTE_MODULE_NAME, module) {
  using namespace revolute;
  module.doc() = "revolute's engine for one instruction set";
  module.attr("isa") = REVOLUTE_ISA_NAME;
  module.attr("lanes") = REVOLUTE_LANES;
  module.attr("polygon_corners") = polygon_corners;

  py::class_<CancelToken>(module, "CancelToken",
                          "Stops a running rollout or backward call before its next step.")
      .def(py::init<>())
      .def("cancel", &CancelToken::cancel)
      .def_property_readonly("cancelled", &CancelToken::cancelled);

  py::class_<ModelStorage>(module, "Model", "A model in the engine's own arrays, translated from MuJoCo's.")
      .def(py::init([](const py::dict& arrays) {
             const MujocoArrays translated = read_arrays(arrays);
             const py::gil_scoped_release released;
             return std::make_unique<ModelStorage>(translated);
           }),
           py::arg("arrays"))
      .def_property_readonly("bytes", &ModelStorage::bytes)
      .def("parameter_size", [](const ModelStorage& model, const std::string& name) {
        return model.parameter_size(Parameter(parameter_index(name)));
      });

  module.def("contact_pairs", &contact_pairs_python, py::arg("model"), py::arg("most"),
             "The pairs of shapes [n, 2] that may touch, from MuJoCo's arrays by name and `margin` [ngeom]; "
             "ValueError "
             "when there are more than `most`.");
  module.def("all_finite", &all_finite_python, py::arg("values"),
             "Whether an array has neither NaN nor infinity.");
  module.def("finite_rows", &finite_rows_python, py::arg("values"),
             "The same of each environment's numbers in an array [K, B, ...]: [B].");
  module.def(
      "quaternions_within",
      [](const ModelStorage& model, const Array& qpos, double least, double most) {
        return quaternions_within(model.model(), qpos.data(), qpos.size() / model.model().nq, least, most);
      },
      py::arg("model"), py::arg("qpos"), py::arg("least"), py::arg("most"),
      "Whether every quaternion in qpos [..., nq] has a squared length between these two.");
  module.def("contacts", &contacts_python, py::arg("model"), py::arg("qpos"),
             "Dict of the contacts at qpos [nq], at rest: geom [n, 2], distance [n], position [n, 3], frame "
             "[n, 3, 3] (rows: normal from the first shape to the second, two tangents).");
  module.def("contact_forces", &contact_forces_python, py::arg("model"), py::arg("qpos"), py::arg("qvel"),
             py::arg("ctrl"), py::arg("inputs").none(true), py::arg("params"),
             "The same of the steps from states [N, nq], [N, nv] with controls [N, nu], one after the other, "
             "with their "
             "forces [n, 6] and the number of contacts of each state, count [N].");
  py::tuple kinds(sizeof probe_names / sizeof *probe_names), sizes(sizeof probe_sizes / sizeof *probe_sizes);
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    kinds[i] = probe_names[i];
    sizes[i] = probe_sizes[i];
  }
  module.attr("probe_kinds") = kinds;
  module.attr("probe_sizes") = sizes;
  module.def("measure", &measure_python, py::arg("model"), py::arg("probes"), py::arg("qpos"),
             py::arg("qvel"), py::arg("ctrl").none(true), py::arg("inputs").none(true), py::arg("time"),
             py::arg("params"), py::arg("threads"), py::arg("cancel").none(true),
             "What is measured at states [B, n, ...]: [B, n, size], or None when cancelled.");
  module.def("measure_backward", &measure_backward_python, py::arg("model"), py::arg("probes"),
             py::arg("qpos"), py::arg("qvel"), py::arg("ctrl").none(true), py::arg("inputs").none(true),
             py::arg("time"), py::arg("params"), py::arg("values_bar"), py::arg("wrt"), py::arg("threads"),
             py::arg("cancel").none(true),
             "Gradients by name of cotangents [K, B, n, size]: qpos [K, B, n, nq], tangent, qvel, ctrl, and "
             "parameters [K, B, m]; or None when cancelled.");
  module.def("are_sound", &are_sound, py::arg("model"), py::arg("qpos"), py::arg("qvel"), py::arg("ctrl"),
             py::arg("axes"), py::arg("least"), py::arg("most"),
             "Whether these are states and controls of one environment, [nq], [nv], and [nu] (one axis) or "
             "[time, nu] (two), or of few, with an axis in front, not many and all finite, with every "
             "quaternion's squared length between the last two.");
  module.def(
      "replayed_steps",
      [](const std::string& policy, std::int64_t policy_count, std::int64_t steps) {
        return replayed_steps(read_policy(policy, policy_count), steps);
      },
      py::arg("policy"), py::arg("policy_count"), py::arg("steps"),
      "Forward steps of one environment's backward pass.");
  module.def(
      "rollout", &rollout_python, py::arg("model"), py::arg("qpos0"), py::arg("qvel0"), py::arg("ctrl"),
      py::arg("hold"), py::arg("controller").none(true), py::arg("params"), py::arg("policy"),
      py::arg("policy_count"), py::arg("all_states"), py::arg("threads"), py::arg("cancel").none(true),
      "Dict of kept, states (with all_states) and last, each (qpos [B, n, nq], qvel [B, n, nv]), status, "
      "diverged_step, unsettled_step and residual [B], and with a controller the applied ctrl; or None when "
      "cancelled.");
  module.def(
      "advance", &advance_python, py::arg("model"), py::arg("qpos0"), py::arg("qvel0"), py::arg("ctrl"),
      py::arg("steps"), py::arg("controller").none(true), py::arg("threads"), py::arg("cancel").none(true),
      "(qpos [B, nq], qvel [B, nv], status [B], unsettled_step [B], residual [B]) after some steps with "
      "ctrl [B, nu] and inputs [B, 1, n] held, or None when cancelled.");
  module.def(
      "backward", &backward_python, py::arg("model"), py::arg("policy"), py::arg("policy_count"),
      py::arg("kept_qpos"), py::arg("kept_qvel"), py::arg("ctrl"), py::arg("hold"),
      py::arg("controller").none(true), py::arg("status"), py::arg("params"), py::arg("cotangents"),
      py::arg("qpos_bar").none(true), py::arg("qvel_bar").none(true), py::arg("ctrl_bar").none(true),
      py::arg("bar_steps").none(true), py::arg("wrt"), py::arg("clip"), py::arg("contact_distance"),
      py::arg("threads"), py::arg("cancel").none(true),
      "(gradients by name: qpos [K, B, nq], qvel [K, B, nv], ctrl [K, B, T, nu], parameters [K, B, n]; "
      "replayed steps [B]; clipped cotangents [K, B]), or None when cancelled.");
  module.def(
      "value_and_gradient", &value_and_gradient_python, py::arg("model"), py::arg("qpos0"), py::arg("qvel0"),
      py::arg("ctrl"), py::arg("hold"), py::arg("controller").none(true), py::arg("params"),
      py::arg("policy"), py::arg("policy_count"), py::arg("loss"), py::arg("wrt"), py::arg("clip"),
      py::arg("contact_distance"), py::arg("threads"), py::arg("cancel").none(true),
      "(value [B], status [B], diverged_step [B], gradients by name as of backward with K = 1, replayed "
      "steps [B], whether the loss's cotangents are finite [B], clipped cotangents [1, B], unsettled_step "
      "[B], residual [B]), or None when cancelled.");
  module.def(
      "jvp", &jvp_python, py::arg("model"), py::arg("qpos"), py::arg("qvel"), py::arg("ctrl"),
      py::arg("hold"), py::arg("controller").none(true), py::arg("params"), py::arg("qpos_tan"),
      py::arg("qvel_tan"), py::arg("ctrl_tan"), py::arg("param_tans"), py::arg("controller_tans").none(true),
      py::arg("threads"), py::arg("cancel").none(true),
      "(qpos_tan [B, T+1, nv], qvel_tan [B, T+1, nv], tangents of the applied controls [B, C, nu]), or "
      "None when cancelled.");
  module.def(
      "jacobian", &jacobian_python, py::arg("model"), py::arg("qpos"), py::arg("qvel"), py::arg("ctrl"),
      py::arg("inputs").none(true), py::arg("params"), py::arg("threads"), py::arg("cancel").none(true),
      "(A [B, 2nv, 2nv], B [B, 2nv, nu], whether any environment is finite), or None when cancelled. ctrl "
      "without the axis B gives results without it.");
  module.def("sound_jacobian", &sound_jacobian, py::arg("model"), py::arg("qpos"), py::arg("qvel"),
             py::arg("ctrl"), py::arg("least"), py::arg("most"), py::arg("threads"),
             py::arg("cancel").none(true),
             "jacobian() of what are_sound() finds sound, one axis; False for anything else.");
}
