#include "hull_tree.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace revolute {

namespace {

constexpr int few_items = 128, leaf_items = 6;

using Point = Vector3<double>;
using Items = std::vector<std::vector<Point>>;

double coordinate(const Point& point, int axis) {
  return axis == 0 ? point.x : axis == 1 ? point.y : point.z;
}

// The unit direction in which points spread least about their middle, approximately: power iteration with tr(C) - C.
Point flattest_direction(const std::vector<Point>& points, const Point& middle) {
  Point axis = {0.48, 0.6, 0.64};
  for (int i = 0; i < 40; ++i) {
    Point turned = {0, 0, 0};
    for (const Point& point : points) {
      const Point arm = point - middle;
      turned += dot(arm, arm) * axis - dot(arm, axis) * arm;
    }
    const double size = std::sqrt(dot(turned, turned));
    if (!(size > 1e-100)) break;  // all points in one place, or on a line along the axis
    axis = (1 / size) * turned;
  }
  return axis;
}

// Smallest box with its sides along the axes.
struct Bounds {
  double low[3] = {1e300, 1e300, 1e300}, high[3] = {-1e300, -1e300, -1e300};

  void add(const Point& point) {
    for (int axis = 0; axis < 3; ++axis) {
      low[axis] = std::min(low[axis], coordinate(point, axis));
      high[axis] = std::max(high[axis], coordinate(point, axis));
    }
  }
  double middle(int axis) const { return 0.5 * (low[axis] + high[axis]); }
  int longest() const {
    int best = 0;
    for (int axis = 1; axis < 3; ++axis)
      if (high[axis] - low[axis] > high[best] - low[best]) best = axis;
    return best;
  }
};

class Builder {
 public:
  Builder(const Items& items, std::vector<HullNode>& nodes, std::vector<int>& order)
      : items_(items), nodes_(nodes), order_(order), base_(order.size()) {
    order_.resize(base_ + items.size());
    std::iota(order_.begin() + long(base_), order_.end(), 0);
    for (const auto& item : items) {
      Bounds bounds;
      for (const Point& point : item) bounds.add(point);
      middles_.push_back({bounds.middle(0), bounds.middle(1), bounds.middle(2)});
    }
  }

  // `first` and `last` give a range of the order.
  int build(std::size_t first, std::size_t last) {
    const int index = int(nodes_.size());
    nodes_.push_back(disc(first, last));
    if (last - first <= std::size_t(leaf_items)) {
      nodes_[index].first = int(first);
      nodes_[index].count = int(last - first);
      return index;
    }
    Bounds middles;
    for (std::size_t i = first; i < last; ++i) middles.add(middles_[order_[i]]);
    const int axis = middles.longest();
    const std::size_t half = first + (last - first) / 2;
    std::nth_element(order_.begin() + long(first), order_.begin() + long(half), order_.begin() + long(last),
                     [&](int a, int b) {
                       const double at_a = coordinate(middles_[a], axis),
                                    at_b = coordinate(middles_[b], axis);
                       return at_a != at_b ? at_a < at_b : a < b;
                     });
    build(first, half);
    const int right = build(half, last);
    nodes_[index].right = right;
    return index;
  }

  int build() { return build(base_, order_.size()); }

 private:
  const Items& items_;
  std::vector<HullNode>& nodes_;
  std::vector<int>& order_;
  std::size_t base_;
  std::vector<Point> middles_;

  std::vector<Point> points(std::size_t first, std::size_t last) const {
    std::vector<Point> out;
    for (std::size_t i = first; i < last; ++i)
      out.insert(out.end(), items_[order_[i]].begin(), items_[order_[i]].end());
    return out;
  }

  // The disc about the items' points. It is flat if they lie on a flat part of the hull.
  HullNode disc(std::size_t first, std::size_t last) const {
    const std::vector<Point> about = points(first, last);
    Point middle = {0, 0, 0};
    for (const Point& point : about) middle += (1.0 / double(about.size())) * point;
    const Point axis = flattest_direction(about, middle);
    double low = 1e300, high = -1e300, squared = 0;
    for (const Point& point : about) {
      const Point arm = point - middle;
      const double along = dot(axis, arm);
      low = std::min(low, along);
      high = std::max(high, along);
      const Point across = arm - along * axis;
      squared = std::max(squared, dot(across, across));
    }
    const Point centre = middle + (0.5 * (low + high)) * axis;
    const double radius = std::sqrt(squared), thickness = 0.5 * (high - low);
    const double rounding = 1e-12 * (radius + thickness + std::sqrt(dot(centre, centre)));
    return {{centre.x, centre.y, centre.z},
            {axis.x, axis.y, axis.z},
            radius + rounding,
            thickness + rounding,
            0,
            0,
            0};
  }
};

}  // namespace

int add_hull_tree(const Items& items, std::vector<HullNode>& nodes, std::vector<int>& order) {
  if (items.size() <= std::size_t(few_items)) return no_tree;
  return Builder(items, nodes, order).build();
}

}  // namespace revolute
