// Faces of many corners in the model: which corners are kept.
#include <algorithm>

#include "models.hpp"

using namespace revolute;
using namespace revolute::check;

namespace {

// A prism over a polygon, and the corners of its upper face in the model.
struct Prism {
  std::vector<Point> outline;
  ModelStorage storage;
  std::vector<Point> kept;

  explicit Prism(const std::vector<Point>& outline) : outline(outline), storage(arrays(outline)) {
    const Model& model = storage.model();
    for (int i = 0; i < model.faces[0].corners; ++i) {
      const int vertex = model.corners[model.faces[0].corner + i];
      kept.push_back(vector3<double>(model.vertices + 3 * vertex));
    }
  }
  static MujocoArrays arrays(const std::vector<Point>& outline) {
    const int count = int(outline.size());
    std::vector<Point> vertices = outline;
    std::vector<std::vector<int>> faces(2);
    for (const Point& corner : outline) vertices.push_back(corner - Point{0, 0, 1});
    for (int i = 0; i < count; ++i) {
      const int next = (i + 1) % count;
      faces[0].push_back(i);
      faces[1].push_back(count + i);
      faces.push_back({i, next, count + next, count + i});
    }
    ModelMaker m;
    m.add_body(0, {0, 0, 0}, {0, 0, 0}, 1);
    m.add_joint(JointType::free, {0, 0, 0}, {0, 0, 1});
    m.add_mesh(1, vertices, {0, 0, 0}, {0, 0, 0});
    m.add_faces(faces);
    return m.arrays;
  }
  // How far the outline reaches out of the corners that are kept.
  double lost() const {
    double most = 0;
    for (const Point& x : outline)
      for (std::size_t i = 0; i < kept.size(); ++i) {
        const Point along = kept[(i + 1) % kept.size()] - kept[i];
        most = std::max(most, dot(cross(along, Point{0, 0, 1}), x - kept[i]) / norm(along));
      }
    return most;
  }
};

std::vector<Point> arc(double radius, double from, double to, int count) {
  std::vector<Point> out;
  for (int i = 0; i < count; ++i) {
    const double angle = from + (to - from) * i / count;
    out.push_back({radius * std::cos(angle), radius * std::sin(angle), 0});
  }
  return out;
}

void few_corners_all_stay() {
  CHECK(Prism(arc(1, 0, 6.283185307179586, polygon_corners)).kept.size() == std::size_t(polygon_corners));
}
void a_round_face_loses_little() {
  for (int count : {25, 32, 100, 128, 1000}) {
    const Prism prism(arc(1, 0, 6.283185307179586, count));
    CHECK(prism.kept.size() == std::size_t(polygon_corners));
    // best: arcs of as many sides each
    const int sides = (count + polygon_corners - 1) / polygon_corners;
    CHECK(prism.lost() < 1.4 * (1 - std::cos(3.141592653589793 * sides / count)));
  }
}
// A square with one rounded corner, which has most of the vertices.
void sharp_corners_stay() {
  for (int first = 0; first < 40; ++first) {
    std::vector<Point> outline = arc(0.1, 0, 1.5707963267948966, 60);
    for (const Point& corner : {Point{-1, 0.1, 0}, Point{-1, -1, 0}, Point{0.1, -1, 0}})
      outline.push_back(corner);
    std::rotate(outline.begin(), outline.begin() + first, outline.end());
    const Prism prism(outline);
    CHECK(prism.kept.size() == std::size_t(polygon_corners));
    CHECK(prism.lost() < 1e-3);
  }
}

}  // namespace

int main() {
  return run({{"few corners all stay", few_corners_all_stay},
              {"a round face loses little", a_round_face_loses_little},
              {"sharp corners stay", sharp_corners_stay}});
}
