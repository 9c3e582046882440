// A sphere a and a box b, in the box's frame: c = R'(centre - o), half sizes s.
//   outside: q = clamp(c, -s, s), d = |c - q|, m = (c - q)/d                                  (1)
//   centre inside: nearest face i, d = |c_i| - s_i, m = sign(c_i) e_i                         (2)
//   gap = d - r,  point = c - m (d + r)/2,  normal (from sphere to box) = -m
#pragma once

#include "revolute/collision/contact_point.hpp"

namespace revolute {

template <class Real>
struct Box {
  Matrix3<Real> R;
  Vector3<Real> centre, half;
};

template <class Real>
struct SphereBoxLocal {
  Vector3<Real> c, outward;  // outward = m
  Real d, inverse_d;
  MaskOf<Real> within;
  Vector3<Real> beyond;  // 1 for each axis on which c lies beyond the box
};

template <class Real>
REVOLUTE_HD inline SphereBoxLocal<Real> sphere_box_local(const Vector3<Real>& centre, const Box<Real>& box) {
  SphereBoxLocal<Real> out;
  const Vector3<Real> c = transpose_times(box.R, centre - box.centre), s = box.half;
  const Real o(0), l(1);
  const auto sign = [&](Real a) { return select(less(a, o), -l, l); };
  out.c = c;
  const Vector3<Real> depth = {s.x - abs(c.x), s.y - abs(c.y), s.z - abs(c.z)};  // positive inside
  const auto out_x = less(depth.x, o), out_y = less(depth.y, o), out_z = less(depth.z, o);
  out.beyond = {indicator<Real>(out_x), indicator<Real>(out_y), indicator<Real>(out_z)};
  out.within = !(out_x | out_y | out_z);
  // (1)
  const Vector3<Real> offset = {select(out_x, -depth.x * sign(c.x), o),
                                select(out_y, -depth.y * sign(c.y), o),
                                select(out_z, -depth.z * sign(c.z), o)};
  const Vector3<Real> away = direction(offset, out.d, out.inverse_d);
  // (2)
  const auto x_first = less_equal(depth.x, depth.y) & less_equal(depth.x, depth.z);
  const auto y_first = (!x_first) & less_equal(depth.y, depth.z);
  const Vector3<Real> face = {select(x_first, sign(c.x), o), select(y_first, sign(c.y), o),
                              select(x_first | y_first, o, sign(c.z))};
  out.outward = select(out.within, face, away);
  out.d = select(out.within, -minimum(depth.x, minimum(depth.y, depth.z)), out.d);
  return out;
}

template <class Real>
REVOLUTE_HD inline ContactPoint<Real> sphere_box(const Vector3<Real>& centre, Real radius,
                                                 const Box<Real>& box) {
  const SphereBoxLocal<Real> local = sphere_box_local(centre, box);
  const Vector3<Real> m = box.R * local.outward;
  return {local.d - radius, centre - (Real(0.5) * (local.d + radius)) * m, -m};
}

template <class Real, class Bar>
REVOLUTE_HD inline PairMoments<Bar> sphere_box_adjoint(const Vector3<Real>& centre, Real radius,
                                                       const Box<Real>& box, const ContactPoint<Real>& at,
                                                       const ContactPoint<Bar>& bar) {
  const SphereBoxLocal<Real> local = sphere_box_local(centre, box);
  const Vector3<Real> m = local.outward;
  const Vector3<Bar> point_bar = transpose_times(box.R, bar.point),
                     normal_bar = transpose_times(box.R, bar.normal);
  const Bar d_bar = bar.gap - Real(0.5) * dot(m, point_bar);
  const Vector3<Bar> m_bar = -normal_bar - (Real(0.5) * (local.d + radius)) * point_bar;
  // m turns only outside, and only with the axes on which the centre lies beyond the box
  const Vector3<Bar> turn = direction_adjoint(m, local.inverse_d, m_bar);
  const Vector3<Bar> masked = {local.beyond.x * turn.x, local.beyond.y * turn.y, local.beyond.z * turn.z};
  const Vector3<Bar> c_bar = point_bar + d_bar * m + masked;
  return with_other_side_b(force_at(centre, box.R * c_bar), at, bar);
}

}  // namespace revolute
