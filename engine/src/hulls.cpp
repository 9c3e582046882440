#include "hulls.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include "hull_tree.hpp"
#include "shape_table.hpp"
#include "support_cells.hpp"
#include "thinned_polygon.hpp"

namespace revolute {

namespace {

class HullBuilder {
 public:
  HullBuilder(const MujocoArrays& in, Hulls& out) : in_(in), out_(out) {}

  void add(int g, const Pose& at, Geom& geom) {
    geom.vertex = int(out_.vertices.size() / 3);
    geom.face = int(out_.faces.size());
    geom.edge = int(out_.edges.size());
    const ShapeRow& row = shape_row(geom.shape);
    ShapeCore core;
    if (row.add_core) row.add_core(geom, core);
    if (geom.shape == Shape::mesh) add_mesh(g, core);
    std::vector<Vector3<double>>& vertices = core.vertices;
    add_box(vertices, geom);
    for (Vector3<double>& vertex : vertices) {
      vertex = at.p + at.R * vertex;
      double numbers[3];
      store(vertex, numbers);
      out_.vertices.insert(out_.vertices.end(), numbers, numbers + 3);
    }
    if (vertices.size() == 2) out_.edges.push_back({0, 1, {{0, 0, 0}, {0, 0, 0}}});
    add_faces(vertices, core.polygons);
    geom.vertices = int(vertices.size());
    geom.faces = int(out_.faces.size()) - geom.face;
    geom.edges = int(out_.edges.size()) - geom.edge;
    add_vertex_faces(geom);
    add_trees(vertices, geom);
    geom.support_cells = add_support_cells(vertices, out_.cells, out_.cell_members);
  }

 private:
  const MujocoArrays& in_;
  Hulls& out_;

  // `vertices` are those of the hull or core, in the shape's frame.
  static void add_box(const std::vector<Vector3<double>>& vertices, Geom& geom) {
    Vector3<double> high = shape_row(geom.shape).extents(geom), low = -high;
    if (!vertices.empty()) {
      low = high = vertices[0];
      for (const Vector3<double>& v : vertices) {
        low = {std::min(low.x, v.x), std::min(low.y, v.y), std::min(low.z, v.z)};
        high = {std::max(high.x, v.x), std::max(high.y, v.y), std::max(high.z, v.z)};
      }
      const Vector3<double> about = {geom.radius, geom.radius, geom.radius};
      low = low - about;
      high = high + about;
    }
    store(0.5 * (low + high), geom.box_centre);
    store(0.5 * (high - low), geom.box_half);
  }

  void add_vertex_faces(const Geom& geom) {
    std::vector<Ints> faces(geom.vertices);
    for (int f = geom.face; f < geom.face + geom.faces; ++f) {
      const HullFace& face = out_.faces[f];
      for (int i = 0; i < face.polygon_corners; ++i) faces[out_.corners[face.polygon + i]].push_back(f);
    }
    for (const Ints& around : faces) {
      out_.vertex_faces.insert(out_.vertex_faces.end(), around.begin(), around.end());
      out_.vertex_faces_begin.push_back(int(out_.vertex_faces.size()));
    }
  }

  // `vertices` are in the link's frame.
  void add_trees(const std::vector<Vector3<double>>& vertices, Geom& geom) {
    std::vector<std::vector<Vector3<double>>> items;
    const auto tree = [&] { return add_hull_tree(items, out_.nodes, out_.items); };
    for (const Vector3<double>& vertex : vertices) items.push_back({vertex});
    geom.vertex_tree = tree();
    items.clear();
    for (int f = geom.face; f < geom.face + geom.faces; ++f) {
      const HullFace& face = out_.faces[f];
      items.emplace_back();
      for (int i = 0; i < face.corners; ++i) items.back().push_back(vertices[out_.corners[face.corner + i]]);
    }
    geom.face_tree = tree();
    items.clear();
    for (int e = geom.edge; e < geom.edge + geom.edges; ++e)
      items.push_back({vertices[out_.edges[e].from], vertices[out_.edges[e].to]});
    geom.edge_tree = tree();
  }

  void add_mesh(int g, ShapeCore& core) const {
    for (int i = 0; i < in_.hull_num[g]; ++i)
      core.vertices.push_back(vector3<double>(&in_.hull_vert[3 * (in_.hull_adr[g] + i)]));
    std::size_t corner = 0;
    for (int p = 0; p < in_.hull_polyadr[g]; ++p) corner += in_.hull_polyvertnum.at(p);
    for (int p = in_.hull_polyadr[g]; p < in_.hull_polyadr[g] + in_.hull_polynum[g]; ++p) {
      Ints polygon;
      for (int i = 0; i < in_.hull_polyvertnum.at(p); ++i) {
        polygon.push_back(in_.hull_polyvert.at(corner++));
        if (polygon.back() < 0 || polygon.back() >= in_.hull_num[g])
          throw std::invalid_argument("hull_polyvert: expected a vertex of geom " + std::to_string(g) +
                                      ", got " + std::to_string(polygon.back()));
      }
      if (polygon.size() >= 3) core.polygons.push_back(polygon);
    }
  }

  // Builds faces and edges of a hull from its polygons, which may turn either way.
  void add_faces(const std::vector<Vector3<double>>& vertices, std::vector<Ints>& polygons) {
    Vector3<double> middle = {0, 0, 0};
    for (const Vector3<double>& vertex : vertices) middle += (1.0 / double(vertices.size())) * vertex;
    std::map<std::pair<int, int>, std::size_t> edge_of;
    for (Ints& polygon : polygons) {
      Vector3<double> normal = {0, 0, 0};  // by Newell's method
      for (std::size_t i = 0; i < polygon.size(); ++i)
        normal += cross(vertices[polygon[i]] - vertices[polygon[0]],
                        vertices[polygon[(i + 1) % polygon.size()]] - vertices[polygon[0]]);
      if (dot(normal, normal) <= 0) continue;
      normal = (1 / std::sqrt(dot(normal, normal))) * normal;
      HullFace face{};
      face.polygon = int(out_.corners.size());
      face.polygon_corners = int(polygon.size());
      out_.corners.insert(out_.corners.end(), polygon.begin(), polygon.end());
      if (dot(normal, vertices[polygon[0]] - middle) < 0) {
        normal = -normal;
        std::reverse(polygon.begin(), polygon.end());
      }
      store(normal, face.normal);
      face.offset = dot(normal, vertices[polygon[0]]);
      face.corner = int(out_.corners.size());
      const Ints corners = thinned_polygon(vertices, polygon, polygon_corners);
      face.corners = int(corners.size());
      out_.corners.insert(out_.corners.end(), corners.begin(), corners.end());
      out_.faces.push_back(face);
      for (std::size_t i = 0; i < polygon.size(); ++i)
        add_edge(vertices, polygon[i], polygon[(i + 1) % polygon.size()], normal, edge_of);
    }
  }
  void add_edge(const std::vector<Vector3<double>>& vertices, int from, int to, const Vector3<double>& normal,
                std::map<std::pair<int, int>, std::size_t>& edge_of) {
    const auto [found, is_new] = edge_of.try_emplace(std::minmax(from, to), out_.edges.size());
    if (is_new) out_.edges.push_back({from, to, {{0, 0, 0}, {0, 0, 0}}});
    const Vector3<double> inward = cross(normal, vertices[to] - vertices[from]);
    const double size = std::sqrt(dot(inward, inward));
    if (size > 0) store((1 / size) * inward, out_.edges[found->second].inward[is_new ? 0 : 1]);
  }
};

}  // namespace

void add_hull(const MujocoArrays& in, int g, const Pose& at, Geom& geom, Hulls& out) {
  HullBuilder(in, out).add(g, at, geom);
}

}  // namespace revolute
