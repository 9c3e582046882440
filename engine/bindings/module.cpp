// The only file that sees Python: plain arrays in, plain arrays out. Arguments were checked by revolute_engine.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <vector>

#include "read_arrays.hpp"
#include "revolute/batch.hpp"

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

int parameter_index(const std::string& name) {
  for (int p = 0; p < parameter_count; ++p)
    if (name == parameter_names[p]) return p;
  throw py::key_error(name);
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

py::object rollout_python(const ModelStorage& model, const Array& qpos0, const Array& qvel0,
                          const Array& ctrl, const py::dict& parameters, int threads,
                          const CancelToken* cancel) {
  const Model& m = model.model();
  const int batch = int(ctrl.shape(0));
  const py::ssize_t steps = ctrl.shape(1);
  Array qpos(Shape{batch, steps + 1, m.nq}), qvel(Shape{batch, steps + 1, m.nv});
  py::array_t<std::int32_t> status(batch);
  py::array_t<std::int64_t> diverged_step(batch);
  std::vector<Array> owners;
  const RolloutArrays arrays = {{batch, steps},
                                qpos0.data(),
                                qvel0.data(),
                                ctrl.data(),
                                parameter_inputs(parameters, owners),
                                qpos.mutable_data(),
                                qvel.mutable_data(),
                                status.mutable_data(),
                                diverged_step.mutable_data()};
  bool completed;
  {
    const py::gil_scoped_release unlocked;
    completed = rollout(model, arrays, {threads, cancel});
  }
  if (!completed) return py::none();
  return py::make_tuple(qpos, qvel, status, diverged_step);
}

py::object backward_python(const ModelStorage& model, const Array& qpos, const Array& qvel, const Array& ctrl,
                           const py::dict& parameters, const Array& qpos_bar, const Array& qvel_bar,
                           const std::vector<std::string>& wrt_parameters, int threads,
                           const CancelToken* cancel) {
  const Model& m = model.model();
  const int batch = int(ctrl.shape(0)), cotangents = int(qpos_bar.shape(0));
  const py::ssize_t steps = ctrl.shape(1);
  py::dict out;
  const auto result = [&](const char* name, Shape shape) {
    Array array(shape);
    out[name] = array;
    return array.mutable_data();
  };
  std::vector<Array> owners;
  BackwardArrays arrays{{batch, steps},
                        cotangents,
                        qpos.data(),
                        qvel.data(),
                        ctrl.data(),
                        parameter_inputs(parameters, owners),
                        qpos_bar.data(),
                        qvel_bar.data(),
                        result("qpos", {cotangents, batch, m.nq}),
                        result("qvel", {cotangents, batch, m.nv}),
                        result("ctrl", {cotangents, batch, steps, m.nu}),
                        {}};
  for (const std::string& name : wrt_parameters) {
    const int p = parameter_index(name);
    arrays.parameter_bars[p] =
        result(parameter_names[p], {cotangents, batch, model.parameter_size(Parameter(p))});
  }
  bool completed;
  {
    const py::gil_scoped_release unlocked;
    completed = backward(model, arrays, {threads, cancel});
  }
  if (!completed) return py::none();
  return out;
}

py::object jvp_python(const ModelStorage& model, const Array& qpos, const Array& qvel, const Array& ctrl,
                      const py::dict& parameters, const Array& qpos_tan, const Array& qvel_tan,
                      const Array& ctrl_tan, const py::dict& parameter_tangents, int threads,
                      const CancelToken* cancel) {
  const Model& m = model.model();
  const int batch = int(ctrl.shape(0));
  const py::ssize_t steps = ctrl.shape(1);
  Array qpos_out(Shape{batch, steps + 1, m.nv}), qvel_out(Shape{batch, steps + 1, m.nv});
  std::vector<Array> owners;
  const JvpArrays arrays = {{batch, steps},
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
  bool completed;
  {
    const py::gil_scoped_release unlocked;
    completed = jvp(model, arrays, {threads, cancel});
  }
  if (!completed) return py::none();
  return py::make_tuple(qpos_out, qvel_out);
}

py::object jacobian_python(const ModelStorage& model, const Array& qpos, const Array& qvel, const Array& ctrl,
                           const py::dict& parameters, int threads, const CancelToken* cancel) {
  const Model& m = model.model();
  const int batch = int(ctrl.shape(0));
  Array A({batch, 2 * m.nv, 2 * m.nv}), B({batch, 2 * m.nv, m.nu});
  std::vector<Array> owners;
  const JacobianArrays arrays = {batch,
                                 qpos.data(),
                                 qvel.data(),
                                 ctrl.data(),
                                 parameter_inputs(parameters, owners),
                                 A.mutable_data(),
                                 B.mutable_data()};
  bool completed;
  {
    const py::gil_scoped_release unlocked;
    completed = jacobian(model, arrays, {threads, cancel});
  }
  if (!completed) return py::none();
  return py::make_tuple(A, B);
}

}  // namespace
}  // namespace revolute

PYBIND11_MODULE(REVOLUTE_MODULE_NAME, module) {
  using namespace revolute;
  module.doc() = "revolute's engine for one instruction set";
  module.attr("isa") = REVOLUTE_ISA_NAME;
  module.attr("lanes") = REVOLUTE_LANES;

  py::class_<CancelToken>(module, "CancelToken",
                          "Stops a running rollout or backward call before its next step.")
      .def(py::init<>())
      .def("cancel", &CancelToken::cancel)
      .def_property_readonly("cancelled", &CancelToken::cancelled);

  py::class_<ModelStorage>(module, "Model", "A model in the engine's own arrays, translated from MuJoCo's.")
      .def(py::init(
               [](const py::dict& arrays) { return std::make_unique<ModelStorage>(read_arrays(arrays)); }),
           py::arg("arrays"))
      .def("parameter_size", [](const ModelStorage& model, const std::string& name) {
        return model.parameter_size(Parameter(parameter_index(name)));
      });

  module.def(
      "rollout", &rollout_python, py::arg("model"), py::arg("qpos0"), py::arg("qvel0"), py::arg("ctrl"),
      py::arg("params"), py::arg("threads"), py::arg("cancel").none(true),
      "(qpos [B, T+1, nq], qvel [B, T+1, nv], status [B], diverged_step [B]), or None when cancelled.");
  module.def("backward", &backward_python, py::arg("model"), py::arg("qpos"), py::arg("qvel"),
             py::arg("ctrl"), py::arg("params"), py::arg("qpos_bar"), py::arg("qvel_bar"),
             py::arg("wrt_params"), py::arg("threads"), py::arg("cancel").none(true),
             "Dict of qpos [K, B, nq], qvel [K, B, nv], ctrl [K, B, T, nu] and each of wrt_params [K, B, n], "
             "or None when cancelled.");

  module.def("jvp", &jvp_python, py::arg("model"), py::arg("qpos"), py::arg("qvel"), py::arg("ctrl"),
             py::arg("params"), py::arg("qpos_tan"), py::arg("qvel_tan"), py::arg("ctrl_tan"),
             py::arg("param_tans"), py::arg("threads"), py::arg("cancel").none(true),
             "(qpos_tan [B, T+1, nv], qvel_tan [B, T+1, nv]), or None when cancelled.");
  module.def("jacobian", &jacobian_python, py::arg("model"), py::arg("qpos"), py::arg("qvel"),
             py::arg("ctrl"), py::arg("params"), py::arg("threads"), py::arg("cancel").none(true),
             "(A [B, 2nv, 2nv], B [B, 2nv, nu]), or None when cancelled.");
}
