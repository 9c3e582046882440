// Searches a hull in a direction m: for its farthest vertex, and for all vertices, faces or edges that reach a height.
//
// The farthest vertex comes from a map of directions. Its cells are squares on the six sides of a cube, divided while many
// vertices contend for them. Each cell lists the vertices that are farthest in some of its directions. A cell omits a vertex
// that another one beats at its four corners by more than rounding; every listed vertex is looked at.
// A node of the hull's tree is a disc of centre c, axis u, radius r and half thickness t. It holds nothing higher than
//   m.c + |m.u| t + |m x u| r                                                                 (1)
// The search passes over nodes that cannot matter and looks at every item of the others. So its answers are those of a search
// through all items, to the bit, however flat or dense the hull is; they depend only on hull and direction. Hulls of few
// items have neither map nor tree.
#pragma once

#include <cmath>

#include "revolute/model/model.hpp"
#include "revolute/scalar/scalar.hpp"
#include "revolute/spatial/vector3.hpp"

namespace revolute {

using Vector = Vector3<double>;

namespace detail {

// (1); `squared`: |m|^2. The term added to |m x u|^2 = |m|^2 - (m.u)^2 is more than its rounding error.
REVOLUTE_HD inline double node_height(const HullNode& node, const Vector& m, double squared) {
  const double along = m.x * node.axis[0] + m.y * node.axis[1] + m.z * node.axis[2];
  const double across = std::sqrt(std::fabs(squared - along * along) + 1e-15 * squared);
  return m.x * node.centre[0] + m.y * node.centre[1] + m.z * node.centre[2] +
         std::fabs(along) * node.thickness + across * node.radius;
}

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

// The cell of a direction. The direction's largest component selects the side of the cube; the other two select the quarters.
REVOLUTE_HD inline const SupportCell& support_cell(const HullArrays& hulls, const Geom& geom,
                                                   const Vector& m) {
  const double x = std::fabs(m.x), y = std::fabs(m.y), z = std::fabs(m.z);
  const int axis = x >= y && x >= z ? 0 : y >= z ? 1 : 2;
  const double major = axis == 0 ? m.x : axis == 1 ? m.y : m.z;
  double u = axis == 0 ? m.y : axis == 1 ? m.z : m.x, v = axis == 0 ? m.z : axis == 1 ? m.x : m.y;
  const SupportCell* cell = hulls.support_cells + geom.support_cells + 2 * axis + (major < 0);
  // u and v: from the middle of the square, whose side is twice `half`
  for (double half = std::fabs(major); cell->count == 0;) {
    half *= 0.5;
    const bool right = u > 0, upper = v > 0;
    u += right ? -half : half;
    v += upper ? -half : half;
    cell = hulls.support_cells + cell->first + int(right) + 2 * int(upper);
  }
  return *cell;
}

REVOLUTE_HD inline int farthest_in_cells(const HullArrays& hulls, const Geom& geom, const Vector& m) {
  const SupportCell& cell = support_cell(hulls, geom, m);
  const CellMember* members = hulls.cell_members + cell.first;
  int best = 0;
  double height = -1e300;
  for (int k = 0; k < cell.count; ++k) {
    const double h = height_of(members[k].at, m);
    best = h > height ? members[k].vertex : best;
    height = h > height ? h : height;
  }
  return best;
}

}  // namespace detail

// Index of the vertex farthest in direction m, in the coordinates of the hull's link; the first of several, and the hull's
// first for m = 0.
REVOLUTE_HD inline int farthest_vertex(const HullArrays& hulls, const Geom& geom, const Vector& m) {
  if (geom.support_cells == no_cells)
    return detail::farthest_of_all(hulls.vertices + 3 * geom.vertex, geom.vertices, m);
  if (m.x == 0 && m.y == 0 && m.z == 0) return 0;
  return detail::farthest_in_cells(hulls, geom, m);
}

// Calls visit(i) for items of a tree, or without one for all of 0 ... number - 1, in any order, until it returns false. At
// least all items with a point as high as `reach` in direction m, in the coordinates of the hull's link, are visited.
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
