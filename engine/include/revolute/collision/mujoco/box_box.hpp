// Two boxes: up to eight points. With R, p the pose of b in a's axes and s half sizes:
//
// The separation along an axis is |distance of the centres| - reach of a - reach of b. The axis with the largest separation
// decides, among the six face normals and the nine cross products of edges. A cross product wins only when it is larger than
// every face's by more than 1e-6 of itself, and not when it is nearly that face's normal and hardly larger.  (1)
//   face:  the face of the other box that is turned most against it, clipped by the four sides of the reference face; every
//          corner of the rest, at height z over the reference face, is a point:
//            gap = z,  point half-way down to the face,  normal the face's                    (2)
//   edges: the nearest points w_a, w_b of the two edges, each kept within its edge:
//            gap = (w_b - w_a).n,  point = (w_a + w_b)/2                                      (3)
// A corner of the clipped face is a corner of the incident face, a cut of its edge by a side of the reference face, or the
// corner of two sides projected on the incident face. choose_box_points() finds these in double; box_box() evaluates a point.
#pragma once

#include "revolute/collision/contact_manifold.hpp"
#include "revolute/collision/mujoco/frame.hpp"
#include "revolute/collision/sphere_box.hpp"
#include "revolute/collision/ties.hpp"
#include "revolute/scalar/dual.hpp"

namespace revolute::mujoco {

constexpr int box_points = 8;

enum class BoxFeature : signed char { edges, corner, cut, sides };

// One point. Reference face: its box, its axis k and side; incident face: axis f and side. Corners, and edges from a corner
// to the next, are counted about the incident face; side 2 c + (lower) bounds coordinate c of the reference face.
struct BoxPoint {
  BoxFeature feature;
  signed char reference, k, k_side, f, f_side;
  signed char first, second;  // corner; edge and side; two sides; edges: axes of a and b
};
struct BoxChoice {
  int count = 0;
  BoxPoint points[box_points];
};

namespace detail {

struct ClippedPoint {
  double x[3];
  BoxFeature feature;
  int first, second;
  int line;  // on which the polygon continues: edge 0 to 3, side 4 to 7
};
struct ClippedFace {
  static constexpr int most = 16;
  int count = 0;
  ClippedPoint list[most];
  REVOLUTE_HD void add(const ClippedPoint& point) {
    if (count < most) list[count++] = point;
  }
};

// Cuts off what lies beyond x[c] sign = limit. Points on the side itself (ties.hpp) count as outside an upper side and as
// inside a lower one: where faces are flush, that is the choice after a small displacement, with the same points.  (2')
REVOLUTE_HD inline void clip(ClippedFace& face, int c, double sign, double limit) {
  const int side = 2 * c + (sign < 0), n = face.count;
  const double rounding = on_border * limit;
  double beyond[ClippedFace::most], least = 1e300, most = -1e300;
  for (int q = 0; q < n; ++q) {
    beyond[q] = sign * face.list[q].x[c] - limit;
    least = std::fmin(least, beyond[q]);
    most = std::fmax(most, beyond[q]);
  }
  const double on_side =
      least < -rounding ? sign * rounding : -rounding;  // a face that ends at the side is kept
  for (int q = 0; q < n; ++q)
    if (std::fabs(beyond[q]) <= rounding) beyond[q] = on_side;
  if (most < -rounding) return;
  ClippedFace out;
  for (int q = 0; q < n; ++q) {
    const int next = q + 1 == n ? 0 : q + 1;
    const ClippedPoint &from = face.list[q], &to = face.list[next];
    if (beyond[q] <= 0) out.add(from);
    if (beyond[q] * beyond[next] < 0) {
      ClippedPoint cut;
      const double part = beyond[q] / (beyond[q] - beyond[next]);
      for (int i = 0; i < 3; ++i) cut.x[i] = from.x[i] + part * (to.x[i] - from.x[i]);
      cut.feature = from.line < 4 ? BoxFeature::cut : BoxFeature::sides;
      cut.first = from.line < 4 ? from.line : from.line - 4;
      cut.second = side;
      cut.line = beyond[q] < 0 ? 4 + side : from.line;
      out.add(cut);
    }
  }
  face = out;
}

REVOLUTE_HD inline double corner_u(int corner) { return corner == 0 || corner == 3 ? 1 : -1; }
REVOLUTE_HD inline double corner_v(int corner) { return corner < 2 ? 1 : -1; }

// The incident face in the frame of the reference face: coordinates along it, and height over it. Corner (u, v) is
// centre + u along_u + v along_v.
template <class T>
struct IncidentFace {
  Vector3<T> centre, along_u, along_v;
};
template <class T>
REVOLUTE_HD inline T part(const Vector3<T>& a, int i) {
  return i == 0 ? a.x : i == 1 ? a.y : a.z;
}
template <class T>
REVOLUTE_HD inline IncidentFace<T> incident_face(const BoxPoint& at, const Box<T>& reference,
                                                 const Box<T>& incident) {
  const int k = at.k, u = (at.f + 1) % 3, v = (at.f + 2) % 3;
  const T side(double(at.k_side));
  const auto seen = [&](const Vector3<T>& a) {
    return Vector3<T>{part(a, (k + 1) % 3), part(a, (k + 2) % 3), side * part(a, k)};
  };
  const auto axis = [&](int i) {
    return part(incident.half, i) * seen(transpose_times(reference.R, incident.R.column(i)));
  };
  IncidentFace<T> out = {seen(transpose_times(reference.R, incident.centre - reference.centre)) +
                             T(double(at.f_side)) * axis(at.f),
                         axis(u), axis(v)};
  out.centre.z = out.centre.z - part(reference.half, k);
  return out;
}

// Separations (1) of b from a.
struct BoxAxes {
  double s1[3], s2[3], rot[3][3], p21[3], p12[3];

  REVOLUTE_HD BoxAxes(const Box<double>& a, const Box<double>& b) {
    const Matrix3<double> R = transpose(a.R) * b.R;
    const Vector3<double> d = b.centre - a.centre, in_a = transpose_times(a.R, d),
                          in_b = transpose_times(b.R, d);
    for (int i = 0; i < 3; ++i) {
      s1[i] = part(a.half, i);
      s2[i] = part(b.half, i);
      p21[i] = part(in_a, i);
      p12[i] = -part(in_b, i);
      for (int j = 0; j < 3; ++j) rot[i][j] = R(i, j);
    }
  }
  REVOLUTE_HD double size() const { return s1[0] + s1[1] + s1[2] + s2[0] + s2[1] + s2[2]; }
  REVOLUTE_HD double face_separation(int code) const {
    const int i = code % 3;
    double reach = code < 3 ? s1[i] : s2[i];
    for (int j = 0; j < 3; ++j)
      reach += code < 3 ? std::fabs(rot[i][j]) * s2[j] : std::fabs(rot[j][i]) * s1[j];
    return std::fabs(code < 3 ? p21[i] : p12[i]) - reach;
  }
  // The cross product of edge i of a and edge j of b, in a's axes; false where they are parallel.
  REVOLUTE_HD bool edge_axis(int i, int j, double* x) const {
    const int i1 = (i + 1) % 3, i2 = (i + 2) % 3;
    x[i] = 0;
    x[i1] = -rot[i2][j];
    x[i2] = rot[i1][j];
    const double squared = x[i1] * x[i1] + x[i2] * x[i2];
    if (squared < 1e-16) return false;
    const double length = std::sqrt(squared);
    x[i1] /= length;
    x[i2] /= length;
    return true;
  }
  REVOLUTE_HD double along_b(const double* x, int j) const {
    return x[0] * rot[0][j] + x[1] * rot[1][j] + x[2] * rot[2][j];
  }
  REVOLUTE_HD double edge_separation(const double* x) const {
    double distance = 0, reach = 0;
    for (int k = 0; k < 3; ++k) {
      distance += x[k] * p21[k];
      reach += std::fabs(x[k]) * s1[k] + std::fabs(along_b(x, k)) * s2[k];
    }
    return std::fabs(distance) - reach;
  }
};

// Of two parallel faces whose separations tie (ties.hpp), the one that decides after a small turn: a turn lowers the
// separation from a face by the width of the other box, so the wider face wins.  (1')
REVOLUTE_HD inline int wider_of_tied_faces(const BoxAxes& axes, int face) {
  const bool of_a = face < 3;
  const int k = face % 3;
  const auto along = [&](int j) { return std::fabs(of_a ? axes.rot[k][j] : axes.rot[j][k]); };
  int parallel = 0;
  for (int j = 1; j < 3; ++j)
    if (along(j) > along(parallel)) parallel = j;
  const int other = of_a ? 3 + parallel : parallel;
  if (axes.face_separation(face) - axes.face_separation(other) > tied_faces * axes.size()) return face;
  const auto width = [](const double* half, int axis) { return half[(axis + 1) % 3] + half[(axis + 2) % 3]; };
  const double own = width(of_a ? axes.s1 : axes.s2, k), others = width(of_a ? axes.s2 : axes.s1, parallel);
  return others > own ? other : face;
}

// (1): the code of a face (of a, then of b) or 6 + 3 i + j of edges; -1 where the boxes are farther apart than `most`.
REVOLUTE_HD inline int separating_axis(const BoxAxes& axes, double most) {
  int face = 0;
  double at_face = -1e300;
  for (int code = 0; code < 6; ++code) {
    const double s = axes.face_separation(code);
    if (s > most) return -1;
    if (s > at_face) at_face = s, face = code;
  }
  face = wider_of_tied_faces(axes, face);
  int best = face;
  double at_best = at_face, best_x[3] = {0, 0, 0};
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      double x[3];
      if (!axes.edge_axis(i, j, x)) continue;
      const double s = axes.edge_separation(x);
      if (s > most) return -1;
      if (!(s - 1e-6 * std::fabs(s) > at_best && s > at_face)) continue;
      at_best = s;
      best = 6 + 3 * i + j;
      for (int k = 0; k < 3; ++k) best_x[k] = x[k];
    }
  if (best < 6) return best;
  const double facing = std::fabs(face < 3 ? best_x[face] : axes.along_b(best_x, face - 3));
  const bool nearly_face = facing > 0.99 && at_best < at_face + 0.05 * std::fabs(at_face) + shortest;
  return nearly_face ? face : best;
}

}  // namespace detail

// The points nearer than `margin`, in MuJoCo's order.
REVOLUTE_HD inline void choose_box_points(const Box<double>& a, const Box<double>& b, double margin,
                                          BoxChoice& out) {
  using namespace detail;
  out.count = 0;
  const BoxAxes axes(a, b);
  const int code = separating_axis(axes, margin + on_border * axes.size());
  if (code < 0) return;
  if (code >= 6) {
    BoxPoint& point = out.points[out.count++];
    point = {BoxFeature::edges, 0, 0, 0, 0, 0, (signed char)((code - 6) / 3), (signed char)((code - 6) % 3)};
    return;
  }
  const bool of_a = code < 3;
  const Box<double>&reference = of_a ? a : b, &incident = of_a ? b : a;
  const int k = code % 3;
  const double* between = of_a ? axes.p21 : axes.p12;
  BoxPoint base = {BoxFeature::corner,
                   (signed char)(of_a ? 0 : 1),
                   (signed char)k,
                   (signed char)(between[k] >= 0 ? 1 : -1),
                   0,
                   0,
                   0,
                   0};
  double facing = -1;
  for (int f = 0; f < 3; ++f) {
    const double along = of_a ? axes.rot[k][f] : axes.rot[f][k];
    if (std::fabs(along) > facing) {
      facing = std::fabs(along);
      base.f = (signed char)f;
      base.f_side = base.k_side * along > 0 ? -1 : 1;
    }
  }
  const IncidentFace<double> face = incident_face(base, reference, incident);
  ClippedFace clipped;
  for (int q = 0; q < 4; ++q) {
    const Vector3<double> x = face.centre + corner_u(q) * face.along_u + corner_v(q) * face.along_v;
    clipped.add({{x.x, x.y, x.z}, BoxFeature::corner, q, 0, q});
  }
  const double limit[2] = {part(reference.half, (k + 1) % 3), part(reference.half, (k + 2) % 3)};
  for (int c = 0; c < 2; ++c)
    for (double sign : {1.0, -1.0}) clip(clipped, c, sign, limit[c]);
  const double apart = 1e-14 * (limit[0] * limit[0] + limit[1] * limit[1]);
  int kept[ClippedFace::most];
  for (int q = 0; q < clipped.count && out.count < box_points; ++q) {
    const ClippedPoint& point = clipped.list[q];
    bool is_new = point.x[2] <= margin;
    for (int i = 0; is_new && i < out.count; ++i) {
      const double dx = point.x[0] - clipped.list[kept[i]].x[0], dy = point.x[1] - clipped.list[kept[i]].x[1];
      is_new = !(dx * dx + dy * dy < apart);
    }
    if (!is_new) continue;
    kept[out.count] = q;
    base.feature = point.feature;
    base.first = (signed char)point.first;
    base.second = (signed char)point.second;
    out.points[out.count++] = base;
  }
}

namespace detail {

// (2)
template <class T>
REVOLUTE_HD inline ContactPoint<T> box_face_point(const BoxPoint& at, const Box<T>& a, const Box<T>& b) {
  const Box<T>&reference = at.reference == 0 ? a : b, &incident = at.reference == 0 ? b : a;
  const IncidentFace<T> face = incident_face(at, reference, incident);
  const int k = at.k;
  const T limit[2] = {part(reference.half, (k + 1) % 3), part(reference.half, (k + 2) % 3)};
  const auto corner = [&](int q) {
    return face.centre + T(corner_u(q)) * face.along_u + T(corner_v(q)) * face.along_v;
  };
  const auto border = [&](int side) { return side % 2 ? -limit[side / 2] : limit[side / 2]; };
  Vector3<T> x;
  if (at.feature == BoxFeature::corner) {
    x = corner(at.first);
  } else if (at.feature == BoxFeature::cut) {
    const Vector3<T> from = corner(at.first), to = corner((at.first + 1) % 4);
    const int c = at.second / 2;
    const T start = part(from, c), end = part(to, c);
    x = from + ((border(at.second) - start) / (end - start)) * (to - from);
  } else {
    const bool x_first = at.first < 2;
    x.x = border(x_first ? at.first : at.second);
    x.y = border(x_first ? at.second : at.first);
    const Vector3<T>&u = face.along_u, &v = face.along_v;
    const T dx = x.x - face.centre.x, dy = x.y - face.centre.y, det = u.x * v.y - u.y * v.x;
    x.z = face.centre.z + ((dx * v.y - dy * v.x) / det) * u.z + ((dy * u.x - dx * u.y) / det) * v.z;
  }
  const T side(double(at.k_side));
  const Vector3<T> outward = side * reference.R.column(k);
  const Vector3<T> local_end = (part(reference.half, k) + T(0.5) * x.z) * outward;
  return {x.z,
          reference.centre + x.x * reference.R.column((k + 1) % 3) + x.y * reference.R.column((k + 2) % 3) +
              local_end,
          at.reference == 0 ? outward : -outward};
}

// (3); signs and cuts by value.
template <class T>
REVOLUTE_HD inline ContactPoint<T> box_edge_point(const BoxPoint& at, const Box<T>& a, const Box<T>& b) {
  const int i = at.first, j = at.second;
  const Vector3<T> u = a.R.column(i), w = b.R.column(j), d = b.centre - a.centre;
  const Vector3<T> across = cross(u, w);
  const T length = sqrt(dot(across, across));
  Vector3<T> n = (T(1) / length) * across;
  n = select(is_negative(dot(n, d)), -n, n);
  // the edges' middles, about the centre of a
  const auto supporting = [&](const Box<T>& box, int own, const Vector3<T>& towards) {
    Vector3<T> sum = zero3<T>();
    for (int k = 0; k < 3; ++k) {
      if (k == own) continue;
      const T s = part(box.half, k);
      sum += select(is_negative(dot(towards, box.R.column(k))), -s, s) * box.R.column(k);
    }
    return sum;
  };
  const Vector3<T> c1 = supporting(a, i, n), c2 = d + supporting(b, j, -n), e = c2 - c1;
  const T cosine = dot(u, w), squared = T(1) - cosine * cosine, s1 = part(a.half, i), s2 = part(b.half, j);
  const T e_u = dot(u, e), e_w = dot(w, e);
  T s = clamp_magnitude((e_u - cosine * e_w) / squared, s1);
  const T t = clamp_magnitude(cosine * s - e_w, s2);
  s = clamp_magnitude(e_u + cosine * t, s1);
  const Vector3<T> w1 = c1 + s * u, w2 = c2 + t * w;
  return {dot(w2 - w1, n), a.centre + T(0.5) * (w1 + w2), n};
}

// The reverse of (2), as a point of one box over a face of the other.
REVOLUTE_HD inline PairMoments<double> box_face_adjoint(const BoxPoint& at, const Box<double>& a,
                                                        const Box<double>& b,
                                                        const ContactPoint<double>& contact,
                                                        const ContactPoint<double>& bar) {
  const Box<double>&reference = at.reference == 0 ? a : b, &incident = at.reference == 0 ? b : a;
  const Vector3<double> outward = double(at.k_side) * reference.R.column(at.k);
  const auto side = [&](int code) {
    return (code % 2 ? -1.0 : 1.0) * reference.R.column((at.k + 1 + code / 2) % 3);
  };
  Touch touch = {};
  touch.kind = at.reference == 0 ? TouchKind::face_of_a : TouchKind::face_of_b;
  touch.at = contact;
  touch.face = at_vertex(contact.point + (0.5 * contact.gap) * outward, 0);
  if (at.feature == BoxFeature::cut)
    touch.face.hold = cut_by(side(at.second), incident.R.column((at.f + (at.first % 2 ? 2 : 1)) % 3));
  if (at.feature == BoxFeature::sides) {
    const Vector3<double> facing = incident.R.column(at.f);
    touch.face.hold = (1 / dot(outward, facing)) * outer_product(outward, facing);
  }
  return touch_adjoint(touch, bar);
}

// The reverse of (3): its derivatives by a displacement of b about the centre of a.
REVOLUTE_HD inline PairMoments<double> box_edge_adjoint(const BoxPoint& at, const Box<double>& a,
                                                        const Box<double>& b,
                                                        const ContactPoint<double>& contact,
                                                        const ContactPoint<double>& bar) {
  using D = Dual<6>;
  const auto still = [](const Vector3<double>& x) { return Vector3<D>{D(x.x), D(x.y), D(x.z)}; };
  // x displaced by turns (tangents 0 to 2) about the origin, and shifts (3 to 5)
  const auto moved = [&](const Vector3<double>& x, double shift) {
    Vector3<D> out = still(x);
    out.z.tangent[0] = x.y, out.y.tangent[0] = -x.z;
    out.x.tangent[1] = x.z, out.z.tangent[1] = -x.x;
    out.y.tangent[2] = x.x, out.x.tangent[2] = -x.y;
    out.x.tangent[3] = out.y.tangent[4] = out.z.tangent[5] = shift;
    return out;
  };
  Box<D> A, B;
  A.centre = zero3<D>();
  B.centre = moved(b.centre - a.centre, 1);
  A.half = still(a.half);
  B.half = still(b.half);
  for (int j = 0; j < 3; ++j) {
    const Vector3<D> in_a = still(a.R.column(j)), in_b = moved(b.R.column(j), 0);
    A.R(0, j) = in_a.x, A.R(1, j) = in_a.y, A.R(2, j) = in_a.z;
    B.R(0, j) = in_b.x, B.R(1, j) = in_b.y, B.R(2, j) = in_b.z;
  }
  const ContactPoint<D> out = box_edge_point(at, A, B);
  double by[6];
  for (int d = 0; d < 6; ++d) {
    const auto tangent = [&](const Vector3<D>& x) {
      return Vector3<double>{x.x.tangent[d], x.y.tangent[d], x.z.tangent[d]};
    };
    by[d] = bar.gap * out.gap.tangent[d] + dot(bar.point, tangent(out.point)) +
            dot(bar.normal, tangent(out.normal));
  }
  Force<double> moment = {{by[0], by[1], by[2]}, {by[3], by[4], by[5]}};
  moment.n += cross(a.centre, moment.f);
  return {answer_moment(contact, bar) + (-moment), moment};
}

}  // namespace detail

template <class T>
REVOLUTE_HD inline ContactPoint<T> box_box(const BoxPoint& at, const Box<T>& a, const Box<T>& b) {
  return at.feature == BoxFeature::edges ? detail::box_edge_point(at, a, b)
                                         : detail::box_face_point(at, a, b);
}
REVOLUTE_HD inline PairMoments<double> box_box_adjoint(const BoxPoint& at, const Box<double>& a,
                                                       const Box<double>& b,
                                                       const ContactPoint<double>& contact,
                                                       const ContactPoint<double>& bar) {
  return at.feature == BoxFeature::edges ? detail::box_edge_adjoint(at, a, b, contact, bar)
                                         : detail::box_face_adjoint(at, a, b, contact, bar);
}

}  // namespace revolute::mujoco
