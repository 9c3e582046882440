// Builds the hulls of shapes: vertices, faces, edges, the boxes about them and the trees over them.
#pragma once

#include "pose.hpp"
#include "revolute/model/model_storage.hpp"

namespace revolute {

// Appends the hull of a box or mesh, or the core of a sphere or capsule, to `out`; other shapes have none. `at` is the pose of
// shape `g` in its link's frame. `geom` has its type and sizes, and gets the ranges of its hull, its box and its trees.
// Throws std::invalid_argument if a mesh's polygons name vertices that it does not have.
void add_hull(const MujocoArrays& in, int g, const Pose& at, Geom& geom, Hulls& out);

}  // namespace revolute
