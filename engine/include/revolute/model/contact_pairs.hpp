// The pairs of shapes that may touch, by MuJoCo's filters, without those that can never come together.
//
// Two shapes are a pair when neither their bodies nor the bodies they are welded to are the same, or parent and child (unless
// the parent is the world), no exclude names their bodies, contype and conaffinity match, and the regions of space that their
// joints let them reach overlap. Two planes are no pair. What passes is found by sorting along one axis and sweeping.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "revolute/model/reach.hpp"

namespace revolute {

// What decides on pairs besides the regions, by MuJoCo's names.
struct PairFilters {
  Ints geom_contype, geom_conaffinity, body_weldid;
  Ints exclude_signature;                           // (body1 << 16) + body2
  std::vector<std::pair<int, int>> explicit_pairs;  // pairs that the file names itself; not listed again
  bool filter_parent = true;
};

// All pairs, each the smaller index first, in ascending order. Throws std::length_error when there are more than `most`.
std::vector<std::pair<int, int>> contact_pairs(const PairTree& tree, const PairFilters& filters,
                                               const std::vector<Region>& reach, std::size_t most);

}  // namespace revolute
