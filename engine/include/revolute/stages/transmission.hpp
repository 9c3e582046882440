// Transmissions: lengths along the mechanism on which tendons and actuators act, and the rate J qvel of each length.
//
//   joints (fixed tendon):   l = sum c_i q_i                                                  (1)
//   path (spatial tendon):   l = sum of its pieces, each divided by its pulley's number; a piece may bend (wrap.hpp)      (2)
//   slider_crank:            l = a.x - sqrt((a.x)^2 + rod^2 - x.x),  a the slider's axis, x from slider to crank    (3)
//   ball:                    l = g.log(q),  J = g';  free: l = 0, J = g'                      (4)
//   body:                    l = 0, J of its contacts (adhesion.hpp)
//   site:                    l = 0, or g.(its pose in the frame of a reference site);
//                            J = (the wrench of g at the site).S, less the same at the reference      (5)
// The rows of (4) and (5) are MuJoCo's: they are not the derivative of l, and leave out motion that site and reference share.
// A force f on the length is J' f on the degrees of freedom. J has an entry for each degree of freedom of its support.
// Source: MuJoCo, Computation, section Actuation model; mj_transmission.
//
// Adjoint. A cotangent of J is a generalized velocity w, J_bar.J = J w = sum_i f_i . C_i. f_i are the wrenches of J on links,
// C_i the links' velocities under w. For (2) and (3), J is the derivative of l, so the order of derivatives may be changed:
//   moment_bar_i = df_i/dt along C - C_i x* f_i,   S_bar_k = w_k (sum of f beyond k)          (6)
// so a forward derivative along w (directional.hpp) is enough; df/dt - C x* f is the wrench's rate as seen from its link.
#pragma once

#include "revolute/collision/contact_point.hpp"
#include "revolute/stages/link_points.hpp"
#include "revolute/stages/mass_matrix.hpp"
#include "revolute/stages/wrap.hpp"

namespace revolute {

template <class Real>
struct Transmissions {
  Real *length, *velocity;  // [ntransmission]
  Real* J;                  // entries of each row, along its support
  // for actuation.hpp, when several forces are limited together
  Real *force, *total, *driven;  // [nu] of actuators, [ntendon] on tendons, [nv] of actuators

  Transmissions(const Model& model, Arena& arena)
      : length(arena.take<Real>(model.ntransmission)),
        velocity(arena.take<Real>(model.ntransmission)),
        J(arena.take<Real>(model.ntransmission_entry)),
        force(arena.take<Real>(model.total_limits ? model.nu : 0)),
        total(arena.take<Real>(model.total_limits ? model.ntendon : 0)),
        driven(arena.take<Real>(model.total_limits ? model.nv : 0)) {}
  REVOLUTE_HD const Real* row(const Transmission& transmission) const { return J + transmission.entry; }
};

template <class Bar>
struct TransmissionsCotangent {
  Bar *length, *velocity, *J, *force;

  TransmissionsCotangent(const Model& model, Arena& arena)
      : length(arena.take<Bar>(model.ntransmission)),
        velocity(arena.take<Bar>(model.ntransmission)),
        J(arena.take<Bar>(model.ntransmission_entry)),
        force(arena.take<Bar>(model.total_limits ? model.nu : 0)) {}
  REVOLUTE_HD void clear(const Model& model) {
    for (int i = 0; i < model.ntransmission; ++i) length[i] = velocity[i] = Bar(0);
    for (int i = 0; i < model.ntransmission_entry; ++i) J[i] = Bar(0);
  }
  REVOLUTE_HD Bar* row(const Transmission& transmission) { return J + transmission.entry; }
};

// The degrees of freedom of a row of J.
struct TransmissionDofs {
  int count;
  const int *dofs, *sides;
};
REVOLUTE_HD inline TransmissionDofs dofs_of(const Model& model, const Transmission& transmission) {
  const Support& support = model.supports[transmission.support];
  return {support.count, support.dofs, support.sides};
}
// J x, and x += J' s
template <class Real, class X>
REVOLUTE_HD X row_product(const TransmissionDofs& dofs, const Real* J, const X* x) {
  X sum(0);
  for (int i = 0; i < dofs.count; ++i) sum = multiply_add(J[i], x[dofs.dofs[i]], sum);
  return sum;
}
template <class Real, class X>
REVOLUTE_HD void add_row(const TransmissionDofs& dofs, const Real* J, const X& s, X* x) {
  for (int i = 0; i < dofs.count; ++i) x[dofs.dofs[i]] = multiply_add(J[i], s, x[dofs.dofs[i]]);
}

// Calls visit(k, i) for the degrees of freedom in the row that move a link; i is the place of k in the row.
template <class Visit>
REVOLUTE_HD void visit_movers(const Model& model, const TransmissionDofs& dofs, int link,
                              const Visit& visit) {
  if (link < 0) return;
  const MatrixRow ancestors = tree_row(model, link);
  for (int j = 0, i = 0; j < ancestors.count; ++j) {
    while (i < dofs.count && dofs.dofs[i] > ancestors.dofs[j]) ++i;
    if (i < dofs.count && dofs.dofs[i] == ancestors.dofs[j]) visit(dofs.dofs[i], i);
  }
}

namespace detail {

// Wrenches of J on links.
template <class T>
struct LinkForces {
  static constexpr int most = 4;
  int count;
  int link[most];
  Force<T> force[most];
  T length;

  REVOLUTE_HD void add(int of, const Force<T>& f) {
    link[count] = of;
    force[count] = f;
    ++count;
  }
};

// Points and directions of links at rest.
template <class Real>
struct FramesAtRest {
  using T = Real;
  const Model& model;
  const Kinematics<Real>& kin;

  REVOLUTE_HD Vector3<T> origin(int link) const { return tree_origin(model, kin, link); }
  REVOLUTE_HD Vector3<T> point(int link, const double* local) const {
    return world_point(model, kin, link, local);
  }
  REVOLUTE_HD Matrix3<T> frame(int link, const double* rotation) const {
    return world_rotation(kin, link, rotation);
  }
};
// Points and directions of links while link `l` has the velocity motion(l).
template <class Real, class Bar, class MotionOf>
struct MovingFrames {
  using T = Directional<Real, Bar>;
  FramesAtRest<Real> at;
  MotionOf motion;

  REVOLUTE_HD static Vector3<T> joined(const Vector3<Real>& a, const Vector3<Bar>& rate) {
    return {T(a.x, rate.x), T(a.y, rate.y), T(a.z, rate.z)};
  }
  REVOLUTE_HD Vector3<T> origin(int link) const { return joined(at.origin(link), zero3<Bar>()); }
  REVOLUTE_HD Vector3<T> point(int link, const double* local) const {
    const Vector3<Real> x = at.point(link, local);
    const Motion<Bar> C = motion(link);
    return joined(x, C.v + cross(C.w, x - at.origin(link)));
  }
  REVOLUTE_HD Matrix3<T> frame(int link, const double* rotation) const {
    const Matrix3<Real> R = at.frame(link, rotation);
    const Motion<Bar> C = motion(link);
    Matrix3<T> out;
    for (int j = 0; j < 3; ++j) {
      const Vector3<T> column = joined(R.column(j), cross(C.w, R.column(j)));
      out(0, j) = column.x;
      out(1, j) = column.y;
      out(2, j) = column.z;
    }
    return out;
  }
};

// A force that moves, and the rate at which it changes.
template <class Real, class Bar>
REVOLUTE_HD Force<Real> value_of(const Force<Directional<Real, Bar>>& F) {
  return {{F.n.x.value, F.n.y.value, F.n.z.value}, {F.f.x.value, F.f.y.value, F.f.z.value}};
}
template <class Real, class Bar>
REVOLUTE_HD Force<Bar> rate_of(const Force<Directional<Real, Bar>>& F) {
  return {{F.n.x.tangent, F.n.y.tangent, F.n.z.tangent}, {F.f.x.tangent, F.f.y.tangent, F.f.z.tangent}};
}

// Returns a/|a| and |a|.
template <class T>
REVOLUTE_HD inline Vector3<T> unit(const Vector3<T>& a, T& length) {
  length = safe_length(dot(a, a));
  return (T(1) / length) * a;
}

// (2) for one piece
template <class Frames>
REVOLUTE_HD LinkForces<typename Frames::T> segment_forces(const Model& model, const PathSegment& segment,
                                                          const Frames& frames) {
  using T = typename Frames::T;
  LinkForces<T> out;
  out.count = 0;
  const T share(1.0 / segment.divisor);
  const Vector3<T> a = frames.point(segment.link_a, segment.point_a),
                   b = frames.point(segment.link_b, segment.point_b);
  const Vector3<T> origin_a = frames.origin(segment.link_a), origin_b = frames.origin(segment.link_b);
  Vector3<T> at_a = unit(a - b, out.length), at_b = -at_a;
  if (segment.wrap < 0) {
    out.length = share * out.length;
    out.add(segment.link_a, force_at(a - origin_a, share * at_a));
    out.add(segment.link_b, force_at(b - origin_b, share * at_b));
    return out;
  }
  const PathWrap& wrap = model.path_wraps[segment.wrap];
  const Vector3<T> centre = frames.point(wrap.link, wrap.position);
  const Matrix3<T> R = frames.frame(wrap.link, wrap.rotation);
  Vector3<T> side = zero3<T>();
  if (wrap.sided) side = transpose_times(R, frames.point(wrap.side_link, wrap.side) - centre);
  const Bend<T> found = bend(wrap.cylinder, T(wrap.radius), transpose_times(R, a - centre),
                             transpose_times(R, b - centre), wrap.sided, side);
  const Vector3<T> first = centre + R * found.first, second = centre + R * found.second, none = zero3<T>();
  T before, after;
  const Vector3<T> from_a = unit(a - first, before), from_b = unit(b - second, after);
  out.length = share * select(found.bends, before + found.length + after, out.length);
  at_a = share * select(found.bends, from_a, at_a);
  at_b = share * select(found.bends, from_b, at_b);
  out.add(segment.link_a, force_at(a - origin_a, at_a));
  out.add(segment.link_b, force_at(b - origin_b, at_b));
  const Vector3<T> origin = frames.origin(wrap.link);
  out.add(wrap.link, force_at(select(found.bends, first - origin, none), select(found.bends, -at_a, none)));
  out.add(wrap.link, force_at(select(found.bends, second - origin, none), select(found.bends, -at_b, none)));
  return out;
}

// (3)
template <class Frames>
REVOLUTE_HD LinkForces<typename Frames::T> slider_crank_forces(const Transmission& transmission,
                                                               const Frames& frames) {
  using T = typename Frames::T;
  LinkForces<T> out;
  out.count = 0;
  const int crank = transmission.link_a, slider = transmission.link_b;
  const Vector3<T> a = frames.point(crank, transmission.position_a),
                   b = frames.point(slider, transmission.position_b);
  const Vector3<T> axis = frames.frame(slider, transmission.rotation_b).column(2), x = a - b;
  const T along = dot(axis, x), rod(transmission.rod), squared = along * along + rod * rod - dot(x, x);
  const auto reaches = less(T(0), squared);
  const T root = sqrt(select(reaches, squared, T(1))), inverse = select(reaches, T(1) / root, T(0));
  const T ratio = T(1) - along * inverse;
  out.length = along - select(reaches, root, T(0));
  const Vector3<T> by_x = ratio * axis + inverse * x;
  out.add(crank, force_at(a - frames.origin(crank), by_x));
  Force<T> on_slider = force_at(b - frames.origin(slider), -by_x);
  on_slider.n += cross(axis, ratio * x);
  out.add(slider, on_slider);
  return out;
}

// Calls visit(forces) for each group of wrenches of (2) or (3).
template <class Frames, class Visit>
REVOLUTE_HD void visit_forces(const Model& model, const Transmission& transmission, const Frames& frames,
                              const Visit& visit) {
  if (transmission.type == TransmissionType::slider_crank)
    return visit(slider_crank_forces(transmission, frames));
  for (int s = transmission.first; s < transmission.first + transmission.count; ++s)
    visit(segment_forces(model, model.path_segments[s], frames));
}

// Force and torque of a site's gear in world axes, and their points of action.
template <class Real>
struct SiteWrench {
  Matrix3<Real> A;  // axes of the gear
  Vector3<Real> f, n, x_a, x_b, arm_a, arm_b;

  REVOLUTE_HD Force<Real> at(int side) const {
    Force<Real> out = side == 0 ? force_at(arm_a, f) : force_at(arm_b, f);
    out.n += n;
    return side == 0 ? out : -out;
  }
};
template <class Real>
REVOLUTE_HD inline Vector3<Real> gear_vector(const Parameters<Real>& parameters,
                                             const Transmission& transmission, int first) {
  const double* const gear = transmission.gear + first;
  return {first == 0 ? parameters.gear[transmission.actuator] : Real(gear[0]), Real(gear[1]), Real(gear[2])};
}
template <class Real>
REVOLUTE_HD SiteWrench<Real> site_wrench(const Model& model, const Parameters<Real>& parameters,
                                         const Kinematics<Real>& kin, const Transmission& transmission) {
  const FramesAtRest<Real> frames = {model, kin};
  const bool referred = transmission.referred;
  SiteWrench<Real> out;
  out.A = referred ? frames.frame(transmission.link_b, transmission.rotation_b)
                   : frames.frame(transmission.link_a, transmission.rotation_a);
  out.f = out.A * gear_vector(parameters, transmission, 0);
  out.n = out.A * gear_vector(parameters, transmission, 3);
  out.x_a = frames.point(transmission.link_a, transmission.position_a);
  out.x_b = referred ? frames.point(transmission.link_b, transmission.position_b) : zero3<Real>();
  out.arm_a = out.x_a - frames.origin(transmission.link_a);
  out.arm_b = out.x_b - (referred ? frames.origin(transmission.link_b) : zero3<Real>());
  return out;
}
// Rotation vector of the site in the frame of its reference.
template <class Real>
REVOLUTE_HD Vector3<Real> site_rotation(const Model& model, const Kinematics<Real>& kin,
                                        const Transmission& transmission) {
  const FramesAtRest<Real> frames = {model, kin};
  const Matrix3<Real> R = transpose(frames.frame(transmission.link_b, transmission.rotation_b)) *
                          frames.frame(transmission.link_a, transmission.rotation_a);
  // the quaternion from its largest entry
  const Real one(1), w = one + R.m[0] + R.m[4] + R.m[8], x = one + R.m[0] - R.m[4] - R.m[8],
                     y = one - R.m[0] + R.m[4] - R.m[8], z = one - R.m[0] - R.m[4] + R.m[8];
  const Real wx = R.m[7] - R.m[5], wy = R.m[2] - R.m[6], wz = R.m[3] - R.m[1], xy = R.m[3] + R.m[1],
             xz = R.m[2] + R.m[6], yz = R.m[7] + R.m[5];
  const auto by_w = less_equal(one, w), by_x = (!by_w) & less_equal(one, x),
             by_y = (!by_w) & (!by_x) & less_equal(one, y);
  const auto pick = [&](const Real& a, const Real& b, const Real& c, const Real& d) {
    return select(by_w, a, select(by_x, b, select(by_y, c, d)));
  };
  return logarithm(normalized(
      Quaternion<Real>{pick(w, wx, wy, wz), pick(wx, x, xy, xz), pick(wy, xy, y, yz), pick(wz, xz, yz, z)}));
}
// (4): the gear in the joint's axes
template <class Real>
REVOLUTE_HD Vector3<Real> turned_gear(const Parameters<Real>& parameters, const Transmission& transmission,
                                      const Real* quaternion, int first) {
  const Vector3<Real> gear = gear_vector(parameters, transmission, first);
  if (!transmission.in_parent) return gear;
  return transpose_times(rotation_matrix(load_quaternion(quaternion)), gear);
}

}  // namespace detail

// --- forward ------------------------------------------------------------------------------------------------------------

template <class Real>
REVOLUTE_HD void transmission(const Model& model, const Parameters<Real>& parameters,
                              const Kinematics<Real>& kin, const Real* qpos, const Transmission& of,
                              Real& length, Real* J) {
  const TransmissionDofs dofs = dofs_of(model, of);
  length = Real(0);
  for (int i = 0; i < dofs.count; ++i) J[i] = Real(0);
  switch (of.type) {
    case TransmissionType::joints:
      for (int j = of.first; j < of.first + of.count; ++j) {
        const TendonJoint& joint = model.tendon_joints[j];
        length += Real(joint.coefficient) * qpos[joint.qpos];
        for (int i = 0; i < dofs.count; ++i)
          if (dofs.dofs[i] == joint.dof) J[i] += Real(joint.coefficient);
      }
      return;
    case TransmissionType::ball:
    case TransmissionType::free: {
      const bool free = of.type == TransmissionType::free;
      const Real* const quaternion = qpos + of.qpos + (free ? 3 : 0);
      const Vector3<Real> axis = detail::turned_gear(parameters, of, quaternion, free ? 3 : 0);
      J[0] = axis.z;  // descending
      J[1] = axis.y;
      J[2] = axis.x;
      if (!free) {
        length = dot(axis, logarithm(load_quaternion(quaternion)));
        return;
      }
      const Vector3<Real> push = detail::gear_vector(parameters, of, 0);
      J[3] = push.z;
      J[4] = push.y;
      J[5] = push.x;
      return;
    }
    case TransmissionType::site: {
      const detail::SiteWrench<Real> wrench = detail::site_wrench(model, parameters, kin, of);
      const Force<Real> sides[2] = {wrench.at(0), wrench.at(1)};
      for (int i = 0; i < dofs.count; ++i) J[i] = dot(kin.S[dofs.dofs[i]], sides[dofs.sides[i]]);
      if (of.referred)
        length = dot(wrench.f, wrench.x_a - wrench.x_b) +
                 dot(detail::gear_vector(parameters, of, 3), detail::site_rotation(model, kin, of));
      return;
    }
    case TransmissionType::body:  // adhesion.hpp
      return;
    default:
      detail::visit_forces(model, of, detail::FramesAtRest<Real>{model, kin},
                           [&](const detail::LinkForces<Real>& group) {
                             length += group.length;
                             for (int f = 0; f < group.count; ++f)
                               visit_movers(model, dofs, group.link[f],
                                            [&](int k, int i) { J[i] += dot(kin.S[k], group.force[f]); });
                           });
  }
}

template <class Real>
REVOLUTE_HD void transmissions(const Model& model, const Parameters<Real>& parameters,
                               const Kinematics<Real>& kin, const Real* qpos, const Real* qvel,
                               Transmissions<Real>& out) {
  for (int t = 0; t < model.ntransmission; ++t) {
    const Transmission& of = model.transmissions[t];
    Real* const J = out.J + of.entry;
    transmission(model, parameters, kin, qpos, of, out.length[t], J);
    out.velocity[t] = row_product(dofs_of(model, of), J, qvel);
  }
}

// --- adjoint ------------------------------------------------------------------------------------------------------------

namespace detail {

// The adjoint of (2) and (3).
template <class Real, class Bar>
REVOLUTE_HD void forces_adjoint(const Model& model, const Kinematics<Real>& kin, const Transmission& of,
                                const Bar& length_bar, const Bar* J_bar, KinematicsCotangent<Bar>& kin_bar) {
  using T = Directional<Real, Bar>;
  const TransmissionDofs dofs = dofs_of(model, of);
  const auto motion = [&](int link) {
    Motion<Bar> sum = zero_motion<Bar>();
    visit_movers(model, dofs, link, [&](int k, int i) { sum += J_bar[i] * kin.S[k]; });
    return sum;
  };
  const MovingFrames<Real, Bar, decltype(motion)> frames = {{model, kin}, motion};
  visit_forces(model, of, frames, [&](const LinkForces<T>& group) {
    for (int f = 0; f < group.count; ++f) {
      const int link = group.link[f];
      if (is_world(link)) continue;
      const Force<T>& moving = group.force[f];
      const Force<Real> force = value_of(moving);
      const Force<Bar> rate = rate_of(moving);
      if (is_mocap(link)) {  // a mocap body has no joint to pass length_bar on
        *kin_bar.moment_of(link) += rate + length_bar * force;
        continue;
      }
      kin_bar.moment[link] += rate;  // (6)
      kin_bar.moment[link] -= cross_force(motion(link), force);
      visit_movers(model, dofs, link, [&](int k, int i) { kin_bar.S[k] += J_bar[i] * force; });
    }
  });
}

// The adjoint of (5).
template <class Real, class Bar>
REVOLUTE_HD void site_adjoint(const Model& model, const Parameters<Real>& parameters,
                              const Kinematics<Real>& kin, const Transmission& of, const Bar& length_bar,
                              const Bar* J_bar, KinematicsCotangent<Bar>& kin_bar,
                              Parameters<Bar>& parameters_bar) {
  const TransmissionDofs dofs = dofs_of(model, of);
  const SiteWrench<Real> at = site_wrench(model, parameters, kin, of);
  const Force<Real> sides[2] = {at.at(0), at.at(1)};
  Motion<Bar> C[2] = {zero_motion<Bar>(), zero_motion<Bar>()};
  for (int i = 0; i < dofs.count; ++i) {
    const int k = dofs.dofs[i], side = dofs.sides[i];
    C[side] += J_bar[i] * kin.S[k];
    kin_bar.S[k] += J_bar[i] * sides[side];
  }
  const int links[2] = {of.link_a, of.referred ? of.link_b : -1};
  Vector3<Bar> f_bar = C[0].v + cross(C[0].w, at.arm_a) - C[1].v - cross(C[1].w, at.arm_b);
  const Vector3<Bar> n_bar = C[0].w - C[1].w;
  Vector3<Bar> x_bar[2] = {cross(at.f, C[0].w), -cross(at.f, C[1].w)};
  Vector3<Bar> turn[2] = {zero3<Bar>(), zero3<Bar>()};
  if (of.referred) {
    f_bar += length_bar * (at.x_a - at.x_b);
    x_bar[0] += length_bar * at.f;
    x_bar[1] -= length_bar * at.f;
    const Vector3<Bar> r_bar = length_bar * gear_vector(parameters, of, 3);
    const Vector3<Real> r = site_rotation(model, kin, of);
    const Vector3<Bar> turned = at.A * left_jacobian_inverse_times(-r, r_bar);
    turn[0] += turned;
    turn[1] -= turned;
  }
  turn[of.referred ? 1 : 0] += cross(at.f, f_bar) + cross(at.n, n_bar);
  const Vector3<Real> arms[2] = {at.arm_a, at.arm_b};
  for (int side = 0; side < 2; ++side) {
    Force<Bar>* const moment = kin_bar.moment_of(links[side]);
    if (!moment) continue;
    *moment += force_at(arms[side], x_bar[side]);
    moment->n += turn[side];
  }
  parameters_bar.gear[of.actuator] += dot(at.A.column(0), f_bar);
}

// The adjoint of (4).
template <class Real, class Bar>
REVOLUTE_HD void ball_adjoint(const Parameters<Real>& parameters, const Real* qpos, const Transmission& of,
                              const Bar& length_bar, const Bar* J_bar, Bar* qpos_bar,
                              Parameters<Bar>& parameters_bar) {
  const bool free = of.type == TransmissionType::free;
  const Real* const quaternion = qpos + of.qpos + (free ? 3 : 0);
  const int dof = of.dof + (free ? 3 : 0);
  const Vector3<Real> axis = turned_gear(parameters, of, quaternion, free ? 3 : 0);
  Vector3<Bar> axis_bar = {J_bar[2], J_bar[1], J_bar[0]};
  if (!free) {
    const Vector3<Real> r = logarithm(load_quaternion(quaternion));
    axis_bar += length_bar * r;
    add3(qpos_bar + dof, left_jacobian_inverse_times(r, length_bar * axis));
  }
  if (of.in_parent) add3(qpos_bar + dof, cross(axis_bar, axis));
  Bar& gear_bar = parameters_bar.gear[of.actuator];
  if (free)
    gear_bar += J_bar[5];
  else if (of.in_parent)
    gear_bar += (rotation_matrix(load_quaternion(quaternion)) * axis_bar).x;
  else
    gear_bar += axis_bar.x;
}

}  // namespace detail

// Adds to qpos_bar, qvel_bar, kin_bar and parameters_bar; uses up `bar`.
template <class Real, class Bar>
REVOLUTE_HD void transmissions_adjoint(const Model& model, const Parameters<Real>& parameters,
                                       const Kinematics<Real>& kin, const Real* qpos, const Real* qvel,
                                       const Transmissions<Real>& at, TransmissionsCotangent<Bar>& bar,
                                       Bar* qpos_bar, Bar* qvel_bar, KinematicsCotangent<Bar>& kin_bar,
                                       Parameters<Bar>& parameters_bar) {
  for (int t = 0; t < model.ntransmission; ++t) {
    const Transmission& of = model.transmissions[t];
    const TransmissionDofs dofs = dofs_of(model, of);
    const Real* const J = at.row(of);
    Bar* const J_bar = bar.row(of);
    for (int i = 0; i < dofs.count; ++i) J_bar[i] += bar.velocity[t] * qvel[dofs.dofs[i]];
    add_row(dofs, J, bar.velocity[t], qvel_bar);
    const Bar length_bar = bar.length[t];
    switch (of.type) {
      case TransmissionType::joints:
        add_row(dofs, J, length_bar, qpos_bar);
        break;
      case TransmissionType::ball:
      case TransmissionType::free:
        detail::ball_adjoint(parameters, qpos, of, length_bar, J_bar, qpos_bar, parameters_bar);
        break;
      case TransmissionType::site:
        detail::site_adjoint(model, parameters, kin, of, length_bar, J_bar, kin_bar, parameters_bar);
        break;
      case TransmissionType::body:  // adhesion.hpp
        break;
      default:
        add_row(dofs, J, length_bar, qpos_bar);  // J is the derivative of l
        detail::forces_adjoint(model, kin, of, length_bar, J_bar, kin_bar);
    }
  }
}

}  // namespace revolute
