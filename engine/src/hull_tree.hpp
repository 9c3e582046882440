// Builds the trees of discs that searches on hulls use (model.hpp).
#pragma once

#include <vector>

#include "revolute/model/model.hpp"
#include "revolute/spatial/vector3.hpp"

namespace revolute {

// Appends the tree over items, each given by its points, to `nodes`, and the items' indices in the tree's order to `order`.
// Splits are at the median. Returns the root, or no_tree if the items are few: then a search through all of them is faster.
int add_hull_tree(const std::vector<std::vector<Vector3<double>>>& items, std::vector<HullNode>& nodes,
                  std::vector<int>& order);

}  // namespace revolute
