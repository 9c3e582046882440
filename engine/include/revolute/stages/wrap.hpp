// The bend of a path around a circle, sphere or cylinder: MuJoCo's rules, in the frame of the shape.
//
// In the plane of the ends d_0, d_1 and the circle's centre, with radius r, the two ways around touch at
//   w_i = (d_i r^2 +- r sqrt(|d_i|^2 - r^2) d_i_perp) / |d_i|^2                               (1)
// The shorter way is taken, and there is no bend if the straight way is free; but if a side site lies opposite to the sector
// between the ends, the path bends around the other way. A side site within the sphere, or within a sphere of a cylinder's
// radius about its centre, makes the path touch the shape from inside at one point, where
//   asin(A z) + asin(B z) - 2 asin(z) + G = 0,  A = r/|d_0|,  B = r/|d_1|,  G the angle between the ends      (2)
// by Newton's method. A sphere's plane holds the ends and its centre; a cylinder's is across its axis, along which the path
// climbs evenly. T is a number of the step, or one with a directional derivative; the choice of the way has no derivative.
// Source: MuJoCo, Computation, section Tendon wrapping; measured with 4.0 (3.17 bends around a side site in more places).
#pragma once

#include "revolute/scalar/directional.hpp"
#include "revolute/spatial/vector3.hpp"

namespace revolute {

// A bend: its two ends, and its length between them. Without a bend the numbers mean nothing.
template <class T>
struct Bend {
  MaskOf<T> bends;
  Vector3<T> first, second;
  T length;
};

namespace detail {

constexpr double least_length = 1e-15;  // MuJoCo's mjMINVAL

template <class T>
struct Vector2 {
  T x, y;
};
template <class T>
REVOLUTE_HD inline T dot2(const Vector2<T>& a, const Vector2<T>& b) {
  return a.x * b.x + a.y * b.y;
}
template <class T>
REVOLUTE_HD inline Vector2<T> operator-(const Vector2<T>& a, const Vector2<T>& b) {
  return {a.x - b.x, a.y - b.y};
}
template <class T>
REVOLUTE_HD inline Vector2<T> operator+(const Vector2<T>& a, const Vector2<T>& b) {
  return {a.x + b.x, a.y + b.y};
}
template <class T>
REVOLUTE_HD inline Vector2<T> operator*(const T& s, const Vector2<T>& a) {
  return {s * a.x, s * a.y};
}
template <class T>
REVOLUTE_HD inline T cross2(const Vector2<T>& a, const Vector2<T>& b) {
  return a.x * b.y - a.y * b.x;
}
template <class T>
REVOLUTE_HD inline Vector2<T> either(MaskOf<T> mask, const Vector2<T>& a, const Vector2<T>& b) {
  return {select(mask, a.x, b.x), select(mask, a.y, b.y)};
}
template <class T>
REVOLUTE_HD inline T safe_length(const T& squared) {
  return sqrt(maximum(squared, T(least_length * least_length)));
}
template <class T>
REVOLUTE_HD inline T arcsine(const T& x) {
  return twice_arctangent(x, T(1) + sqrt(maximum(T(0), T(1) - x * x)));
}

// Whether two segments in a plane meet.
template <class T>
REVOLUTE_HD inline MaskOf<T> segments_meet(const Vector2<T>& p1, const Vector2<T>& p2, const Vector2<T>& p3,
                                           const Vector2<T>& p4) {
  const Vector2<T> u = p2 - p1, v = p4 - p3, w = p1 - p3;
  const T det = v.y * u.x - v.x * u.y, zero(0), one(1);
  const auto parallel = less(abs(det), T(least_length));
  const T inverse = one / select(parallel, one, det);
  const T a = (v.x * w.y - v.y * w.x) * inverse, b = (u.x * w.y - u.y * w.x) * inverse;
  return (!parallel) & less_equal(zero, a) & less_equal(a, one) & less_equal(zero, b) & less_equal(b, one);
}

// A bend within a plane.
template <class T>
struct PlaneBend {
  MaskOf<T> bends;
  Vector2<T> first, second;
  T length;
};

// The length along the circle from a to b; `left` selects the first of the two ways.
template <class T>
REVOLUTE_HD inline T arc(const Vector2<T>& a, const Vector2<T>& b, MaskOf<T> left, const T& radius) {
  const T inverse = T(1) / radius;
  const Vector2<T> u = inverse * a, v = inverse * b;
  const T angle = twice_arctangent(safe_length(dot2(u - v, u - v)), safe_length(dot2(u + v, u + v)));
  const T turn = T(0) - cross2(a, b);
  const auto far = (less(T(0), turn) & !left) | (less(turn, T(0)) & left);
  return radius * select(far, T(6.283185307179586477) - angle, angle);
}

// (1); `side` counts only where `sided` holds.
template <class T>
REVOLUTE_HD PlaneBend<T> bend_outside(const Vector2<T>& d0, const Vector2<T>& d1, const T& radius,
                                      MaskOf<T> sided, const Vector2<T>& side) {
  const T square = radius * radius, one(1), zero(0), s0 = dot2(d0, d0), s1 = dot2(d1, d1);
  const Vector2<T> along = d1 - d0;
  const T dd = dot2(along, along);
  auto bends = less_equal(square, s0) & less_equal(square, s1) & less_equal(T(least_length), dd);
  const T share = clamp(-dot2(along, d0) / select(bends, dd, one), zero, one);
  const Vector2<T> nearest = d0 + share * along;
  // the side site is behind the circle, as seen from the sector between the ends
  const T turn = cross2(d0, d1);
  const auto behind = sided & less(cross2(d0, side) * turn, zero) & less(cross2(side, d1) * turn, zero);
  bends = bends & ((!less(square, dot2(nearest, nearest))) | behind);
  const T root0 = sqrt(select(bends, s0 - square, one)), root1 = sqrt(select(bends, s1 - square, one));
  const T inverse0 = one / select(bends, s0, one), inverse1 = one / select(bends, s1, one);
  const auto clockwise = less(turn, zero), left = (clockwise & !behind) | (behind & !clockwise);
  const T way = select(left, radius, -radius), r0 = way * root0, r1 = way * root1;
  PlaneBend<T> out;
  out.first = inverse0 * Vector2<T>{d0.x * square + r0 * d0.y, d0.y * square - r0 * d0.x};
  out.second = inverse1 * Vector2<T>{d1.x * square - r1 * d1.y, d1.y * square + r1 * d1.x};
  out.bends = bends & !segments_meet(d0, out.first, d1, out.second);
  out.length = arc(out.first, out.second, left, radius);
  return out;
}

// (2)
template <class T>
REVOLUTE_HD PlaneBend<T> bend_inside(const Vector2<T>& d0, const Vector2<T>& d1, const T& radius) {
  constexpr int most_iterations = 20;
  constexpr double start = 1 - 1e-7, tolerance = 1e-6;
  const T one(1), zero(0), s0 = dot2(d0, d0), s1 = dot2(d1, d1), length0 = safe_length(s0),
                           length1 = safe_length(s1), tiny(least_length);
  const Vector2<T> along = d1 - d0;
  const T dd = dot2(along, along);
  auto bends = less(radius, length0) & less(radius, length1);
  // no bend if the straight way meets the circle
  const auto long_enough = less(tiny, dd);
  const T share = -dot2(along, d0) / select(long_enough, dd, one);
  const Vector2<T> nearest = d0 + share * along;
  bends = bends & !(long_enough & less(zero, share) & less(share, one) &
                    less_equal(dot2(nearest, nearest), radius * radius));
  const T cosine = (s0 + s1 - dd) / (T(2) * length0 * length1);
  bends = bends & less_equal(T(-1 + least_length), cosine);
  // if Newton's method fails: half-way
  const Vector2<T> middle = T(0.5) * (d0 + d1);
  const Vector2<T> fallback = (radius / safe_length(dot2(middle, middle))) * middle;
  auto sound = bends & less_equal(cosine, T(1 - least_length));
  const T A = select(sound, radius / length0, T(0.5)), B = select(sound, radius / length1, T(0.5)),
          safe_cosine = select(sound, cosine, zero);
  const T G = twice_arctangent(sqrt(one - safe_cosine), sqrt(one + safe_cosine));
  const auto value = [&](const T& z) { return arcsine(A * z) + arcsine(B * z) - T(2) * arcsine(z) + G; };
  T z(start), f = value(z);
  sound = sound & !less(zero, f);
  for (int i = 0; i < most_iterations; ++i) {
    const auto goes_on = sound & less(T(tolerance), abs(f));
    if (!any(goes_on)) break;
    const auto root = [&](const T& a) { return maximum(tiny, sqrt(maximum(zero, one - z * z * a * a))); };
    const T slope = A / root(A) + B / root(B) - T(2) / root(one);
    const T next = z - f / select(less(slope, -tiny), slope, -one);
    sound = sound & ((!goes_on) | (less_equal(slope, -tiny) & less_equal(next, z)));
    z = select(goes_on, next, z);
    f = select(goes_on, value(z), f);
    sound = sound & !less(T(tolerance), f);
  }
  sound = sound & less_equal(abs(f), T(tolerance));
  const auto from_first = less(zero, cross2(d0, d1));
  const T angle = arcsine(z) - select(from_first, arcsine(A * z), arcsine(B * z));
  const Vector2<T> from = either(from_first, (one / length0) * d0, (one / length1) * d1);
  T s, c;
  sincos(angle, s, c);
  const Vector2<T> touch = {radius * (c * from.x - s * from.y), radius * (s * from.x + c * from.y)};
  PlaneBend<T> out;
  out.bends = bends;
  out.first = out.second = either(sound, touch, fallback);
  out.length = zero;
  return out;
}

// Axes of the plane of p0, p1 and the centre.
template <class T>
REVOLUTE_HD inline void sphere_plane(const Vector3<T>& p0, const Vector3<T>& p1, Vector3<T>& x,
                                     Vector3<T>& y) {
  x = (T(1) / safe_length(dot(p0, p0))) * p0;
  Vector3<T> normal = cross(p0, p1);
  const T size = safe_length(dot(normal, normal)), o(0), l(1);
  // ends in line with the centre: MuJoCo's choice of a plane
  const auto first = less(abs(x.y), abs(x.x)) | less_equal(abs(x.y), abs(x.x));
  const auto z_largest = less(abs(x.x), abs(x.z)) & less(abs(x.y), abs(x.z));
  const Vector3<T> other =
      select(z_largest, Vector3<T>{l, l, o}, select(first, Vector3<T>{o, l, l}, Vector3<T>{l, o, l}));
  Vector3<T> chosen = cross(x, other);
  chosen = (l / safe_length(dot(chosen, chosen))) * chosen;
  normal = select(less(size, T(least_length)), chosen, (l / size) * normal);
  y = cross(normal, x);
  y = (l / safe_length(dot(y, y))) * y;
}

}  // namespace detail

// The bend of the way from p0 to p1, all in the frame of the shape; `side` counts only if `has_side`.
template <class T>
REVOLUTE_HD Bend<T> bend(bool cylinder, const T& radius, const Vector3<T>& p0, const Vector3<T>& p1,
                         bool has_side, const Vector3<T>& side) {
  using detail::Vector2;
  const T o(0), l(1);
  Vector3<T> x = {l, o, o}, y = {o, l, o};
  if (!cylinder) detail::sphere_plane(p0, p1, x, y);
  const Vector2<T> d0 = {dot(p0, x), dot(p0, y)}, d1 = {dot(p1, x), dot(p1, y)};
  const auto none = less(l, o);
  Vector2<T> beside = {o, o};
  auto inside = none;
  if (has_side) {
    beside = {dot(side, x), dot(side, y)};
    inside = less(detail::safe_length(dot(side, side)), radius);
  }
  detail::PlaneBend<T> found = detail::bend_outside(d0, d1, radius, has_side ? !none : none, beside);
  if (has_side && any(inside)) {
    const detail::PlaneBend<T> from_inside = detail::bend_inside(d0, d1, radius);
    found.bends = (inside & from_inside.bends) | ((!inside) & found.bends);
    found.first = detail::either(inside, from_inside.first, found.first);
    found.second = detail::either(inside, from_inside.second, found.second);
    found.length = select(inside, from_inside.length, found.length);
  }
  Bend<T> out;
  out.bends = found.bends & less_equal(T(detail::least_length), detail::safe_length(dot(p0, p0))) &
              less_equal(T(detail::least_length), detail::safe_length(dot(p1, p1)));
  out.first = found.first.x * x + found.first.y * y;
  out.second = found.second.x * x + found.second.y * y;
  out.length = found.length;
  if (cylinder) {
    const auto flat = [](const T& a, const T& b) { return detail::safe_length(a * a + b * b); };
    const T before = flat(p0.x - out.first.x, p0.y - out.first.y),
            after = flat(p1.x - out.second.x, p1.y - out.second.y), climb = p1.z - p0.z;
    const T rate = climb / (before + out.length + after);
    out.first.z = p0.z + rate * before;
    out.second.z = p0.z + rate * (before + out.length);
    const T height = out.second.z - out.first.z;
    out.length = detail::safe_length(out.length * out.length + height * height);
  }
  return out;
}

}  // namespace revolute
