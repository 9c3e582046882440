#include "shape_table.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace revolute {

namespace {

void three_halves(const double* size, Geom& geom) { std::copy_n(size, 3, geom.half); }
void ball(const double* size, Geom& geom) {
  three_halves(size, geom);
  geom.radius = size[0];
}
void radius_and_half(const double* size, Geom& geom) {
  ball(size, geom);
  geom.half[2] = size[1];
}

void vertex(const Geom&, ShapeCore& core) { core.vertices = {{0, 0, 0}}; }
void edge(const Geom& geom, ShapeCore& core) {
  core.vertices = {{0, 0, -geom.half[2]}, {0, 0, geom.half[2]}};
}
void cuboid(const Geom& geom, ShapeCore& core) {
  const double* half = geom.half;
  for (int i = 0; i < 8; ++i)
    core.vertices.push_back(
        {i & 4 ? half[0] : -half[0], i & 2 ? half[1] : -half[1], i & 1 ? half[2] : -half[2]});
  core.polygons = {{0, 1, 3, 2}, {4, 6, 7, 5}, {0, 4, 5, 1}, {2, 3, 7, 6}, {0, 2, 6, 4}, {1, 5, 7, 3}};
}

Vector3<double> half_axes(const Geom& geom) { return vector3<double>(geom.half); }
Vector3<double> around_axis(const Geom& geom) { return {geom.radius, geom.radius, geom.half[2]}; }
Vector3<double> nothing(const Geom&) { return {0, 0, 0}; }

// The rows are in the order of mjtGeom.
constexpr ShapeRow rows[] = {
    {"plane", true, Shape::plane, 0, three_halves, nullptr, nothing},
    {"hfield", true, Shape::height_field, 0, three_halves, nullptr, nothing},
    {"sphere", true, Shape::sphere, 1, ball, vertex, nothing},
    {"capsule", true, Shape::capsule, 2, radius_and_half, edge, nothing},
    {"ellipsoid", true, Shape::ellipsoid, 1, three_halves, nullptr, half_axes},
    {"cylinder", true, Shape::cylinder, manifold_points, radius_and_half, nullptr, around_axis},
    {"box", true, Shape::box, manifold_points, three_halves, cuboid, nothing},
    {"mesh", true, Shape::mesh, manifold_points, three_halves, nullptr, nothing},
    {"sdf", false, Shape::mesh, 0, nullptr, nullptr, nullptr},
};

}  // namespace

const ShapeRow& shape_row(int mujoco_type) {
  const bool known = mujoco_type >= 0 && mujoco_type < int(std::size(rows));
  if (known && rows[mujoco_type].simulated) return rows[mujoco_type];
  const std::string got = known ? rows[mujoco_type].name : std::to_string(mujoco_type);
  throw std::invalid_argument("geom_type: no shape is of type " + got);
}

const ShapeRow& shape_row(Shape shape) {
  for (const ShapeRow& row : rows)
    if (row.simulated && row.shape == shape) return row;
  throw std::invalid_argument("shape: no row for " + std::to_string(int(shape)));
}

}  // namespace revolute
