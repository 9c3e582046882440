// Searches a hull in a direction m: for its farthest vertex, and for all vertices, faces or edges that reach a height.
//
// A node of the hull's tree is a disc of centre c, axis u, radius r and half thickness t. It holds nothing higher than
//   m.c + |m.u| t + |m x u| r                                                                 (1)
// Nodes that cannot matter are passed over; of the others every item is looked at, so that the answer is that of a search
// through all items, to the bit, however flat or dense the hull is. Hulls of few items have no tree.
#pragma once

#include <cmath>

#include "revolute/model/model.hpp"
#include "revolute/scalar/scalar.hpp"
#include "revolute/spatial/vector3.hpp"

namespace revolute {

using Vector = Vector3<double>;

namespace detail {

// (1); `squared`: |m|^2. What is added to |m x u|^2 = |m|^2 - (m.u)^2 is more than its rounding error.
REVOLUTE_HD inline double node_height(const HullNode& node, const Vector& m, double squared) {
  const double along = m.x * node.axis[0] + m.y * node.axis[1] + m.z * node.axis[2];
  const double across = std::sqrt(std::fabs(squared - along * along) + 1e-15 * squared);
  return m.x * node.centre[0] + m.y * node.centre[1] + m.z * node.centre[2] +
         std::fabs(along) * node.thickness + across * node.radius;
}

}  // namespace detail

namespace detail {

REVOLUTE_HD inline double height_of(const double* v, const Vector& m) {
  return m.x * v[0] + m.y * v[1] + m.z * v[2];
}

REVOLUTE_HD inline int farthest_of_all(const double* vertices, int count, const Vector& m) {
  int best = 0;
  double height = -1e300;
  for (int i = 0; i < count; ++i) {
    const double h = height_of(vertices + 3 * i, m);
    if (h > height) {
      height = h;
      best = i;
    }
  }
  return best;
}

REVOLUTE_NOINLINE inline int farthest_in_tree(const HullArrays& hulls, const Geom& geom, const Vector& m) {
  const double* vertices = hulls.vertices + 3 * geom.vertex;
  int best = 0;
  double height = -1e300;
  const double squared = dot(m, m);
  struct Waiting {
    int node;
    double height;
  } waiting[deepest_tree];
  int count = 0;
  const HullNode* nodes = hulls.hull_nodes;
  Waiting at = {geom.vertex_tree, 1e300};
  for (;;) {
    if (!(at.height < height)) {
      const HullNode& node = nodes[at.node];
      if (node.count == 0) {
        // first the child that may reach higher
        const Waiting left = {at.node + 1, node_height(nodes[at.node + 1], m, squared)},
                      right = {node.right, node_height(nodes[node.right], m, squared)};
        const bool right_first = right.height > left.height;
        waiting[count++] = right_first ? left : right;
        at = right_first ? right : left;
        continue;
      }
      for (int k = node.first; k < node.first + node.count; ++k) {
        const int i = hulls.hull_items[k];
        const double h = height_of(vertices + 3 * i, m);
        if (h > height || (h == height && i < best)) {
          height = h;
          best = i;
        }
      }
    }
    if (count == 0) return best;
    at = waiting[--count];
  }
}

}  // namespace detail

// Index of the vertex farthest in direction m, in the coordinates of the hull's link; the first of several.
REVOLUTE_HD inline int farthest_vertex(const HullArrays& hulls, const Geom& geom, const Vector& m) {
  if (geom.vertex_tree == no_tree)
    return detail::farthest_of_all(hulls.vertices + 3 * geom.vertex, geom.vertices, m);
  return detail::farthest_in_tree(hulls, geom, m);
}

// Calls visit(i) for items of a tree, or for all of 0 ... number - 1 without one, until it returns false: at least for all
// that have a point as high as `reach` in direction m, in the coordinates of the hull's link; in any order.
template <class Visit>
REVOLUTE_HD inline void visit_high_items(const HullArrays& hulls, int tree, int number, const Vector& m,
                                         double reach, const Visit& visit) {
  if (tree == no_tree) {
    for (int i = 0; i < number; ++i)
      if (!visit(i)) return;
    return;
  }
  const double squared = dot(m, m);
  int waiting[deepest_tree], count = 0;
  for (int at = tree;;) {
    const HullNode& node = hulls.hull_nodes[at];
    if (!(detail::node_height(node, m, squared) < reach)) {
      if (node.count == 0) {
        waiting[count++] = node.right;
        ++at;
        continue;
      }
      for (int i = node.first; i < node.first + node.count; ++i)
        if (!visit(hulls.hull_items[i])) return;
    }
    if (count == 0) return;
    at = waiting[--count];
  }
}

}  // namespace revolute
