// Reads a model's arrays from the dict that revolute_engine makes of them.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <type_traits>

#include "revolute/model/mujoco_arrays.hpp"

namespace revolute {

// Sets one member from a Python object.
inline void read(const pybind11::handle& from, int& value) { value = from.cast<int>(); }
template <class Choice, std::enable_if_t<std::is_enum_v<Choice>, int> = 0>
void read(const pybind11::handle& from, Choice& value) {
  value = Choice(from.cast<int>());
}
inline void read(const pybind11::handle& from, double& value) { value = from.cast<double>(); }
inline void read(const pybind11::handle& from, bool& value) { value = from.cast<int>() != 0; }
template <class Number>
void read(const pybind11::handle& from, std::vector<Number>& values) {
  namespace py = pybind11;
  const auto array = from.cast<py::array_t<Number, py::array::c_style | py::array::forcecast>>();
  values.assign(array.data(), array.data() + array.size());
}

inline MujocoArrays read_arrays(const pybind11::dict& in) {
  MujocoArrays out;
  visit_arrays(out, [&](const char* name, auto& member) { read(in[name], member); });
  return out;
}

}  // namespace revolute
