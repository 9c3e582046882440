// One Python module per library: robot(arrays, start, controls) and simplified(start, steps).
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "differentiate.hpp"
#include "read_arrays.hpp"

namespace revolute {

inline pybind11::dict as_dict(const Differentiated& result) {
  pybind11::dict out;
  out["value"] = result.value;
  out["forward_seconds"] = result.forward_seconds;
  out["backward_seconds"] = result.backward_seconds;
  out["gradient"] =
      pybind11::array_t<double>(pybind11::ssize_t(result.gradient.size()), result.gradient.data());
  return out;
}

template <class Differentiate>
void define_programs(pybind11::module_& module) {
  module.def("robot", [](const pybind11::dict& arrays, const std::vector<double>& start,
                         const std::vector<double>& controls) {
    const ModelStorage storage(read_arrays(arrays));
    const RobotProgram program = {storage, start, controls};
    return as_dict(Differentiate()(program, std::int64_t(controls.size()) / program.inputs()));
  });
  module.def("simplified", [](const std::vector<double>& start, std::int64_t steps) {
    return as_dict(Differentiate()(SimplifiedProgram{start, {}}, steps));
  });
}

}  // namespace revolute
