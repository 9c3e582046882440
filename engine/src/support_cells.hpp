// Builds the maps from directions to farthest vertices that searches on hulls use (collision/hull_search.hpp).
#pragma once

#include <vector>

#include "revolute/model/model.hpp"
#include "revolute/spatial/vector3.hpp"

namespace revolute {

// Appends the cells of a hull to `cells`, and their vertices to `members`. Returns the first of
// the six sides' cells, or no_cells if the vertices are few: then a search through all of them is faster.
int add_support_cells(const std::vector<Vector3<double>>& vertices, std::vector<SupportCell>& cells,
                      std::vector<CellMember>& members);

}  // namespace revolute
