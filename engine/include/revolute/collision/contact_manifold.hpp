// The points of one contact area, in one environment, and how each depends on the two shapes.
//
// The order of the points follows their features (vertices, then cuts, then corners), so that it does not change under small
// displacements. When there are more points than slots, the deepest point is kept, and the points that lie farthest out in
// fixed directions of the contact plane.
#pragma once

#include "revolute/collision/face_points.hpp"
#include "revolute/collision/stationary_pair.hpp"
#include "revolute/collision/ties.hpp"

namespace revolute {

enum class TouchKind : int { none, face_of_a, face_of_b, stationary };

struct Touch {
  TouchKind kind;
  ContactPoint<double> at;
  FaceContact face;
  StationaryPair pair;
};

struct ContactManifold {
  int count = 0;
  Touch points[manifold_points];
};

// Cotangents by displacements of both shapes, as moments about the origin of the coordinates in which `touch`
// is given.
REVOLUTE_HD inline PairMoments<double> touch_adjoint(const Touch& touch, const ContactPoint<double>& bar) {
  switch (touch.kind) {
    case TouchKind::face_of_a: {
      const Force<double> b = face_contact_adjoint(touch.face, touch.at.normal, bar);
      return {answer_moment(touch.at, bar) + (-b), b};
    }
    case TouchKind::face_of_b:
      return with_other_side_b(face_contact_adjoint(touch.face, -touch.at.normal, bar), touch.at, bar);
    case TouchKind::stationary:
      return with_other_side_b(stationary_adjoint(touch.pair, touch.at, bar), touch.at, bar);
    default:
      return {zero_force<double>(), zero_force<double>()};
  }
}

REVOLUTE_HD inline void add_stationary(const StationaryPair& pair, ContactManifold& out) {
  if (out.count == manifold_points) return;
  Touch& touch = out.points[out.count++];
  touch.kind = TouchKind::stationary;
  touch.pair = pair;
  touch.at = answer(pair);
}

REVOLUTE_HD inline void add_face_contact(const ReferenceFace& face, const FaceContact& contact,
                                         ContactManifold& out) {
  if (out.count == manifold_points) return;
  Touch& touch = out.points[out.count++];
  touch.kind = face.of_a ? TouchKind::face_of_a : TouchKind::face_of_b;
  touch.face = contact;
  const double gap = face.height(contact.point) - contact.radius;
  touch.at = {gap, contact.point - (contact.radius + 0.5 * gap) * face.normal,
              face.of_a ? face.normal : -face.normal};
}

// Marks which of `count` points to keep: the deepest, and the farthest in each of several directions. at(i): the point;
// height(i): its height. Points above `band` are not considered. Of points that tie on a shape of this `size` (ties.hpp)
// the first is kept.
template <class At, class Height>
REVOLUTE_HD inline int keep_spread(int count, double band, double size, const Vector& e1, const Vector& e2,
                                   const At& at, const Height& height, int* kept) {
  constexpr double turn = 0.2, step = 6.283185307179586 / (manifold_points - 1);
  const double tie = same_reach * size;
  int number = 0;
  const auto keep = [&](int i) {
    for (int k = 0; k < number; ++k)
      if (kept[k] == i) return;
    int k = number++;
    for (; k > 0 && kept[k - 1] > i; --k) kept[k] = kept[k - 1];
    kept[k] = i;
  };
  int deepest = -1;
  for (int i = 0; i < count; ++i)
    if (height(i) <= band && (deepest < 0 || height(i) < height(deepest) - 100 * tie)) deepest = i;
  if (deepest < 0) return 0;
  keep(deepest);
  for (int d = 0; d < manifold_points - 1; ++d) {
    const Vector outward = std::cos(turn + step * d) * e1 + std::sin(turn + step * d) * e2;
    int farthest = -1;
    double reach = 0;
    for (int i = 0; i < count; ++i) {
      if (height(i) > band) continue;
      const double distance = dot(outward, at(i));
      if (farthest < 0 || distance > reach + tie) {
        farthest = i;
        reach = distance;
      }
    }
    keep(farthest);
  }
  return number;
}

}  // namespace revolute
