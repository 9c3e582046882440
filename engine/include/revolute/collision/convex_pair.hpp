// Two convex shapes: their contact manifold, in one environment.
//
// The signed distance of two convex sets is the largest separation s(n) over all directions n (convex_shape.hpp). Its maximum
// lies at the normal of a face of either shape, at the cross product of two edges, or at a stationary pair of vertices,
// edges, rims and smooth surfaces. All candidates near the direction from nearest_points.hpp are tried, and the largest
// separation wins. A face wins against others that are not better, because it gives a whole contact area. (1)
#pragma once

#include "revolute/collision/bounding_boxes.hpp"
#include "revolute/collision/face_manifold.hpp"
#include "revolute/collision/nearest_points.hpp"
#include "revolute/collision/ties.hpp"

namespace revolute {

namespace detail {

constexpr double parallel = 5e-3;  // edges at a smaller angle touch along a stretch

struct BestFace {
  double separation = -1e300;  // without the incident radius
  int face = -1;
  Vector normal;  // outward
};

// The face of `shape`, of all or of the likely ones, over which `other` stands the highest. `towards`: roughly from shape to
// other; `bound`: no separation is larger, so the search ends with a face that attains it.
enum class Among { likely, all };
REVOLUTE_HD inline BestFace best_face(Among among, const ConvexShape& shape, const ConvexShape& other,
                                      const Vector& towards, double bound) {
  BestFace best;
  FaceRivals rivals;
  rivals.add(support(other, -towards));
  const double rounding = 1e-12 * (shape.size + other.size);
  const auto consider = [&](int index, const Vector& normal, const Vector& corner) {
    const Vector point = support(other, -normal);
    rivals.add(point);
    if (dot(normal, point - corner) < rivals.least) return;
    const double s = dot(normal, point - support(shape, normal));
    if (s > best.separation || (s == best.separation && index < best.face)) {
      best = {s, index, normal};
      rivals.least = s - rounding;
      rivals.settled = s >= bound - rounding;
    }
  };
  with_shape(shape, [&](const auto& of) {
    if (among == Among::likely)
      of.visit_likely_faces(shape, towards, rivals, consider);
    else
      of.visit_faces(shape, towards, rivals, consider);
  });
  return best;
}

REVOLUTE_HD inline ReferenceFace reference_face(const ConvexShape& shape, const BestFace& best, bool of_a) {
  ReferenceFace out;
  out.of_a = of_a;
  out.normal = best.normal;
  out.origin = support(shape, best.normal);
  with_shape(shape, [&](const auto& of) { out.corners = of.face_corners(shape, best.face, out.corner); });
  return out;
}

// Whether an edge of the shape carries its support in direction m; m is across the edge.
REVOLUTE_HD inline bool carries(const ConvexShape& shape, const HullEdge& edge, const Vector& m) {
  const Vector local = transpose_times(shape.R, m);
  return dot(local, vector3<double>(edge.inward[0])) <= 1e-9 &&
         dot(local, vector3<double>(edge.inward[1])) <= 1e-9;
}

// An edge that may carry the support of its hull.
struct NearEdge {
  int index;
  Vector from, to, along;
};

// Calls visit(edge) for the edges of a hull that may carry its support near direction m.
template <class Visit>
REVOLUTE_HD inline void visit_near_edges(const ConvexShape& shape, const Vector& m, const Visit& visit) {
  const double depth = shape.geom->faces <= HullShape::few_faces ? shape.size : HullShape::band * shape.size;
  const double reach = dot(m, support(shape, m)) - depth;
  visit_high_edges(shape, m, reach, [&](int i) {
    const HullEdge& edge = shape.edge(i);
    NearEdge near = {i, shape.vertex(edge.from), shape.vertex(edge.to), {}};
    if (dot(m, near.from) < reach && dot(m, near.to) < reach) return true;
    near.along = unit(near.to - near.from);
    visit(near);
    return true;
  });
}

// The pair of edges of two hulls with the largest separation, near direction n. Edges of b are gathered in groups, and each
// group meets all edges of a.
struct BestEdges {
  static constexpr int group = 64;
  const ConvexShape &a, &b;
  const Vector n;
  StationaryPair& best;
  bool found = false;
  NearEdge edges_b[group];
  int count = 0;

  REVOLUTE_HD BestEdges(const ConvexShape& a, const ConvexShape& b, const Vector& n, StationaryPair& best)
      : a(a), b(b), n(n), best(best) {}

  REVOLUTE_HD void add(const NearEdge& edge_b) {
    edges_b[count++] = edge_b;
    if (count == group) meet();
  }
  REVOLUTE_HD void meet() {
    if (count == 0) return;
    visit_near_edges(a, n, [&](const NearEdge& edge_a) {
      for (int j = 0; j < count; ++j) consider(edge_a, edges_b[j]);
    });
    count = 0;
  }
  REVOLUTE_HD void consider(const NearEdge& edge_a, const NearEdge& edge_b) {
    const Vector across = cross(edge_a.along, edge_b.along);
    const double squared = dot(across, across), facing_n = dot(across, n);
    if (squared < 1e-6 || facing_n * facing_n < HullShape::facing * HullShape::facing * squared) return;
    const Vector normal = ((facing_n < 0 ? -1 : 1) / std::sqrt(squared)) * across;
    const double s = dot(normal, edge_b.from - edge_a.from);
    if (found && s <= best.distance) return;
    if (!carries(a, a.edge(edge_a.index), normal) || !carries(b, b.edge(edge_b.index), -normal)) return;
    found = true;
    best = {edge_element(edge_a.from, edge_a.to, a.radius), edge_element(edge_b.from, edge_b.to, b.radius),
            normal, s};
  }
};
REVOLUTE_HD inline bool best_edges(const ConvexShape& a, const ConvexShape& b, const Vector& n,
                                   StationaryPair& best) {
  BestEdges search(a, b, n, best);
  visit_near_edges(b, -n, [&](const NearEdge& edge) { search.add(edge); });
  search.meet();
  return search.found;
}

// Two edges that are parallel and beside each other, near direction n.
REVOLUTE_HD inline bool parallel_edges(const ConvexShape& a, const ConvexShape& b, const Vector& n,
                                       StationaryPair& pair) {
  constexpr double tolerance = 2e-2;
  pair = {support_element(a, n, tolerance), support_element(b, -n, tolerance), n, 0};
  if (pair.a.feature != Feature::edge || pair.b.feature != Feature::edge) return false;
  const Vector &u = pair.a.tangent[0], across = cross(u, pair.b.tangent[0]),
               between = pair.b.point - pair.a.point;
  if (dot(across, across) > parallel * parallel) return false;
  if (std::fabs(dot(u, between)) > 0.99 * (pair.a.half + pair.b.half)) return false;
  pair.normal = unit(n - dot(n, u) * u);
  pair.distance = dot(pair.normal, between);
  return true;
}

// Adds the two ends of the stretch along which the edges touch: each is the end of one edge against the other edge.
REVOLUTE_HD inline void add_parallel_edges(const StationaryPair& pair, double size, ContactManifold& out) {
  const SurfaceElement &a = pair.a, &b = pair.b;
  const Vector u_a = a.tangent[0], u_b = dot(u_a, b.tangent[0]) < 0 ? -b.tangent[0] : b.tangent[0];
  const double middle = dot(u_a, b.point - a.point);
  for (double end : {-1.0, 1.0}) {
    const double end_a = end * a.half, end_b = middle + end * b.half;
    StationaryPair point = pair;
    if (end * (end_a - end_b) <= 1e-3 * size) {  // the end of the shorter one; a's where both end together
      point.a = vertex_element(a.point + end_a * u_a, a.radius);
      point.b.point = b.point + dot(u_b, point.a.point - b.point) * u_b;
    } else {
      point.b = vertex_element(b.point + (end * b.half) * u_b, b.radius);
      point.a.point = a.point + dot(u_a, point.b.point - a.point) * u_a;
    }
    const Vector between = point.b.point - point.a.point;
    const double side = dot(between, pair.normal) < 0 ? -1 : 1;
    if (dot(between, between) > 1e-8 * size * size) point.normal = side * unit(between);
    point.distance = dot(point.normal, between);
    add_stationary(point, out);
  }
}

REVOLUTE_HD inline double core_separation(const ConvexShape& a, const ConvexShape& b,
                                          const StationaryPair& pair) {
  return pair.distance - (pair.a.radius - a.radius) - (pair.b.radius - b.radius);
}
REVOLUTE_HD inline bool same_element(const SurfaceElement& one, const SurfaceElement& other) {
  if (one.feature != other.feature) return false;
  const Vector gap = one.point - other.point;
  return one.feature == Feature::smooth || one.feature == Feature::rim || dot(gap, gap) == 0;
}

// Finds the stationary pair near direction n with the largest separation, trying coarser and coarser features, until one
// attains `bound`. A pair that is less apart than the shapes in direction n itself does not count.
REVOLUTE_HD inline bool best_stationary(const ConvexShape& a, const ConvexShape& b, const Vector& n,
                                        double bound, StationaryPair& best) {
  const double size = a.size + b.size;
  double most = separation(a, b, n) - 1e-9 * size;
  bool found = false;
  StationaryPair tried = {};
  tried.a.feature = tried.b.feature = Feature::face;
  for (double tolerance : {1e-7, 1e-5, 1e-3, 1e-2, 5e-2, 2e-1}) {
    StationaryPair pair = {support_element(a, n, tolerance), support_element(b, -n, tolerance), n, 0};
    // a face of a hull remains a face at any larger tolerance
    if ((pair.a.feature == Feature::face && a.is_hull()) || (pair.b.feature == Feature::face && b.is_hull()))
      break;
    if (pair.a.feature == Feature::face || pair.b.feature == Feature::face) continue;
    if (same_element(pair.a, tried.a) && same_element(pair.b, tried.b)) continue;
    tried = pair;
    if (!find_stationary(a, b, pair)) continue;
    // both must be supports of the shapes' cores in that direction
    const double apart = core_separation(a, b, pair);
    if (apart <= most || std::fabs(separation(a, b, pair.normal) - apart) > 1e-8 * size) continue;
    most = apart;
    best = pair;
    found = true;
    if (apart >= bound - 1e-12 * size) break;
  }
  return found;
}

// A last resort: the support points in direction n as they are.
REVOLUTE_HD inline StationaryPair support_pair(const ConvexShape& a, const ConvexShape& b, const Vector& n) {
  StationaryPair pair = {vertex_element(support(a, n), a.radius), vertex_element(support(b, -n), b.radius), n,
                         0};
  pair.distance = separation(a, b, n);
  return pair;
}

}  // namespace detail

// `limit`: pairs farther apart than this are left out.
REVOLUTE_HD inline void convex_pair(const ConvexShape& a, const ConvexShape& b, double limit,
                                    ContactManifold& out) {
  using namespace detail;
  if (boxes_apart(a, b, limit)) return;
  const double size = a.size + b.size, radii = a.radius + b.radius;
  const NearestPoints nearest = nearest_points(a, b, 1, limit + radii);
  if (nearest.distance - radii > limit) return;
  // a direction that is known well: touching hulls get it from their overlap, round shapes from cores drawn together
  const bool hulls = a.is_hull() && b.is_hull();
  const bool apart = nearest.distance > same_reach * size;
  Vector n = nearest.normal;
  if (hulls && !apart) {
    n = overlap_normal(a, b, nearest.simplex);
  } else if (!hulls && nearest.distance < 1e-3 * size) {
    const NearestPoints drawn = nearest_points(a, b, 0.9, 1e300);
    n = drawn.distance > 1e-3 * size ? drawn.normal : overlap_normal(a, b);
  }
  // (1), with the ties of ties.hpp; no separation exceeds the distance, which for overlapping hulls is the separation along n
  const double bound = apart ? nearest.distance : hulls ? separation(a, b, n) : 1e300;
  const auto attains = [&](double s) { return s >= bound - same_reach * size; };
  BestFace face;
  bool a_first = true;
  const auto search_faces = [&](Among among) {
    const BestFace face_a = best_face(among, a, b, n, bound);
    const BestFace face_b = attains(face_a.separation) ? BestFace() : best_face(among, b, a, -n, bound);
    a_first = face_a.separation >= face_b.separation - same_reach * size;
    face = a_first ? face_a : face_b;
  };
  StationaryPair pair, other;
  double most = -1e300;
  const auto take = [&](const StationaryPair& found) {
    const double s = core_separation(a, b, found);
    if (s > most) pair = found, most = s;
  };
  // round shapes that overlap deeply may be the least apart in a direction far from n
  const auto search_around = [&] {
    const auto search_from = [&](const Vector& m) {
      if (best_stationary(a, b, m, bound, other)) take(other);
    };
    search_from(overlap_normal(a, b));
    if (face.face >= 0) search_from(a_first ? face.normal : -face.normal);
    for (const ConvexShape* shape : {&a, &b})
      with_shape(*shape, [&](const auto& of) { of.visit_directions(*shape, n, search_from); });
  };
  bool stretch = false;
  const auto search_stationary = [&] {
    const Vector& start = apart ? nearest.normal : n;
    stretch = parallel_edges(a, b, start, other);
    if (stretch || best_stationary(a, b, start, bound, other)) take(other);
  };
  // if neither a likely face nor a stationary pair is as far away as the nearest points: all faces, then edges of hulls
  if (bound < 1e299) search_faces(Among::likely);
  if (!attains(face.separation)) search_stationary();
  if (!attains(std::fmax(face.separation, most))) {
    search_faces(Among::all);
    if (hulls && !stretch && !attains(face.separation) && best_edges(a, b, n, other) &&
        find_stationary(a, b, other))
      take(other);
    if (!apart && !hulls && !stretch && std::fmax(face.separation, most) < -1e-3 * size) search_around();
  }
  if (face.face >= 0 && face.separation >= most - same_reach * size) {
    const ConvexShape &reference = a_first ? a : b, &incident = a_first ? b : a;
    const double tolerance = 1e-3 * std::fmin(a.size, b.size);
    const ReferenceFace plane = reference_face(reference, face, a_first);
    face_manifold(plane, incident, tolerance, limit, out);
    if (out.count > 0) return;
    // the face's plane is as far away as the nearest point, which lies just beyond the face's sides
    if (most < -1e299) search_stationary();
    if (most < -1e299 && !apart) {  // the lowest point lies beyond the sides
      if (!incident.is_hull()) return lowest_over_plane(plane, incident, tolerance, out);
      return add_face_contact(plane, at_vertex(support(incident, -plane.normal), incident.radius), out);
    }
  }
  if (most < -1e299) pair = support_pair(a, b, n);
  if (stretch)
    add_parallel_edges(pair, size, out);
  else
    add_stationary(pair, out);
}

}  // namespace revolute
