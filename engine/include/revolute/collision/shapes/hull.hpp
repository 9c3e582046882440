// Shapes with flat faces, and those with a radius about such a core: a sphere is a vertex, a capsule an edge, a box and a mesh
// are polyhedra. Their vertices, edges and faces lie in the model (Geom), in their link's frame.
#pragma once

#include "revolute/collision/face_points.hpp"
#include "revolute/collision/surface_element.hpp"

namespace revolute {

struct HullShape {
  static constexpr double facing = 0.2;  // faces that turn farther away from a direction do not face it
  static constexpr double band =
      0.02;  // edges and faces that lie deeper than this part of the shape's size are not tried;
  static constexpr int few_faces = 12;  // a hull with at most so many faces tries all of them

  REVOLUTE_HD static Vector support(const ConvexShape& shape, const Vector& m, double scale) {
    const Vector v = shape.vertex(support_vertex(shape, m));
    return scale == 1 ? v : shape.centre + scale * (v - shape.centre);
  }

  // A vertex, an edge, or a face where three vertices are equally high.
  REVOLUTE_HD static SurfaceElement element(const ConvexShape& shape, const Vector& m, double tolerance) {
    const double height = dot(m, shape.vertex(support_vertex(shape, m))) - tolerance * shape.size;
    int touching[3], count = 0;
    visit_high_vertices(shape, m, height, [&](int i) {
      if (dot(m, shape.vertex(i)) >= height) touching[count++] = i;
      return count < 3;
    });
    if (count == 2 && touching[0] > touching[1]) {
      const int kept = touching[0];
      touching[0] = touching[1];
      touching[1] = kept;
    }
    if (count == 1) return vertex_element(shape.vertex(touching[0]), shape.radius);
    if (count == 2) return edge_element(shape.vertex(touching[0]), shape.vertex(touching[1]), shape.radius);
    SurfaceElement face = vertex_element(shape.vertex(touching[0]), shape.radius);
    face.feature = Feature::face;
    return face;
  }
  // Vertices and edges stay when the direction turns.
  REVOLUTE_HD static void follow(const ConvexShape&, const Vector&, const Vector& start,
                                 SurfaceElement& element) {
    element.point = start;
  }

  // In the link's frame. The face around the farthest vertex that is likely to win comes first; most others then cannot win.
  template <class Visit>
  REVOLUTE_HD static void visit_faces(const ConvexShape& shape, const Vector& towards,
                                      const FaceRivals& rivals, const Visit& visit) {
    const Geom& geom = *shape.geom;
    if (geom.faces == 0) return;
    const HullArrays& hulls = *shape.hulls;
    const auto vertex = [&](int i) { return vector3<double>(hulls.vertices + 3 * (geom.vertex + i)); };
    const Vector m = transpose_times(shape.R, towards);
    const int farthest = farthest_vertex(hulls, geom, m);
    const double reach = dot(m, vertex(farthest)) - band * shape.size;
    const auto reaches = [&](const HullFace& face) {
      const int* corner = hulls.corners + face.corner;
      for (int i = 0; i < face.corners; ++i)
        if (dot(m, vertex(corner[i])) >= reach) return true;
      return false;
    };
    Vector points[FaceRivals::most];  // of rivals
    int known = 0;
    const auto learn = [&] {
      for (; known < rivals.count; ++known) {
        const int i = known % FaceRivals::most;
        points[i] = transpose_times(shape.R, rivals.points[i] - shape.p);
      }
    };
    const auto height = [](const HullFace& face, const Vector& x) {
      return dot(vector3<double>(face.normal), x) - face.offset;
    };
    const auto may_win = [&](const HullFace& face) {
      if (dot(vector3<double>(face.normal), m) < facing) return false;
      for (int i = 0; i < rivals.size(); ++i)
        if (height(face, points[i]) < rivals.least) return false;
      return geom.faces <= few_faces || reaches(face);
    };
    const auto consider = [&](int f) {
      const HullFace& face = shape.face(f);
      if (!may_win(face)) return;
      visit(f, shape.R * vector3<double>(face.normal), shape.corner(face, 0));
      learn();
    };
    learn();
    int first = -1;
    if (geom.faces > few_faces) {
      const int* range = hulls.vertex_faces_begin + geom.vertex + farthest;
      double most = -1e300;
      for (int i = range[0]; i < range[1]; ++i) {
        const HullFace& face = hulls.faces[hulls.vertex_faces[i]];
        if (!(height(face, points[0]) > most) || !may_win(face)) continue;
        most = height(face, points[0]);
        first = hulls.vertex_faces[i] - geom.face;
      }
      if (first >= 0) consider(first);
    }
    visit_high_items(hulls, geom.face_tree, geom.faces, m, reach - 1e-9 * shape.size, [&](int f) {
      if (f != first) consider(f);
      return true;
    });
  }
  REVOLUTE_HD static int face_corners(const ConvexShape& shape, int index, Vector* corner) {
    const HullFace& face = shape.face(index);
    for (int i = 0; i < face.corners; ++i) corner[i] = shape.corner(face, i);
    return face.corners;
  }
  REVOLUTE_HD static void add_face_points(const ReferenceFace& face, const ConvexShape& shape,
                                          double tolerance, RawPoints& out) {
    add_polygon(face, incident_polygon(shape, -face.normal), tolerance, out);
  }

  // The face that turns most towards a direction, among those at its farthest vertex; or the core.
  REVOLUTE_HD static IncidentPolygon incident_polygon(const ConvexShape& shape, const Vector& towards) {
    IncidentPolygon out;
    out.radius = shape.radius;
    const Geom& geom = *shape.geom;
    if (geom.faces == 0) {
      for (int i = 0; i < geom.vertices && i < polygon_corners; ++i)
        out.corner[out.corners++] = shape.vertex(i);
      return out;
    }
    const double reach = dot(towards, support(shape, towards, 1)) - 1e-6 * shape.size;
    const Vector m = transpose_times(shape.R, towards);
    const auto turned = [&](const HullFace& face) { return dot(m, vector3<double>(face.normal)); };
    // the first of the faces that turn the most, up to this difference
    constexpr double as_much = 1e-6;
    double most = -2;
    int best = -1;
    const auto visit_near = [&](const auto& visit) {
      visit_high_faces(shape, towards, reach, [&](int f) {
        const HullFace& face = shape.face(f);
        if (turned(face) >= most - as_much && shape.reaches(face, towards, reach)) visit(f, turned(face));
        return true;
      });
    };
    visit_near([&](int, double cosine) { most = std::fmax(most, cosine); });
    visit_near([&](int f, double) { best = best < 0 || f < best ? f : best; });
    if (best < 0) return out;
    const HullFace& face = shape.face(best);
    out.normal = shape.R * vector3<double>(face.normal);
    for (int i = 0; i < face.corners; ++i) out.corner[out.corners++] = shape.corner(face, i);
    return out;
  }

  template <class Visit>
  REVOLUTE_HD static void visit_directions(const ConvexShape&, const Vector&, const Visit&) {}
};

}  // namespace revolute
