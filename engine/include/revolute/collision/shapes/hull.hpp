// Shapes with flat faces, and those with a radius about such a core: a sphere is a vertex, a capsule an edge, a box and a mesh
// are polyhedra. Their vertices, edges and faces lie in the model (Geom), in their link's frame.
#pragma once

#include "revolute/collision/face_points.hpp"
#include "revolute/collision/surface_element.hpp"
#include "revolute/collision/ties.hpp"

namespace revolute {

struct HullShape {
  static constexpr double facing = 0.2;     // faces that turn farther away from a direction do not face it
  static constexpr double aligned = 0.999;  // faces that turn less away from it are likely to be the nearest
  static constexpr double band =
      0.02;  // edges and faces that lie deeper than this part of the shape's size are not tried;
  static constexpr int few_faces = 12;  // a hull with at most so many faces tries all of them

  REVOLUTE_HD static Vector support(const ConvexShape& shape, const Vector& m, double scale) {
    const Vector v = shape.vertex(support_vertex(shape, m));
    return scale == 1 ? v : shape.centre + scale * (v - shape.centre);
  }

  // A vertex, an edge, or a face where three vertices are equally high.
  REVOLUTE_HD static SurfaceElement element(const ConvexShape& shape, const Vector& m, double tolerance) {
    // in the link's frame
    const Geom& geom = *shape.geom;
    const Vector towards = transpose_times(shape.R, m);
    const int farthest = farthest_vertex(*shape.hulls, geom, towards);
    const double height = dot(towards, shape.local_vertex(farthest)) - tolerance * shape.size;
    int touching[3], count = 0;
    visit_high_items(*shape.hulls, geom.vertex_tree, geom.vertices, towards, height - 1e-9 * shape.size,
                     [&](int i) {
                       if (dot(towards, shape.local_vertex(i)) >= height) touching[count++] = i;
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

  // Data, in the link's frame, that decide whether a face is worth a visit.
  struct FaceSearch {
    const ConvexShape& shape;
    const FaceRivals& rivals;
    const Vector m;
    const int farthest;
    const double reach;
    Vector points[FaceRivals::most];  // of rivals
    int known = 0;

    REVOLUTE_HD FaceSearch(const ConvexShape& shape, const Vector& towards, const FaceRivals& rivals)
        : shape(shape),
          rivals(rivals),
          m(transpose_times(shape.R, towards)),
          farthest(farthest_vertex(*shape.hulls, *shape.geom, m)),
          reach(dot(m, shape.local_vertex(farthest)) - band * shape.size) {
      learn();
    }
    REVOLUTE_HD bool tries_all() const { return shape.geom->faces <= few_faces; }
    REVOLUTE_HD void learn() {
      for (; known < rivals.count; ++known) {
        const int i = known % FaceRivals::most;
        points[i] = transpose_times(shape.R, rivals.points[i] - shape.p);
      }
    }
    REVOLUTE_HD static double height(const HullFace& face, const Vector& x) {
      return dot(vector3<double>(face.normal), x) - face.offset;
    }
    REVOLUTE_HD bool may_win(const HullFace& face, double cosine) const {
      if (dot(vector3<double>(face.normal), m) < cosine) return false;
      for (int i = 0; i < rivals.size(); ++i)
        if (height(face, points[i]) < rivals.least) return false;
      return tries_all() || shape.reaches(face, m, reach);
    }
    // The face around the farthest vertex over which the rivals' first point is the highest, or -1.
    REVOLUTE_HD int likely_face() const {
      const HullArrays& hulls = *shape.hulls;
      const int* range = hulls.vertex_faces_begin + shape.geom->vertex + farthest;
      int likely = -1;
      double most = -1e300;
      for (int i = range[0]; i < range[1]; ++i) {
        const HullFace& face = hulls.faces[hulls.vertex_faces[i]];
        if (!(height(face, points[0]) > most) || !may_win(face, facing)) continue;
        most = height(face, points[0]);
        likely = hulls.vertex_faces[i] - shape.geom->face;
      }
      return likely;
    }
    template <class Visit>
    REVOLUTE_HD void consider(int f, double cosine, const Visit& visit) {
      const HullFace& face = shape.face(f);
      if (!may_win(face, cosine)) return;
      visit(f, shape.R * vector3<double>(face.normal), shape.corner(face, 0));
      learn();
    }
    // Visits all faces whose cosine with the direction is at least `cosine`, until the rivals are settled.
    template <class Visit>
    REVOLUTE_HD void consider_all(double cosine, const Visit& visit) {
      const Geom& geom = *shape.geom;
      visit_high_items(*shape.hulls, geom.face_tree, geom.faces, m, reach - 1e-9 * shape.size, [&](int f) {
        consider(f, cosine, visit);
        return !rivals.settled;
      });
    }
  };

  template <class Visit>
  REVOLUTE_HD static void visit_likely_faces(const ConvexShape& shape, const Vector& towards,
                                             const FaceRivals& rivals, const Visit& visit) {
    if (shape.geom->faces == 0) return;
    FaceSearch search(shape, towards, rivals);
    if (search.tries_all()) return search.consider_all(facing, visit);
    const int likely = search.likely_face();
    if (likely >= 0) search.consider(likely, facing, visit);
    if (!rivals.settled) search.consider_all(aligned, visit);
  }
  template <class Visit>
  REVOLUTE_HD static void visit_faces(const ConvexShape& shape, const Vector& towards,
                                      const FaceRivals& rivals, const Visit& visit) {
    if (shape.geom->faces == 0) return;
    FaceSearch(shape, towards, rivals).consider_all(facing, visit);
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
    // in the link's frame
    const Vector m = transpose_times(shape.R, towards);
    const double reach =
        dot(m, shape.local_vertex(farthest_vertex(*shape.hulls, geom, m))) - 1e-6 * shape.size;
    // the first of the faces that turn the most (ties.hpp)
    constexpr int most_kept = 16;
    int kept[most_kept], count = 0, best = -1;
    double cosine[most_kept], most = -2;
    visit_high_items(*shape.hulls, geom.face_tree, geom.faces, m, reach - 1e-9 * shape.size, [&](int f) {
      const HullFace& face = shape.face(f);
      const double turned = dot(m, vector3<double>(face.normal));
      if (turned < most - same_turn || !shape.reaches(face, m, reach)) return true;
      most = std::fmax(most, turned);
      int place = 0;  // without those that turn too little by now
      for (int i = 0; i < count; ++i)
        if (cosine[i] >= most - same_turn) kept[place] = kept[i], cosine[place++] = cosine[i];
      count = place;
      if (count < most_kept) kept[count] = f, cosine[count++] = turned;
      return true;
    });
    for (int i = 0; i < count; ++i) best = best < 0 || kept[i] < best ? kept[i] : best;
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
