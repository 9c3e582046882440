// Reduces the corners of a face with many corners.
#pragma once

#include <vector>

#include "revolute/spatial/vector3.hpp"

namespace revolute {

// Selects up to `most` corners, in order, that span a convex polygon best. It starts with the largest triangle that has its
// first corner at one of `most` evenly counted ones. Then it adds, again and again, the corner farthest from the polygon so
// far. Returns all corners if there are at most `most`.
std::vector<int> thinned_polygon(const std::vector<Vector3<double>>& vertices,
                                 const std::vector<int>& polygon, int most);

}  // namespace revolute
