// A capsule a and a box b: spheres of the capsule's radius at one or two places t of its segment, each against the box.
//
// In the box's frame, with o the capsule's centre, H its half axis (length included), s the box's half sizes:
//   The first place is the nearest to the box's surface: an end over a face, or the point nearest to an edge. For the edge
//   along axis j through a corner, with e from o to the edge's middle,
//     aa = s_j^2,  ab = -s_j H_j,  bb = H.H,  u = -s_j e_j,  v = H.e,  det = aa bb - ab^2
//     x = (bb u - ab v)/det along the edge,  t = (aa v - ab u)/det,  cut to [-1, 1] as in capsule_capsule.hpp  (1)
//   The second lies as far from the first as the segment stays over the box, on the face that is more parallel to it:
//     an end, t = +-1;  where it meets a face's border, t = (+-s_i - o_i)/H_i;
//     t1 +- 2 s_i/|H_i|;  or t1 +- s_i (1 +- x)/|H_i| from the middle of an edge              (2)
// choose_places() selects among these in double; capsule_box_places() evaluates the choice in Real and is differentiated.
#pragma once

#include <cmath>

#include "revolute/collision/mujoco/frame.hpp"
#include "revolute/collision/segment.hpp"
#include "revolute/collision/sphere_box.hpp"
#include "revolute/collision/ties.hpp"
#include "revolute/scalar/dual.hpp"

namespace revolute::mujoco {

enum class FirstPlace : int { end, edge_inside, edge_corner };
enum class SecondPlace : int { none, end, border, face_width, edge_rest };

struct CapsuleBoxChoice {
  FirstPlace first;
  double end;        // of the capsule: t where `first` is an end, and where edge_inside was cut
  bool cut;          // edge_inside: t was cut to `end`
  int corner, axis;  // the edge: a corner of the box (bit i: s_i positive), and j
  double x;          // edge_corner: +-1 along the edge
  SecondPlace second;
  int width_axis;    // i of (2)
  double sign;       // of the second place's step, or t, or the border's side
  double rest_sign;  // edge_rest: of x
};

namespace detail {

REVOLUTE_HD inline double component(const Vector3<double>& a, int i) {
  return i == 0 ? a.x : i == 1 ? a.y : a.z;
}

// (1) in double, with the cuts: side 0 or 2 is the lower or upper end, 1 is inside.
struct EdgePlace {
  double x, t, squared;
  int x_side, t_side;
};
REVOLUTE_HD inline bool place_on_edge(const double* o, const double* H, double bb, const double* s,
                                      int corner, int j, EdgePlace& out) {
  double e[3], aa = s[j] * s[j], ab = -s[j] * H[j], v = 0;
  for (int k = 0; k < 3; ++k) {
    e[k] = (k == j ? 0 : corner >> k & 1 ? s[k] : -s[k]) - o[k];
    v += H[k] * e[k];
  }
  const double u = -s[j] * e[j], det = aa * bb - ab * ab;
  if (std::fabs(det) < shortest) return false;
  out.x = (bb * u - ab * v) / det;
  out.t = (aa * v - ab * u) / det;
  out.x_side = out.t_side = 1;
  const auto cut = [](double& value, int& side) {
    if (value > 1) value = 1, side = 2;
    if (value < -1) value = -1, side = 0;
  };
  cut(out.x, out.x_side);
  if (out.x_side != 1) out.t = (v - out.x * ab) / bb;
  cut(out.t, out.t_side);
  if (out.t_side != 1) {
    out.x = (u - out.t * ab) / aa;
    cut(out.x, out.x_side);
  }
  out.squared = 0;
  for (int k = 0; k < 3; ++k) {
    const double d = e[k] - out.t * H[k] + (k == j ? s[j] * out.x : 0);
    out.squared += d * d;
  }
  return true;
}

// The first place; returns the face below an end, or -1, and the place on the edge.
struct FirstSearch {
  bool over_face = false, found = false;
  int face = -1;
  EdgePlace edge{};
};
REVOLUTE_HD inline FirstSearch search_first(const double* o, const double* H, double bb, const double* s,
                                            double farthest, CapsuleBoxChoice& out) {
  FirstSearch search;
  double best = farthest;
  for (double end : {-1.0, 1.0}) {
    int beyond = 0, face = -1;
    double squared = 0;
    for (int k = 0; k < 3; ++k) {
      const double c = o[k] + end * H[k], over = std::fabs(c) - s[k];
      if (over > 0) {
        ++beyond;
        face = k;
        squared += over * over;
      }
    }
    if (beyond > 1 || squared >= best) continue;
    best = squared;
    search.over_face = search.found = true;
    search.face = face;
    out.first = FirstPlace::end;
    out.end = end;
  }
  for (int j = 0; j < 3; ++j)
    for (int corner = 0; corner < 8; ++corner) {
      EdgePlace place;
      if (corner >> j & 1 || !place_on_edge(o, H, bb, s, corner, j, place)) continue;
      if (!(place.squared < best - shortest)) continue;
      best = place.squared;
      search.over_face = false;
      search.found = true;
      search.edge = place;
      out.first = place.x_side == 1 ? FirstPlace::edge_inside : FirstPlace::edge_corner;
      out.corner = corner;
      out.axis = j;
      out.x = place.x;
      out.end = place.t;
      out.cut = place.t_side != 1;
    }
  return search;
}

// The second places (2), by the kind of the first place.
REVOLUTE_HD inline void second_from_face(const double* o, const double* H, const double* s, int face,
                                         CapsuleBoxChoice& out) {
  if (face < 0) return;  // inside of the box
  const double towards = -out.end;
  double step = 2;
  out.second = SecondPlace::end;
  out.sign = towards;
  for (int i = 0; i < 3; ++i) {
    if (i == face) continue;
    for (double side : {1.0, -1.0}) {
      const double e = (side * s[i] - (o[i] - towards * H[i])) / H[i] * towards;
      // an end on the border (ties.hpp) is the border: so it is after a small displacement of one end or the other
      if (!(e > 0 && e < (1 + on_border) * step)) continue;
      step = e;
      out.second = SecondPlace::border;
      out.width_axis = i;
      out.sign = side;
    }
  }
}
REVOLUTE_HD inline void second_from_corner(const double* H, const double* s, double half, int directions,
                                           const FirstSearch& search, CapsuleBoxChoice& out) {
  const int upper = search.edge.x_side == 2 ? 1 << out.axis : 0;
  int relative = directions ^ (out.corner + upper);
  if (relative == 0 || relative == 7) return;  // the segment points to the corner
  double mul = 1;
  if (relative == 3 || relative == 5 || relative == 6) {
    mul = -1;
    relative = 7 - relative;
  }
  const int ax = relative == 1 ? 0 : relative == 2 ? 1 : 2, ax1 = (ax + 1) % 3, ax2 = (ax + 2) % 3;
  const double t = search.edge.t;
  const auto shorten = [&](double& step, int i) {
    const double e = 2 * s[i] / std::fabs(H[i]);
    if (!(e < step)) return;
    step = e;
    out.second = SecondPlace::face_width;
    out.width_axis = i;
  };
  out.second = SecondPlace::end;
  if (H[ax] * H[ax] > 0.5 * half * half) {  // along the box's edge
    double step = 1 - mul * t;
    out.sign = mul;
    shorten(step, ax);
  } else {  // along a face
    double step = 1 + mul * t;
    out.sign = -mul;
    shorten(step, ax1);
    shorten(step, ax2);
  }
}
REVOLUTE_HD inline void second_from_edge(const double* H, const double* s, int directions,
                                         const FirstSearch& search, CapsuleBoxChoice& out) {
  const int ax = out.axis, relative = (directions ^ out.corner) & (7 - (1 << ax));
  if (relative != 1 && relative != 2 && relative != 4) return;  // across the edge
  int ax1 = (ax + 1) % 3, ax2 = (ax + 2) % 3;
  if (std::fabs(H[ax1]) > std::fabs(H[ax2])) ax1 = ax2;
  ax2 = 3 - ax - ax1;
  const bool forward = relative >> ax2 & 1;
  const double mul = forward ? 1 : -1;
  out.second = SecondPlace::end;
  out.sign = mul;
  double step = 1 - mul * search.edge.t, e = 2 * s[ax2] / std::fabs(H[ax2]);
  if (e < step) {
    step = e;
    out.second = SecondPlace::face_width;
    out.width_axis = ax2;
  }
  out.rest_sign = bool(directions >> ax & 1) == forward ? -1 : 1;
  e = s[ax] * (1 + out.rest_sign * search.edge.x) / std::fabs(H[ax]);
  if (e < step) {
    out.second = SecondPlace::edge_rest;
    out.width_axis = ax;
  }
}

}  // namespace detail

// o, H: the capsule's centre and half axis in the box's frame.
REVOLUTE_HD inline CapsuleBoxChoice choose_places(const Vector3<double>& centre,
                                                  const Vector3<double>& half_axis, double half,
                                                  const Vector3<double>& size, double farthest) {
  const double o[3] = {centre.x, centre.y, centre.z}, H[3] = {half_axis.x, half_axis.y, half_axis.z},
               s[3] = {size.x, size.y, size.z};
  CapsuleBoxChoice out{};
  const detail::FirstSearch search = detail::search_first(o, H, half * half, s, farthest, out);
  if (!search.found) return out;
  int directions = 0;
  for (int i = 0; i < 3; ++i)
    if (H[i] > 0) directions += 1 << i;
  if (search.over_face)
    detail::second_from_face(o, H, s, search.face, out);
  else if (out.first == FirstPlace::edge_corner)
    detail::second_from_corner(H, s, half, directions, search, out);
  else
    detail::second_from_edge(H, s, directions, search, out);
  return out;
}

// (1) and (2) of a choice, in one environment with or without derivatives.
template <class T>
struct CapsuleBoxPlaces {
  T first, second;
};
template <class T>
REVOLUTE_HD inline CapsuleBoxPlaces<T> evaluate_places(const CapsuleBoxChoice& choice, const Vector3<T>& o,
                                                       const Vector3<T>& H, double half,
                                                       const Vector3<double>& size) {
  const auto part = [](const Vector3<T>& a, int i) { return i == 0 ? a.x : i == 1 ? a.y : a.z; };
  const auto length = [&](int i) { return T(detail::component(size, i)); };
  const auto magnitude = [](const T& a) { return abs(a); };
  CapsuleBoxPlaces<T> out = {T(choice.end), T(0)};
  T x(choice.x);
  if (choice.first != FirstPlace::end) {
    const int j = choice.axis, corner = choice.corner;
    const T s = length(j), aa = s * s, ab = -(s * part(H, j)), bb(half * half);
    const auto on_edge = [&](int k) { return k == j ? T(0) : corner >> k & 1 ? length(k) : -length(k); };
    const Vector3<T> e = Vector3<T>{on_edge(0), on_edge(1), on_edge(2)} - o;
    const T u = -(s * part(e, j)), v = dot(H, e);
    if (choice.first == FirstPlace::edge_corner) {
      if (!choice.cut) out.first = (v - x * ab) / bb;
    } else if (choice.cut) {
      x = (u - out.first * ab) / aa;
    } else {
      const T det = aa * bb - ab * ab;
      x = (bb * u - ab * v) / det;
      out.first = (aa * v - ab * u) / det;
    }
  }
  const int i = choice.width_axis;
  switch (choice.second) {
    case SecondPlace::end:
      out.second = T(choice.sign);
      break;
    case SecondPlace::border:
      out.second = (T(choice.sign) * length(i) - part(o, i)) / part(H, i);
      break;
    case SecondPlace::face_width:
      out.second = out.first + T(2 * choice.sign) * length(i) / magnitude(part(H, i));
      break;
    case SecondPlace::edge_rest:
      out.second =
          out.first + T(choice.sign) * length(i) * (T(1) + T(choice.rest_sign) * x) / magnitude(part(H, i));
      break;
    default:
      break;
  }
  return out;
}

// The places of a segment's spheres, by environment; `two`: whether there is a second.
template <class Real>
struct CapsuleBox {
  Vector3<Real> o, H;  // in the box's frame
  CapsuleBoxChoice choice[Width<Real>::value];
  Real t[2];
  MaskOf<Real> found, two;
};
template <class Real>
REVOLUTE_HD CapsuleBox<Real> capsule_box_places(const Segment<Real>& A, double radius, double half,
                                                const Box<Real>& b, const Vector3<double>& size,
                                                double margin) {
  CapsuleBox<Real> out;
  out.o = transpose_times(b.R, A.centre - b.centre);
  out.H = A.half * transpose_times(b.R, A.axis);
  const double far = margin + 2 * (radius + half + size.x + size.y + size.z);
  Real second(0);
  out.t[0] = out.t[1] = Real(0);
  for (int lane = 0; lane < Width<Real>::value; ++lane) {
    const CapsuleBoxChoice& choice = out.choice[lane] =
        choose_places(get_lane(out.o, lane), get_lane(out.H, lane), half, size, far);
    if (choice.second != SecondPlace::none) set_lane(second, lane, 1.0);
    if constexpr (HasTangents<Real>::value) {
      const CapsuleBoxPlaces<Real> at = evaluate_places(choice, out.o, out.H, half, size);
      out.t[0] = at.first;
      out.t[1] = at.second;
    } else {
      const CapsuleBoxPlaces<double> at =
          evaluate_places(choice, get_lane(out.o, lane), get_lane(out.H, lane), half, size);
      set_lane(out.t[0], lane, at.first);
      set_lane(out.t[1], lane, at.second);
    }
  }
  out.two = less(Real(0), second);
  return out;
}

template <class Real>
REVOLUTE_HD inline ContactPoint<Real> capsule_box(const CapsuleBox<Real>& places, const Segment<Real>& A,
                                                  Real radius, const Box<Real>& b, int slot) {
  return sphere_box(point_on(A, places.t[slot] * A.half), radius, b);
}

// The change of place `slot` of one environment with o and H.
REVOLUTE_HD inline void place_gradient(const CapsuleBoxChoice& choice, const Vector3<double>& o,
                                       const Vector3<double>& H, double half, const Vector3<double>& size,
                                       int slot, Vector3<double>& by_o, Vector3<double>& by_H) {
  const auto seeded = [](double value, int i) {
    Dual<6> out(value);
    out.tangent[i] = 1;
    return out;
  };
  const CapsuleBoxPlaces<Dual<6>> at =
      evaluate_places<Dual<6>>(choice, {seeded(o.x, 0), seeded(o.y, 1), seeded(o.z, 2)},
                               {seeded(H.x, 3), seeded(H.y, 4), seeded(H.z, 5)}, half, size);
  const double* d = (slot == 0 ? at.first : at.second).tangent;
  by_o = {d[0], d[1], d[2]};
  by_H = {d[3], d[4], d[5]};
}

template <class Real, class Bar>
REVOLUTE_HD PairMoments<Bar> capsule_box_adjoint(const Segment<Real>& A, double radius, double half,
                                                 const Box<Real>& b, const Vector3<double>& size,
                                                 double margin, int slot, const ContactPoint<Real>& at,
                                                 const ContactPoint<Bar>& bar) {
  const CapsuleBox<Real> places = capsule_box_places(A, radius, half, b, size, margin);
  const Vector3<Real> centre = point_on(A, places.t[slot] * A.half);
  PairMoments<Bar> out = sphere_box_adjoint(centre, Real(radius), b, at, bar);
  // the sphere slides along the segment: t = t(R'(o_a - o_b), R'H)
  Vector3<Real> by_o = zero3<Real>(), by_H = zero3<Real>();
  for (int lane = 0; lane < Width<Real>::value; ++lane) {
    Vector3<double> o_lane, H_lane;
    place_gradient(places.choice[lane], get_lane(places.o, lane), get_lane(places.H, lane), half, size, slot,
                   o_lane, H_lane);
    set_lane(by_o, lane, o_lane);
    set_lane(by_H, lane, H_lane);
  }
  const Bar t_bar = A.half * dot(A.axis, out.a.f);
  Force<Bar> slides = force_at(A.centre, t_bar * (b.R * by_o));
  slides.n += cross(A.half * A.axis, t_bar * (b.R * by_H));
  out.a += slides;
  out.b -= slides;
  return out;
}

}  // namespace revolute::mujoco
