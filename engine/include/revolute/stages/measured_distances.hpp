// Distances between shapes, or between all shapes of two bodies: the nearest of the probe's pairs, by the formulae of collision
// detection. Integers of the probe: pairs of shapes, first and second. Number: the largest distance. With the gap and point of
// collision/contact_point.hpp, and n from the first shape to the second,
//   distance gap,   normal n, or -n where the shapes overlap,   points  point -+ gap n/2                                      (1)
// Farther than the largest distance, that is the distance, and the rest is zero.
// Not differentiated: which pair, feature or point is the nearest.
#pragma once

#include "revolute/stages/measured_constraints.hpp"

namespace revolute::detail {

// Finds the points of the pair whose first candidate is `first`.
template <class Real>
REVOLUTE_HD void find_points(const Model& model, const Kinematics<Real>& kin, const Candidate* first,
                             Contact<Real>* out, Touch* touches, MaskOf<Real>* exists) {
  const Candidate& candidate = *first;
  const auto nowhere = less(Real(1), Real(0));
  for (int s = 0; s < candidate.slots; ++s) {
    out[s].candidate = first + s;
    out[s].touches = touches + s * Width<Real>::value;
    out[s].at = {Real(0), zero3<Real>(), {Real(0), Real(0), Real(1)}};
    exists[s] = nowhere;
  }
  const Geom& a = model.geoms[candidate.geom_a];
  const auto give = [&](int slot, const ContactPoint<Real>& at, MaskOf<Real> there) {
    out[slot].at = at;
    exists[slot] = there;
  };
  const auto give_plane_point = [&](int slot, const Vector3<Real>& x, double radius, MaskOf<Real> there) {
    out[slot].centre = x;
    give(slot,
         plane_point(plane_normal(kin, a), world_point(model, kin, a.link, a.position), x, Real(radius)),
         there);
  };
  if (is_searched(candidate.pair)) {
    for (int lane = 0; lane < Width<Real>::value; ++lane) {
      Touch& touch = out->touches[lane];
      touch.kind = TouchKind::none;
      touch.at = {0, zero3<double>(), {0, 0, 1}};
      ContactManifold manifold;
      find_manifold(model, kin, static_cast<const Motion<Real>*>(nullptr), 0, candidate, lane,
                    candidate.margin, manifold);
      for (int i = 0; i < manifold.count; ++i)
        if (i == 0 || manifold.points[i].at.gap < touch.at.gap) touch = manifold.points[i];
      const Vector origin = pair_origin(model, kin, candidate, lane);
      set_lane(out->at.gap, lane, touch.at.gap);
      set_lane(out->at.point, lane, origin + touch.at.point);
      set_lane(out->at.normal, lane, touch.at.normal);
      Real there = indicator<Real>(*exists);
      set_lane(there, lane, manifold.count > 0 ? 1.0 : 0.0);
      *exists = less(Real(0), there);
    }
    if constexpr (HasTangents<Real>::value)
      if (any(*exists)) add_touch_tangents(model, kin, candidate, out->touches[0], out->at);
    return;
  }
  if (candidate.pair == Pair::plane_mesh)
    return mujoco::plane_mesh_points(model, kin, candidate, less(Real(0), Real(1)), give_plane_point);
  if (a.shape == Shape::plane) return mujoco::plane_points(model, kin, first, give_plane_point);
  for (int s = 0; s < candidate.slots; ++s) {
    MaskOf<Real> there;
    const ContactPoint<Real> at = mujoco::round_touch(model, kin, first[s], there);
    give(s, at, there);
  }
}

// The nearest point of each environment: calls visit(place among the probe's candidates, where it is the nearest).
template <class Real, class Visit>
REVOLUTE_HD void visit_nearest(const Probe& probe, const Measurement<Real>& at, const Visit& visit) {
  const int first = probe.first_candidate;
  for (int i = first; i < first + probe.candidates; ++i) {
    auto nearest = at.exists[i] & less(at.points[i].at.gap, Real(at.points[i].candidate->margin));
    for (int j = first; j < first + probe.candidates; ++j) {
      if (j == i) continue;
      const auto nearer = j < i ? less_equal(at.points[j].at.gap, at.points[i].at.gap)
                                : less(at.points[j].at.gap, at.points[i].at.gap);
      nearest = nearest & !(at.exists[j] & nearer);
    }
    if (any(nearest)) visit(i, nearest);
  }
}
// Whether a candidate's normal points from the second shape of its pair to the first.
REVOLUTE_HD inline bool is_turned(const Probes& probes, const Probe& probe, const Candidate& candidate,
                                  int place) {
  // the pair that the candidate belongs to: pairs have one to eight candidates, slot 0 first
  int pair = -1;
  for (int i = probe.first_candidate; i <= place; ++i) pair += probes.candidates[i].slot == 0;
  return probes.integers[probe.first_integer + 2 * pair] != candidate.geom_a;
}

template <class Real>
REVOLUTE_HD void measure_distance(const Model& model, const Probes& probes, const Probe& probe,
                                  const Measurement<Real>& at, Real* out) {
  for (int i = probe.first_candidate; i < probe.first_candidate + probe.candidates;) {
    find_points(model, *at.kinematics, &probes.candidates[i], at.points + i,
                at.touches + std::size_t(i) * Width<Real>::value, at.exists + i);
    i += probes.candidates[i].slots;
  }
  for (int i = 0; i < probe.size; ++i)
    out[i] = Real(probe.kind == ProbeKind::geom_distance ? probes.numbers[probe.first_number] : 0.0);
  visit_nearest(probe, at, [&](int i, const MaskOf<Real>& nearest) {
    const ContactPoint<Real>& point = at.points[i].at;
    const Real sign(is_turned(probes, probe, *at.points[i].candidate, i) ? -1.0 : 1.0);
    const Vector3<Real> n = sign * point.normal, half = (Real(0.5) * point.gap) * n;
    const auto write = [&](const Vector3<Real>& value, Real* to) {
      to[0] = select(nearest, value.x, to[0]);
      to[1] = select(nearest, value.y, to[1]);
      to[2] = select(nearest, value.z, to[2]);
    };
    if (probe.kind == ProbeKind::geom_distance) out[0] = select(nearest, point.gap, out[0]);
    if (probe.kind == ProbeKind::geom_normal) write(select(less(point.gap, Real(0)), -n, n), out);
    if (probe.kind != ProbeKind::geom_points) return;
    write(point.point - half, out);
    write(point.point + half, out + 3);
  });
}

template <class Real>
REVOLUTE_HD void distance_adjoint(const Model& model, const Probes& probes, const Probe& probe,
                                  const Measurement<Real>& at, const Real* bar,
                                  MeasurementAdjointWorkspace<Real>& ws) {
  const Kinematics<Real>& kin = *at.kinematics;
  visit_nearest(probe, at, [&](int i, const MaskOf<Real>& nearest) {
    Contact<Real> contact = at.points[i];
    const Candidate& candidate = *contact.candidate;
    const Real weight = indicator<Real>(nearest), half(0.5);
    const Real sign(is_turned(probes, probe, candidate, i) ? -1.0 : 1.0);
    ContactPoint<Real> point = {Real(0), zero3<Real>(), zero3<Real>()};
    if (probe.kind == ProbeKind::geom_distance) point.gap = weight * bar[0];
    if (probe.kind == ProbeKind::geom_normal) {
      point.normal = (sign * weight) * load3(bar);
      point.normal = select(less(contact.at.gap, Real(0)), -point.normal, point.normal);
    }
    if (probe.kind == ProbeKind::geom_points) {
      const Vector3<Real> from = weight * load3(bar), to = weight * load3(bar + 3);
      const Vector3<Real> apart = (half * sign) * (to - from);
      point = {dot(contact.at.normal, apart), from + to, contact.at.gap * apart};
    }
    const Geom& a = model.geoms[candidate.geom_a];
    const bool is_plane = a.shape == Shape::plane;
    const Vector3<Real> normal_bar = point.normal;
    if (is_plane) point.normal = zero3<Real>();
    contact.active = nearest;
    PairMoments<Real> moments = is_searched(candidate.pair)
                                    ? touch_adjoint(model, kin, contact, point)
                                    : mujoco::touch_adjoint(model, kin, contact, point);
    if (is_plane && is_mocap(candidate.link_a)) {
      // displacing plane and shape together moves the point and turns the normal
      Force<Real> both = force_at(contact.at.point, point.point);
      both.n += cross(contact.at.normal, normal_bar);
      moments.a = both + -moments.b;
    }
    add_world_moment(model, kin, candidate.link_a, moments.a, ws.links.kinematics);
    add_world_moment(model, kin, candidate.link_b, moments.b, ws.links.kinematics);
  });
}

}  // namespace revolute::detail
