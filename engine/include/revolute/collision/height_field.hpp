// A height field a and a convex shape b of one environment. As in MuJoCo, each cell of the grid is two prisms that stand on the
// field's base, and each prism under the box about b is a convex shape of its own:
//   cell (r, c):  the corners (r+1, c), (r, c), (r+1, c+1)  and  (r, c), (r, c+1), (r+1, c+1)                       (1)
// With the contact model "mujoco" a prism touches at its deepest point only. With "hard" it touches at all points of its
// contact area if there are slots for those of all prisms.
// Source: MuJoCo, Computation, section Collision detection; mjc_ConvexHField.
// Not differentiated: which prisms touch.
#pragma once

#include "revolute/collision/convex_pair.hpp"

namespace revolute {

// A convex shape that holds its own hull: corners 0, 1, 2 on the base and above them 3, 4, 5, anticlockwise from above.
class Prism {
 public:
  // `R`, `p`: of the field's frame. x, y, height: of the upper corners.
  REVOLUTE_HD Prism(const Matrix3<double>& R, const Vector& p, const double (&x)[3], const double (&y)[3],
                    const double (&height)[3], double base) {
    for (int i = 0; i < 3; ++i) {
      set_vertex(i, {x[i], y[i], -base});
      set_vertex(3 + i, {x[i], y[i], height[i]});
    }
    add_faces();
    add_edges();
    add_box();
    hulls_.vertices = vertices_;
    hulls_.faces = faces_;
    hulls_.edges = edges_;
    hulls_.corners = corners_;
    geom_.shape = Shape::mesh;
    geom_.vertices = 6;
    geom_.faces = 5;
    geom_.edges = 9;
    geom_.vertex_tree = geom_.face_tree = geom_.edge_tree = no_tree;
    geom_.support_cells = no_cells;
    for (int i = 0; i < 3; ++i) geom_.rotation[4 * i] = 1;
    shape_.hulls = &hulls_;
    shape_.geom = &geom_;
    shape_.R = R;
    shape_.p = p;
    shape_.centre = p + R * vector3<double>(geom_.position);
    shape_.radius = 0;
    shape_.size = geom_.bound;
  }
  Prism(const Prism&) = delete;
  Prism& operator=(const Prism&) = delete;

  REVOLUTE_HD const ConvexShape& shape() const { return shape_; }

 private:
  const int corners_[18] = {0, 2, 1, 3, 4, 5, 0, 1, 4, 3, 1, 2, 5, 4, 2, 0, 3, 5};
  double vertices_[18];
  HullFace faces_[5];  // the base, the top, the sides behind corners 0, 1, 2
  HullEdge edges_[9];
  HullArrays hulls_{};
  Geom geom_{};
  ConvexShape shape_;

  REVOLUTE_HD void set_vertex(int i, const Vector& x) { put(x, vertices_ + 3 * i); }
  REVOLUTE_HD Vector vertex(int i) const { return vector3<double>(vertices_ + 3 * i); }
  REVOLUTE_HD static void put(const Vector& from, double* to) {
    to[0] = from.x;
    to[1] = from.y;
    to[2] = from.z;
  }
  REVOLUTE_HD void add_faces() {
    for (int f = 0; f < 5; ++f) {
      HullFace& face = faces_[f];
      face.corner = face.polygon = f < 2 ? 3 * f : 4 * f - 2;
      face.corners = face.polygon_corners = f < 2 ? 3 : 4;
      const int* const at = corners_ + face.corner;
      const Vector normal = unit(cross(vertex(at[1]) - vertex(at[0]), vertex(at[2]) - vertex(at[1])));
      put(normal, face.normal);
      face.offset = dot(normal, vertex(at[0]));
    }
  }
  // The inward direction in a face, across one of its edges.
  REVOLUTE_HD void set_inward(const HullEdge& edge, const HullFace& face, double* out) const {
    const Vector from = vertex(edge.from);
    Vector inward = unit(cross(vector3<double>(face.normal), vertex(edge.to) - from));
    double most = 0;
    for (int i = 0; i < face.corners; ++i) {
      const double reach = dot(inward, vertex(corners_[face.corner + i]) - from);
      if (std::fabs(reach) > std::fabs(most)) most = reach;
    }
    put(most < 0 ? -inward : inward, out);
  }
  REVOLUTE_HD void add_edges() {
    for (int i = 0; i < 3; ++i) {
      const int next = (i + 1) % 3, before = (i + 2) % 3;
      edges_[i] = {i, next, {}};
      edges_[3 + i] = {3 + i, 3 + next, {}};
      edges_[6 + i] = {i, 3 + i, {}};
      const int beside[3][2] = {{0, 2 + i}, {1, 2 + i}, {2 + before, 2 + i}};
      for (int kind = 0; kind < 3; ++kind)
        for (int side = 0; side < 2; ++side) {
          HullEdge& edge = edges_[3 * kind + i];
          set_inward(edge, faces_[beside[kind][side]], edge.inward[side]);
        }
    }
  }
  REVOLUTE_HD void add_box() {
    Vector low = vertex(0), high = low;
    for (int i = 1; i < 6; ++i) {
      const Vector x = vertex(i);
      low = {std::fmin(low.x, x.x), std::fmin(low.y, x.y), std::fmin(low.z, x.z)};
      high = {std::fmax(high.x, x.x), std::fmax(high.y, x.y), std::fmax(high.z, x.z)};
    }
    const Vector half = 0.5 * (high - low);
    put(0.5 * (low + high), geom_.position);
    put(half, geom_.box_half);
    geom_.bound = norm(half);
  }
};

// Settings of the search for contacts with a field.
struct FieldSearch {
  double limit;  // points farther apart are left out
  bool deepest;  // only the deepest point of each prism
  int slots;     // points in all
};

namespace detail {

// The part of the grid under a shape, and the shape's lowest height, in the field's frame.
struct FieldPart {
  int first[2], last[2];  // columns, rows
  double lowest;
  bool empty;

  REVOLUTE_HD FieldPart(const HeightField& field, const Matrix3<double>& R, const Vector& p,
                        const ConvexShape& b, const FieldSearch& search) {
    double low[3], high[3];
    for (int i = 0; i < 3; ++i) {
      const Vector axis = R.column(i);
      low[i] = dot(axis, support(b, -axis) - p) - b.radius;
      high[i] = dot(axis, support(b, axis) - p) + b.radius;
    }
    lowest = low[2];
    empty = high[2] + search.limit < -field.base;
    const int cells[2] = {field.columns - 1, field.rows - 1};
    for (int i = 0; i < 2; ++i) {
      const double from = (low[i] - search.limit + field.half[i]) / field.step[i],
                   to = (high[i] + search.limit + field.half[i]) / field.step[i];
      empty = empty || !(from <= cells[i]) || !(to >= 0);
      if (empty) return;
      first[i] = from > 0 ? int(std::floor(from)) : 0;
      last[i] = to < cells[i] ? int(std::ceil(to)) : cells[i];
    }
  }
};

REVOLUTE_HD inline const Touch* deepest_point(const ContactManifold& manifold, double size) {
  const Touch* deepest = manifold.points;
  for (int k = 1; k < manifold.count; ++k)
    if (manifold.points[k].at.gap < deepest->at.gap - 1e-9 * size) deepest = manifold.points + k;
  return deepest;
}

}  // namespace detail

// Calls give(touch) for at most search.slots points, by rows and columns. R, p: pose of the field.
template <class Give>
REVOLUTE_HD inline void field_convex(const HeightField& field, const Matrix3<double>& R, const Vector& p,
                                     const ConvexShape& b, const FieldSearch& search, const Give& give) {
  const detail::FieldPart part(field, R, p, b, search);
  if (part.empty) return;
  const int prisms = 2 * (part.last[0] - part.first[0]) * (part.last[1] - part.first[1]);
  const bool deepest = search.deepest || prisms * manifold_points > search.slots;
  int count = 0;
  for (int r = part.first[1]; r < part.last[1]; ++r)
    for (int c = part.first[0]; c < part.last[0]; ++c)
      for (int half = 0; half < 2; ++half) {
        const int rows[3] = {half ? r : r + 1, r, r + 1}, columns[3] = {c, half ? c + 1 : c, c + 1};
        double x[3], y[3], height[3], highest = -1e300;
        for (int i = 0; i < 3; ++i) {  // (1)
          x[i] = columns[i] * field.step[0] - field.half[0];
          y[i] = rows[i] * field.step[1] - field.half[1];
          height[i] = field.heights[std::size_t(rows[i]) * field.columns + columns[i]];
          highest = std::fmax(highest, height[i]);
        }
        if (highest + search.limit < part.lowest) continue;
        const Prism prism(R, p, x, y, height, field.base);
        ContactManifold manifold;
        convex_pair(prism.shape(), b, search.limit, manifold);
        if (manifold.count == 0) continue;
        const Touch* const only = deepest ? detail::deepest_point(manifold, b.size) : nullptr;
        for (int k = 0; k < (only ? 1 : manifold.count); ++k) {
          const Touch& touch = only ? *only : manifold.points[k];
          if (touch.at.gap > search.limit) continue;
          give(touch);
          if (++count == search.slots) return;
        }
      }
}

}  // namespace revolute
