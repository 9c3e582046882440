// Range finders: the ray along z of a site, past the site's own body. Integers of the probe: bits of the data that it gives, in
// the order distance, direction, origin, point, normal, depth; then the shapes that it may meet. Without a hit, distance and
// depth are -1, and all but the origin are zero.
//
// With p, d the ray, X = p + t d the hit, n the normal there, and the shape's point at X displaced by X_g and turned by turn:
//   dt = -n.(dp + t dd - X_g)/(n.d),   dX = dp + t dd + d dt,   dn = turn x n + K (dX - X_g)     (1)
// K = (1 - n n') H/|g| of rays.hpp. Not differentiated: which shape is hit, and which part of it.
// Rays are cast one environment at a time, in double.
#pragma once

#include "revolute/collision/rays.hpp"
#include "revolute/stages/measured_constraints.hpp"

namespace revolute::detail {

// of distance, direction, origin, point, normal, depth: the bits of a range finder's data, in MuJoCo's order
constexpr int ray_data_sizes[] = {1, 3, 3, 3, 3, 1};

template <class Real>
REVOLUTE_HD inline Matrix3<double> rotation_of_lane(const Kinematics<Real>& kin, const Geom& geom, int lane) {
  return get_lane(geom_rotation(kin, geom), lane);
}

// The nearest shape on the ray of one environment.
template <class Real>
RayContact cast_ray(const Model& model, const Probes& probes, const Probe& probe, const Kinematics<Real>& kin,
                    const Vector3<double>& p, const Vector3<double>& d, int lane) {
  RayHit nearest;
  int found = -1;
  for (int i = 1; i < probe.integers; ++i) {
    const int g = probes.integers[probe.first_integer + i];
    const Geom& geom = model.geoms[g];
    const Matrix3<double> R = rotation_of_lane(kin, geom, lane);
    const Vector3<double> centre = get_lane(world_point(model, kin, geom.link, geom.position), lane);
    const double before = nearest.distance;
    ray_geom(model, geom, {transpose_times(R, p - centre), transpose_times(R, d)}, nearest);
    if (nearest.distance < before) found = g;
  }
  return {found, nearest.distance, nearest.gradient, nearest.curvature};
}

// The quantities of (1) in one environment.
struct RayGeometry {
  Vector3<double> p, d, X, n;
  Matrix3<double> R;  // of the shape
  double inverse_gradient;
};
template <class Real>
RayGeometry ray_geometry(const Model& model, const Kinematics<Real>& kin, const MeasuredFrame<Real>& frame,
                         const RayContact& hit, int lane) {
  RayGeometry out;
  out.p = get_lane(frame.p, lane);
  out.d = get_lane(frame.R.column(2), lane);
  out.R = rotation_of_lane(kin, model.geoms[hit.geom], lane);
  out.X = out.p + hit.distance * out.d;
  out.inverse_gradient = 1 / std::sqrt(dot(hit.gradient, hit.gradient));
  out.n = out.R * (out.inverse_gradient * hit.gradient);
  return out;
}
// H y/|g| in the world
inline Vector3<double> times_curvature(const RayGeometry& ray, const RayContact& hit,
                                       const Vector3<double>& y) {
  const Vector3<double> local = transpose_times(ray.R, y);
  return ray.inverse_gradient * (ray.R * Vector3<double>{hit.curvature.x * local.x, hit.curvature.y * local.y,
                                                         hit.curvature.z * local.z});
}

// The tangents of (1), for numbers that carry derivatives; the values are zero.
template <class Real>
void add_ray_tangents(const Model& model, const Kinematics<Real>& kin, const MeasuredFrame<Real>& frame,
                      const RayContact& hit, Real& distance, Vector3<Real>& point, Vector3<Real>& normal) {
  const RayGeometry ray = ray_geometry(model, kin, frame, hit, 0);
  const Geom& geom = model.geoms[hit.geom];
  const auto real = [](const Vector3<double>& v) { return Vector3<Real>{Real(v.x), Real(v.y), Real(v.z)}; };
  const auto tangents = [](const Vector3<Real>& v) {
    return Vector3<Real>{tangents_of(v.x), tangents_of(v.y), tangents_of(v.z)};
  };
  const Matrix3<Real> R = geom_rotation(kin, geom);
  const Vector3<double> centre = get_lane(world_point(model, kin, geom.link, geom.position), 0);
  const Vector3<Real> moved = tangents(frame.p + Real(hit.distance) * frame.R.column(2)), n = real(ray.n),
                      d = real(ray.d);
  const Vector3<Real> of_shape = tangents(world_point(model, kin, geom.link, geom.position) +
                                          R * real(transpose_times(ray.R, ray.X - centre)));
  const Real dt = -dot(n, moved - of_shape) / dot(n, d);
  const Vector3<Real> dX = moved + dt * d, slip = dX - of_shape;
  Vector3<Real> bent = zero3<Real>();
  for (int i = 0; i < 3; ++i) {
    const Vector3<double> axis = {i == 0 ? 1.0 : 0.0, i == 1 ? 1.0 : 0.0, i == 2 ? 1.0 : 0.0};
    bent += dot(real(axis), slip) * real(times_curvature(ray, hit, axis));
  }
  distance += dt;
  point += dX;
  normal += tangents(R * real(ray.inverse_gradient * hit.gradient)) + (bent - dot(n, bent) * n);
}

template <class Real>
void measure_rays(const Model& model, const Parameters<Real>& parameters, const Probes& probes,
                  const Probe& probe, const Measurement<Real>& at, RayContact* hits, Real* out) {
  const Kinematics<Real>& kin = *at.kinematics;
  const MeasuredFrame<Real> frame = measured_frame(model, parameters, kin, probe.of);
  Real distance(-1);
  Vector3<Real> direction = zero3<Real>(), point = direction, normal = direction;
  for (int lane = 0; lane < Width<Real>::value; ++lane) {
    hits[lane] =
        cast_ray(model, probes, probe, kin, get_lane(frame.p, lane), get_lane(frame.R.column(2), lane), lane);
    if (hits[lane].geom < 0) continue;
    const RayGeometry ray = ray_geometry(model, kin, frame, hits[lane], lane);
    set_lane(distance, lane, hits[lane].distance);
    set_lane(direction, lane, ray.d);
    set_lane(point, lane, ray.X);
    set_lane(normal, lane, ray.n);
  }
  if constexpr (HasTangents<Real>::value)
    if (hits[0].geom >= 0) {
      direction = frame.R.column(2);
      add_ray_tangents(model, kin, frame, hits[0], distance, point, normal);
    }
  const int data = probes.integers[probe.first_integer];
  const Vector3<Real> vectors[] = {direction, frame.p, point, normal};
  for (int field = 0; field < 6; ++field) {
    if (!(data >> field & 1)) continue;
    if (ray_data_sizes[field] == 1)
      out[0] = distance;
    else
      write3(vectors[field - 1], out);
    out += ray_data_sizes[field];
  }
}

// Adds a moment of one environment about the world's origin to the link that it acts on there.
template <class Real>
void add_lane_moment(const Model& model, const Kinematics<Real>& kin, int link, int lane,
                     const Force<double>& moment, KinematicsCotangent<Real>& kin_bar) {
  Force<Real>* const of_link = kin_bar.moment_of(link);
  if (!of_link) return;
  add_lane(of_link->n, lane, moment.n - cross(get_lane(tree_origin(model, kin, link), lane), moment.f));
  add_lane(of_link->f, lane, moment.f);
}

// Lanes of cotangents of one environment share its ray.
template <class Real>
void rays_adjoint(const Model& model, const Parameters<Real>& parameters, const Probes& probes,
                  const Probe& probe, const Measurement<Real>& at, const RayContact* hits, const Real* bar,
                  MeasurementAdjointWorkspace<Real>& ws, const InputCotangents<Real>& inputs) {
  const Kinematics<Real>& kin = *at.kinematics;
  const MeasuredFrame<Real> frame = measured_frame(model, parameters, kin, probe.of);
  const FrameMotion<Real> motion = frame_motion(kin, *parameters.gravity, at.A, probe.of, frame);
  FrameCotangent<Real> of = zero_frame_cotangent<Real>();
  const int data = probes.integers[probe.first_integer];
  for (int lane = 0; lane < Width<Real>::value; ++lane) {
    const RayContact& hit = hits[lane];
    double t_bar = 0;
    Vector3<double> vectors[4] = {};  // cotangents of direction, origin, point, normal
    for (int field = 0, i = 0; field < 6; ++field) {
      if (!(data >> field & 1)) continue;
      if (ray_data_sizes[field] == 1)
        t_bar += get_lane(bar[i], lane);
      else
        vectors[field - 1] = get_lane(load3(bar + i), lane);
      i += ray_data_sizes[field];
    }
    add_lane(of.p, lane, vectors[1]);
    if (hit.geom < 0) continue;
    const RayGeometry ray = ray_geometry(model, kin, frame, hit, lane);
    const Vector3<double>& n_bar = vectors[3];
    const Vector3<double> bent = times_curvature(ray, hit, n_bar - dot(ray.n, n_bar) * ray.n);
    const Vector3<double> X_bar = vectors[2] + bent;
    const double k = -(t_bar + dot(X_bar, ray.d)) / dot(ray.n, ray.d);  // (1)
    const Vector3<double> p_bar = X_bar + k * ray.n, d_bar = vectors[0] + hit.distance * p_bar,
                          shape_bar = -(bent + k * ray.n);
    add_lane(of.p, lane, p_bar);
    add_lane(of.turn, lane, cross(ray.d, d_bar));
    add_lane_moment(model, kin, model.geoms[hit.geom].link, lane,
                    {cross(ray.X, shape_bar) + cross(ray.n, n_bar), shape_bar}, ws.links.kinematics);
  }
  frame_adjoint(model, kin, at.A, probe.of, frame, motion, of, ws.links, *inputs.parameters);
}

}  // namespace revolute::detail
