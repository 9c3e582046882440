// Searches of hulls by their trees, against searches through all vertices, faces and edges.
#include <set>

#include "models.hpp"
#include "revolute/collision/hull_search.hpp"

using namespace revolute;
using namespace revolute::check;

namespace {

struct Cloud {
  const char* name;
  std::vector<Point> vertices;
  std::vector<std::vector<int>> faces;
};

// Rings of quadrangles about the z axis; `height` and `radius` of a ring by its number in 0 ... 1.
template <class Height, class Radius>
Cloud rings(const char* name, int count, int sides, const Height& height, const Radius& radius) {
  Cloud out{name, {}, {}};
  for (int r = 0; r < count; ++r)
    for (int i = 0; i < sides; ++i) {
      const double angle = 6.283185307179586 * i / sides, at = double(r) / (count - 1);
      out.vertices.push_back({radius(at) * std::cos(angle), radius(at) * std::sin(angle), height(at)});
      const int next = (i + 1) % sides;
      if (r > 0)
        out.faces.push_back({(r - 1) * sides + i, (r - 1) * sides + next, r * sides + next, r * sides + i});
    }
  return out;
}
std::vector<Cloud> clouds() {
  const double pi = 3.141592653589793;
  std::vector<Cloud> out = {
      rings(
          "sphere", 24, 40, [&](double at) { return 0.2 * std::cos(pi * (at + 0.01)); },
          [&](double at) { return 0.2 * std::sin(pi * (0.99 * at + 0.005)); }),
      // each ring has many vertices of equal height, each generatrix many of equal distance
      rings(
          "drum", 8, 128, [](double at) { return 0.25 * at; }, [](double) { return 0.5; }),
      {"one place", std::vector<Point>(100, Point{0.1, 0.2, 0.3}), {}},
      {"few", {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, {{0, 1, 2}, {0, 1, 3}, {0, 2, 3}, {1, 2, 3}}}};
  Cloud lattice{"lattice", {}, {}};
  for (int i = 0; i < 400; ++i) lattice.vertices.push_back({0.125 * (i % 20), 0.125 * (i / 20), 0});
  out.push_back(lattice);
  return out;
}

// The cloud away from its link's origin.
struct Hull {
  ModelStorage storage;
  const Model& model = storage.model();
  const Geom& geom = model.geoms[0];

  explicit Hull(const Cloud& cloud) : storage(arrays(cloud)) {}
  static MujocoArrays arrays(const Cloud& cloud) {
    ModelMaker m;
    m.add_body(0, {0, 0, 0}, {0, 0, 0}, 1);
    m.add_joint(JointType::free, {0, 0, 0}, {0, 0, 1});
    m.add_mesh(1, cloud.vertices, {0.5, -0.25, 2}, {0, 0, 0});
    m.add_faces(cloud.faces);
    return m.arrays;
  }
  Point vertex(int i) const { return vector3<double>(model.vertices + 3 * (geom.vertex + i)); }
};

std::vector<Point> directions(Random& random) {
  std::vector<Point> out = {{1, 0, 0}, {-1, 0, 0}, {0, 1, 0}, {0, -1, 0},
                            {0, 0, 1}, {0, 0, -1}, {1, 1, 0}, {0, 0, 0}};
  for (int i = 0; i < 300; ++i) {
    const double size = std::pow(10.0, random.uniform(-9, 9));
    out.push_back({size * random.normal(), size * random.normal(), size * random.normal()});
  }
  // along the borders of the cells of the map from directions to vertices
  for (int i = 0; i < 300; ++i) {
    const auto border = [&] { return std::floor(random.uniform(-64, 65)) / 64; };
    const double major = random.uniform(-1, 1) < 0 ? -3.0 : 3.0, u = major * border(), v = major * border();
    out.push_back(i % 3 == 0 ? Point{major, u, v} : i % 3 == 1 ? Point{v, major, u} : Point{u, v, major});
  }
  return out;
}

void the_farthest_vertex_is_the_first_of_the_farthest() {
  Random random(300);
  for (const Cloud& cloud : clouds()) {
    const Hull hull(cloud);
    for (const Point& m : directions(random)) {
      int best = 0;
      for (int i = 1; i < hull.geom.vertices; ++i)
        if (dot(m, hull.vertex(i)) > dot(m, hull.vertex(best))) best = i;
      expect(farthest_vertex(hull.model, hull.geom, m) == best, cloud.name, __FILE__, __LINE__);
    }
  }
}

// `height(i)`: that of an item's highest point. Returns how many are visited.
template <class Height>
int check_visits(const char* name, const Hull& hull, int tree, int number, const Point& m, double reach,
                 const Height& height) {
  std::multiset<int> visited;
  visit_high_items(hull.model, tree, number, m, reach, [&](int i) {
    visited.insert(i);
    return true;
  });
  for (int i = 0; i < number; ++i)
    if (height(i) >= reach) expect(visited.count(i) == 1, name, __FILE__, __LINE__);
  int seen = 0;
  visit_high_items(hull.model, tree, number, m, reach, [&](int) { return ++seen < 2; });
  expect(seen <= 2, name, __FILE__, __LINE__);
  return int(visited.size());
}

void all_that_reach_a_height_are_visited() {
  Random random(301);
  for (const Cloud& cloud : clouds()) {
    const Hull hull(cloud);
    const Geom& geom = hull.geom;
    const Model& model = hull.model;
    int visited = 0, number = 0;
    for (Point m : directions(random)) {
      if (norm(m) > 0) m = (1 / norm(m)) * m;
      const auto vertex = [&](int i) { return dot(m, hull.vertex(i)); };
      const auto face = [&](int i) {
        const HullFace& at = model.faces[geom.face + i];
        double high = -1e300;
        for (int k = 0; k < at.corners; ++k) high = std::fmax(high, vertex(model.corners[at.corner + k]));
        return high;
      };
      const auto edge = [&](int i) {
        const HullEdge& at = model.edges[geom.edge + i];
        return std::fmax(vertex(at.from), vertex(at.to));
      };
      const double top = vertex(farthest_vertex(model, geom, m));
      for (double depth : {0.0, 1e-3, 0.3}) {
        check_visits(cloud.name, hull, geom.vertex_tree, geom.vertices, m, top - depth, vertex);
        check_visits(cloud.name, hull, geom.edge_tree, geom.edges, m, top - depth, edge);
        visited += check_visits(cloud.name, hull, geom.face_tree, geom.faces, m, top - depth, face);
        number += geom.faces;
      }
    }
    // of a dense hull most are passed over
    if (geom.faces > 500) CHECK(visited < number / 2);
  }
}

}  // namespace

int main() {
  return run(
      {{"the farthest vertex is the first of the farthest", the_farthest_vertex_is_the_first_of_the_farthest},
       {"all that reach a height are visited", all_that_reach_a_height_are_visited}});
}
