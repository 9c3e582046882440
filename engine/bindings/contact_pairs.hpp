// The Python binding of the search for contact pairs.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include "read_arrays.hpp"
#include "revolute/model/contact_pairs.hpp"

namespace revolute {

inline PairTree read_pair_tree(const pybind11::dict& in) {
  PairTree tree;
  read(in["nbody"], tree.nbody);
  read(in["njnt"], tree.njnt);
  read(in["ngeom"], tree.ngeom);
  read(in["body_parentid"], tree.body_parentid);
  read(in["body_mocapid"], tree.body_mocapid);
  read(in["body_pos"], tree.body_pos);
  read(in["body_quat"], tree.body_quat);
  read(in["jnt_type"], tree.jnt_type);
  read(in["jnt_bodyid"], tree.jnt_bodyid);
  read(in["jnt_pos"], tree.jnt_pos);
  read(in["jnt_axis"], tree.jnt_axis);
  read(in["geom_type"], tree.geom_type);
  read(in["geom_bodyid"], tree.geom_bodyid);
  read(in["geom_pos"], tree.geom_pos);
  read(in["geom_rbound"], tree.geom_rbound);
  return tree;
}

inline PairFilters read_pair_filters(const pybind11::dict& in) {
  PairFilters filters;
  Ints one, other;
  read(in["geom_contype"], filters.geom_contype);
  read(in["geom_conaffinity"], filters.geom_conaffinity);
  read(in["body_weldid"], filters.body_weldid);
  read(in["exclude_signature"], filters.exclude_signature);
  read(in["filter_parent"], filters.filter_parent);
  read(in["pair_geom1"], one);
  read(in["pair_geom2"], other);
  for (std::size_t i = 0; i < one.size(); ++i) filters.explicit_pairs.push_back({one[i], other[i]});
  return filters;
}

inline pybind11::array_t<int> contact_pairs_python(const pybind11::dict& model, std::size_t most) {
  const PairTree tree = read_pair_tree(model);
  const PairFilters filters = read_pair_filters(model);
  Doubles margin;
  read(model["margin"], margin);
  std::vector<std::pair<int, int>> pairs;
  {
    const pybind11::gil_scoped_release released;
    pairs = contact_pairs(tree, filters, reach_of_geoms(tree, margin), most);
  }
  pybind11::array_t<int> out({pybind11::ssize_t(pairs.size()), pybind11::ssize_t(2)});
  int* next = out.mutable_data();
  for (const auto& [one, other] : pairs) *next++ = one, *next++ = other;
  return out;
}

}  // namespace revolute
