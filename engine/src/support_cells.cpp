#include "support_cells.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace revolute {

namespace {

constexpr std::size_t few_vertices = 16, few_members = 6;
constexpr int deepest = 7;

using Point = Vector3<double>;
using Members = std::vector<int>;

// A square of directions on one side of the cube: +-1 along the side's axis, centred at u and v along the next two axes.
struct Square {
  int side;
  double u, v, half;

  Point direction(double along_u, double along_v) const {
    const int axis = side / 2;
    double out[3];
    out[axis] = side % 2 ? -1 : 1;
    out[(axis + 1) % 3] = u + half * along_u;
    out[(axis + 2) % 3] = v + half * along_v;
    return {out[0], out[1], out[2]};
  }
  Square quarter(int which) const {
    return {side, u + (which & 1 ? 0.5 : -0.5) * half, v + (which & 2 ? 0.5 : -0.5) * half, 0.5 * half};
  }
};

class Builder {
 public:
  Builder(const std::vector<Point>& vertices, std::vector<SupportCell>& cells,
          std::vector<CellMember>& members)
      : vertices_(vertices), cells_(cells), members_(members) {
    for (const Point& v : vertices)
      rounding_ = std::max(rounding_, 1e-12 * (std::fabs(v.x) + std::fabs(v.y) + std::fabs(v.z)));
  }

  int build() {
    const int first = int(cells_.size());
    cells_.resize(cells_.size() + 6);
    Members all(vertices_.size());
    std::iota(all.begin(), all.end(), 0);
    for (int side = 0; side < 6; ++side) fill(first + side, {side, 0, 0, 1}, all, 0);
    return first;
  }

 private:
  const std::vector<Point>& vertices_;
  std::vector<SupportCell>& cells_;
  std::vector<CellMember>& members_;
  double rounding_ = 0;

  // `from` has the vertices that may be farthest in a square around this one.
  void fill(int cell, const Square& square, const Members& from, int depth) {
    const Members kept = contenders(square, from);
    if (kept.size() <= few_members || depth == deepest) {
      cells_[cell] = {int(members_.size()), int(kept.size())};
      for (int i : kept) members_.push_back({{vertices_[i].x, vertices_[i].y, vertices_[i].z}, i});
      return;
    }
    const int first = int(cells_.size());
    cells_.resize(cells_.size() + 4);
    cells_[cell] = {first, 0};
    for (int which = 0; which < 4; ++which) fill(first + which, square.quarter(which), kept, depth + 1);
  }

  // The vertices that may be the farthest somewhere in the square. A vertex lower than another at the four corners is lower
  // throughout, because heights are linear in the direction.
  Members contenders(const Square& square, const Members& from) const {
    Point corner[4];
    for (int i = 0; i < 4; ++i) corner[i] = square.direction(i & 1 ? 1 : -1, i & 2 ? 1 : -1);
    Members winners;
    for (int i = 0; i < 9; ++i) {
      const Point m = square.direction(i % 3 - 1, i / 3 - 1);
      const auto lower = [&](int a, int b) { return dot(m, vertices_[a]) < dot(m, vertices_[b]); };
      const int winner = *std::max_element(from.begin(), from.end(), lower);
      if (std::find(winners.begin(), winners.end(), winner) == winners.end()) winners.push_back(winner);
    }
    Members kept;
    for (int i : from)
      if (std::none_of(winners.begin(), winners.end(), [&](int w) { return beats(w, i, corner); }))
        kept.push_back(i);
    return kept;
  }
  bool beats(int winner, int other, const Point* corner) const {
    const Point lead = vertices_[winner] - vertices_[other];
    for (int i = 0; i < 4; ++i)
      if (!(dot(corner[i], lead) > rounding_)) return false;
    return true;
  }
};

}  // namespace

int add_support_cells(const std::vector<Point>& vertices, std::vector<SupportCell>& cells,
                      std::vector<CellMember>& members) {
  if (vertices.size() <= few_vertices) return no_cells;
  return Builder(vertices, cells, members).build();
}

}  // namespace revolute
