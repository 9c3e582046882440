// The table of MuJoCo's geometry types: a row for each, in MuJoCo's order, and what their sizes mean.
#include <stdexcept>

#include "../../engine/src/shape_table.hpp"
#include "check.hpp"
#include "revolute/model/pair_kinds.hpp"
#include "revolute/stages/convex_contacts.hpp"

using namespace revolute;
using namespace revolute::check;

namespace {

template <class Call>
bool refuses(const Call& call) {
  try {
    call();
  } catch (const std::invalid_argument&) {
    return true;
  }
  return false;
}

// mjtGeom's order
void every_type_has_a_row() {
  const struct {
    int type;
    Shape shape;
    const char* name;
  } simulated[] = {{0, Shape::plane, "plane"},
                   {1, Shape::height_field, "hfield"},
                   {2, Shape::sphere, "sphere"},
                   {3, Shape::capsule, "capsule"},
                   {4, Shape::ellipsoid, "ellipsoid"},
                   {5, Shape::cylinder, "cylinder"},
                   {6, Shape::box, "box"},
                   {7, Shape::mesh, "mesh"}};
  for (const auto& [type, shape, name] : simulated) {
    CHECK(shape_row(type).shape == shape && std::string(shape_row(type).name) == name);
    CHECK(&shape_row(shape) == &shape_row(type));
    CHECK(shape_row(type).measure && shape_row(type).extents);
  }
  for (int type : {-1, 8, 9, 100}) CHECK(refuses([&] { shape_row(type); }));
}

void sizes_are_mujocos() {
  const double size[3] = {0.1, 0.2, 0.3};
  const auto measured = [&](Shape shape) {
    Geom geom{};
    shape_row(shape).measure(size, geom);
    return geom;
  };
  CHECK(measured(Shape::sphere).radius == 0.1);
  for (Shape shape : {Shape::capsule, Shape::cylinder}) {
    CHECK(measured(shape).radius == 0.1);
    CHECK(measured(shape).half[2] == 0.2);
  }
  for (Shape shape : {Shape::box, Shape::ellipsoid}) {
    CHECK(measured(shape).radius == 0);
    for (int i = 0; i < 3; ++i) CHECK(measured(shape).half[i] == size[i]);
  }
  ShapeCore core;
  shape_row(Shape::box).add_core(measured(Shape::box), core);
  CHECK(core.vertices.size() == 8 && core.polygons.size() == 6);
  CHECK(shape_row(Shape::cylinder).extents(measured(Shape::cylinder)).z == 0.2);
}

// MuJoCo's formula for a plane and the vertices of a hull serves meshes only.
void other_shapes_are_searched() {
  CHECK(mujoco_pair_kind(Shape::plane, Shape::mesh).pair == Pair::plane_mesh);
  const PairKind searched = mujoco_pair_kind(Shape::plane, Shape(int(Shape::mesh) + 1));
  CHECK(searched.pair == Pair::plane_convex && searched.slots == 0);
  CHECK(is_searched(searched.pair) && !is_searched(Pair::plane_mesh));
}

}  // namespace

int main() {
  return run({{"other shapes are searched", other_shapes_are_searched},
              {"every type has a row", every_type_has_a_row},
              {"sizes", sizes_are_mujocos}});
}
