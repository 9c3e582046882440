// Finds the pairs of shapes that may touch: they pass MuJoCo's filters, and they can come together.
//
// Two shapes are a pair if all of this holds. Their bodies, and the bodies they are welded to, are neither the same nor
// parent and child (unless the parent is the world). No exclude names their bodies. contype and conaffinity match. The
// regions of space that their joints let them reach overlap. Two planes are no pair. Sorting along one axis and sweeping
// finds the pairs.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "revolute/model/reach.hpp"

namespace revolute {

// The filters of pairs besides the regions, by MuJoCo's names.
struct PairFilters {
  Ints geom_contype, geom_conaffinity, body_weldid;
  Ints exclude_signature;                           // (body1 << 16) + body2
  std::vector<std::pair<int, int>> explicit_pairs;  // pairs that the file lists itself; not listed again
  bool filter_parent = true;
};

// Returns all pairs in ascending order, each with the smaller index first. Throws std::length_error when there are more than
// `most`.
std::vector<std::pair<int, int>> contact_pairs(const PairTree& tree, const PairFilters& filters,
                                               const std::vector<Region>& reach, std::size_t most);

}  // namespace revolute
