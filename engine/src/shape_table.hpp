// MuJoCo's geometry types, one row each: the engine's shape for it, and the meaning of its sizes. The table is total: types
// that are not simulated have a row as well.
#pragma once

#include <vector>

#include "revolute/model/model.hpp"
#include "revolute/model/mujoco_arrays.hpp"
#include "revolute/spatial/vector3.hpp"

namespace revolute {

// The core of a shape in its own frame: vertices, and polygons between them that may turn either way.
struct ShapeCore {
  std::vector<Vector3<double>> vertices;
  std::vector<Ints> polygons;
};

struct ShapeRow {
  const char* name;
  bool simulated;
  Shape shape;
  int points;  // contact points with another convex shape: 1 for a round end, 2 for an edge, else a whole area
  void (*measure)(const double* size, Geom& geom);      // sets radius and half
  void (*add_core)(const Geom& geom, ShapeCore& core);  // null: no core, or (mesh) core from the file
  Vector3<double> (*extents)(const Geom& geom);         // half sizes of the box about a shape without a core
};

// Throws std::invalid_argument for types that MuJoCo does not have and for types that are not simulated.
const ShapeRow& shape_row(int mujoco_type);
const ShapeRow& shape_row(Shape shape);

}  // namespace revolute
