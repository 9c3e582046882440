#include "thinned_polygon.hpp"

#include <algorithm>
#include <cmath>

namespace revolute {

namespace {

using Point = Vector3<double>;

double squared(const Point& a) { return dot(a, a); }

class Corners {
 public:
  Corners(const std::vector<Point>& vertices, const std::vector<int>& polygon)
      : vertices_(vertices), polygon_(polygon) {}
  int count() const { return int(polygon_.size()); }
  Point operator[](int i) const { return vertices_[polygon_[i % count()]]; }

 private:
  const std::vector<Point>& vertices_;
  const std::vector<int>& polygon_;
};

// Four times the squared area of the largest triangle with a corner at i; sets its other two corners.
double largest_triangle(const Corners& corners, int i, int& second, int& third) {
  double most = -1;
  for (int j = i + 1, k = i + 2; k < i + corners.count(); ++j, k = std::max(k, j + 1)) {
    const auto area = [&](int at) {
      return squared(cross(corners[j] - corners[i], corners[at] - corners[i]));
    };
    // the area has one maximum over the third corner, and that corner moves on with the second
    while (k + 1 < i + corners.count() && area(k + 1) > area(k)) ++k;
    if (area(k) > most) {
      most = area(k);
      second = j;
      third = k;
    }
  }
  return most;
}

double squared_distance(const Point& x, const Point& from, const Point& to) {
  const Point along = to - from;
  const double length = squared(along);
  return length > 0 ? squared(cross(x - from, along)) / length : squared(x - from);
}

}  // namespace

std::vector<int> thinned_polygon(const std::vector<Point>& vertices, const std::vector<int>& polygon,
                                 int most) {
  if (int(polygon.size()) <= most) return polygon;
  const Corners corners(vertices, polygon);
  const int count = corners.count();
  std::vector<int> kept(3);
  double area = -1;
  for (int n = 0; n < most; ++n) {
    const int first = int(long(n) * count / most);
    int second = 0, third = 0;
    const double here = largest_triangle(corners, first, second, third);
    if (here > area) {
      area = here;
      kept = {first, second % count, third % count};
    }
  }
  std::sort(kept.begin(), kept.end());
  while (int(kept.size()) < most) {
    double farthest = -1;
    int added = -1;
    for (std::size_t k = 0; k < kept.size(); ++k) {
      const int from = kept[k], to = k + 1 < kept.size() ? kept[k + 1] : kept[0] + count;
      for (int i = from + 1; i < to; ++i) {
        const double distance = squared_distance(corners[i], corners[from], corners[to]);
        if (distance <= farthest) continue;
        farthest = distance;
        added = i % count;
      }
    }
    kept.insert(std::lower_bound(kept.begin(), kept.end(), added), added);
  }
  std::vector<int> out;
  for (int i : kept) out.push_back(polygon[i]);
  return out;
}

}  // namespace revolute
