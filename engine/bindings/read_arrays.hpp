// A model's arrays from the dict that revolute_engine makes of them.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include "revolute/model/mujoco_arrays.hpp"

namespace revolute {

inline MujocoArrays read_arrays(const pybind11::dict& in) {
  namespace py = pybind11;
  MujocoArrays out;
  const auto integer = [&](const char* name, int& value) { value = in[name].cast<int>(); };
  const auto number = [&](const char* name, double& value) { value = in[name].cast<double>(); };
  const auto flag = [&](const char* name, bool& value) { value = in[name].cast<int>() != 0; };
  const auto doubles = [&](const char* name, Doubles& value) {
    const auto array = in[name].cast<py::array_t<double, py::array::c_style | py::array::forcecast>>();
    value.assign(array.data(), array.data() + array.size());
  };
  const auto integers = [&](const char* name, Ints& value) {
    const auto array = in[name].cast<py::array_t<int, py::array::c_style | py::array::forcecast>>();
    value.assign(array.data(), array.data() + array.size());
  };
#define REVOLUTE_READ(kind, name) kind(#name, out.name)
  REVOLUTE_READ(integer, nq);
  REVOLUTE_READ(integer, nv);
  REVOLUTE_READ(integer, nu);
  REVOLUTE_READ(integer, nbody);
  REVOLUTE_READ(integer, njnt);
  REVOLUTE_READ(integer, ngeom);
  REVOLUTE_READ(integer, iterations);
  REVOLUTE_READ(integer, integrator);
  REVOLUTE_READ(number, timestep);
  REVOLUTE_READ(number, erp);
  REVOLUTE_READ(number, cfm);
  REVOLUTE_READ(number, restitution);
  REVOLUTE_READ(number, margin);
  REVOLUTE_READ(flag, contact);
  REVOLUTE_READ(flag, limits);
  REVOLUTE_READ(flag, dry_friction);
  REVOLUTE_READ(doubles, gravity);
  REVOLUTE_READ(integers, body_parentid);
  REVOLUTE_READ(doubles, body_pos);
  REVOLUTE_READ(doubles, body_quat);
  REVOLUTE_READ(doubles, body_ipos);
  REVOLUTE_READ(doubles, body_iquat);
  REVOLUTE_READ(doubles, body_mass);
  REVOLUTE_READ(doubles, body_inertia);
  REVOLUTE_READ(integers, jnt_type);
  REVOLUTE_READ(integers, jnt_bodyid);
  REVOLUTE_READ(integers, jnt_qposadr);
  REVOLUTE_READ(integers, jnt_dofadr);
  REVOLUTE_READ(integers, jnt_limited);
  REVOLUTE_READ(doubles, jnt_pos);
  REVOLUTE_READ(doubles, jnt_axis);
  REVOLUTE_READ(doubles, jnt_stiffness);
  REVOLUTE_READ(doubles, jnt_range);
  REVOLUTE_READ(doubles, qpos0);
  REVOLUTE_READ(doubles, qpos_spring);
  REVOLUTE_READ(doubles, dof_armature);
  REVOLUTE_READ(doubles, dof_damping);
  REVOLUTE_READ(doubles, dof_frictionloss);
  REVOLUTE_READ(integers, geom_type);
  REVOLUTE_READ(integers, geom_bodyid);
  REVOLUTE_READ(doubles, geom_pos);
  REVOLUTE_READ(doubles, geom_quat);
  REVOLUTE_READ(doubles, geom_size);
  REVOLUTE_READ(doubles, geom_friction);
  REVOLUTE_READ(doubles, geom_rbound);
  REVOLUTE_READ(integers, hull_adr);
  REVOLUTE_READ(integers, hull_num);
  REVOLUTE_READ(doubles, hull_vert);
  REVOLUTE_READ(integers, hull_polyadr);
  REVOLUTE_READ(integers, hull_polynum);
  REVOLUTE_READ(integers, hull_polyvertnum);
  REVOLUTE_READ(integers, hull_polyvert);
  REVOLUTE_READ(integers, pair_geom1);
  REVOLUTE_READ(integers, pair_geom2);
  REVOLUTE_READ(integers, pair_mu_from);
  REVOLUTE_READ(integers, pair_condim);
  REVOLUTE_READ(doubles, pair_friction);
  REVOLUTE_READ(integers, eq_type);
  REVOLUTE_READ(integers, eq_obj1);
  REVOLUTE_READ(integers, eq_obj2);
  REVOLUTE_READ(doubles, eq_data);
  REVOLUTE_READ(integers, act_dof);
  REVOLUTE_READ(integers, act_qpos);
  REVOLUTE_READ(integers, act_ctrllimited);
  REVOLUTE_READ(integers, act_forcelimited);
  REVOLUTE_READ(doubles, act_gear);
  REVOLUTE_READ(doubles, act_gain);
  REVOLUTE_READ(doubles, act_bias);
  REVOLUTE_READ(doubles, act_ctrlrange);
  REVOLUTE_READ(doubles, act_forcerange);
#undef REVOLUTE_READ
  return out;
}

}  // namespace revolute
