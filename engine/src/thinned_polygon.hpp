// Fewer corners for a face of many.
#pragma once

#include <vector>

#include "revolute/spatial/vector3.hpp"

namespace revolute {

// Of a convex polygon's corners, in order, those that span it best: the largest triangle that has its first corner at one of
// `most` evenly counted ones, then again and again the corner farthest from the polygon so far, up to `most` of them. All
// corners when there are no more.
std::vector<int> thinned_polygon(const std::vector<Vector3<double>>& vertices,
                                 const std::vector<int>& polygon, int most);

}  // namespace revolute
