// The pull of spatial tendons on the bodies of a subtree, for sensors of force and torque. A tendon pulls with
//   f = spring + damper + actuators + limits, dry friction and equality - armature l''          (1)
// along its length l, so the bodies at its points get the wrenches f dl/dx (transmission.hpp). l'' is that of tendon_inertia.hpp
// with the accelerations of the links. Integers of the probe: for each piece of a path whether the bodies at its first point
// (1), its second point (2) and its surface (4) are in the subtree; none: the model has no paths.
//
// Adjoint, from a motion M that the subtree's wrenches are taken along: f_bar = -M.(dl/dx of the subtree), and for the points
// the second derivatives of transmission.hpp (6), along M for the bodies of the subtree and zero for others.
// Source: MuJoCo, mj_rnePostConstraint.
#pragma once

#include "revolute/stages/measured_drives.hpp"
#include "revolute/stages/measured_rays.hpp"

namespace revolute::detail {

// l'' of a piece, and the piece; `at.A` includes the acceleration -g of the world.
template <class Real>
REVOLUTE_HD MovingPiece<Real> accelerated_piece(const Model& model, const Parameters<Real>& parameters,
                                                const Measurement<Real>& at, const PathSegment& segment) {
  MovingPiece<Real> out = moving_piece(model, *at.kinematics, at.A, segment);
  const double fixed = (segment.link_a < 0 ? 1.0 : 0.0) - (segment.link_b < 0 ? 1.0 : 0.0);
  const Vector3<Real> world = Real(fixed) * *parameters.gravity;
  out.acceleration += world;
  out.rate += dot(out.u, world);
  return out;
}
// Calls visit(factor, its derivative by the tendon's length, force) for the constraints that act on a tendon's length.
template <class Real, class Visit>
REVOLUTE_HD void visit_tendon_constraints(const Model& model, const Measurement<Real>& at, int t,
                                          const Visit& visit) {
  visit_constraints(model, at, [&](const ConstraintView& c) {
    if (c.source == RowSource::tendon_limit && c.index / 2 == t)
      visit(c.row, Real(limit_sign(c.index % 2)), Real(0));
    if (c.source == RowSource::tendon_friction && c.index == t) visit(c.row, Real(1), Real(0));
    if (c.source != RowSource::equality || !is_of_tendons(model.equalities[c.index])) return;
    const Equality& equality = model.equalities[c.index];
    Real slope, curvature;
    tendon_violation(SoftContext<Real>{Real(0), nullptr, nullptr, nullptr, &at.transmissions}, equality,
                     slope, curvature);
    if (equality.tendon_a == t) visit(c.row, Real(1), Real(0));
    if (equality.tendon_b == t) visit(c.row, -slope, -curvature);
  });
}
// (1)
template <class Real>
REVOLUTE_HD Real tendon_pull(const Model& model, const Parameters<Real>& parameters, int t, const Real* qpos,
                             const Real* qvel, const Measurement<Real>& at) {
  const Tendon& tendon = model.tendons[t];
  const Transmission& of = model.transmissions[t];
  Real pulls;
  Real f = Real(tendon.stiffness) * tendon_stretch(tendon, at.transmissions.length[t], pulls) -
           Real(tendon.damping) * at.transmissions.velocity[t];
  for (int a = 0; a < model.nu; ++a)
    if (model.actuators[a].transmission == t)
      f += (model.actuators[a].geared ? parameters.gear[a] : Real(1)) *
           measured_actuator_force(model, parameters, a, qpos, qvel, at);
  visit_tendon_constraints(model, at, t,
                           [&](int row, const Real& factor, const Real&) { f += factor * at.force[row]; });
  for (int s = of.first; has_inertia(model, t) && s < of.first + of.count; ++s) {
    const PathSegment& segment = model.path_segments[s];
    f -= Real(tendon.armature / segment.divisor) * accelerated_piece(model, parameters, at, segment).rate;
  }
  return f;
}
template <class Real>
REVOLUTE_HD void tendon_pull_adjoint(const Model& model, const Parameters<Real>& parameters, int t,
                                     const Real* qpos, const Real* qvel, const Measurement<Real>& at,
                                     const Real& y, MeasurementAdjointWorkspace<Real>& ws,
                                     const InputCotangents<Real>& inputs) {
  const Tendon& tendon = model.tendons[t];
  const Transmission& of = model.transmissions[t];
  Real pulls;
  tendon_stretch(tendon, at.transmissions.length[t], pulls);
  ws.transmissions.length[t] -= Real(tendon.stiffness) * pulls * y;
  ws.transmissions.velocity[t] -= Real(tendon.damping) * y;
  for (int a = 0; a < model.nu; ++a) {
    const Actuator& actuator = model.actuators[a];
    if (actuator.transmission != t) continue;
    ws.actuator_force[a] += (actuator.geared ? parameters.gear[a] : Real(1)) * y;
    if (actuator.geared)
      inputs.parameters->gear[a] += measured_actuator_force(model, parameters, a, qpos, qvel, at) * y;
  }
  visit_tendon_constraints(model, at, t, [&](int row, const Real& factor, const Real& slope) {
    ws.force_bar[row] += factor * y;
    ws.transmissions.length[t] += slope * at.force[row] * y;
  });
  for (int s = of.first; has_inertia(model, t) && s < of.first + of.count; ++s) {
    const PathSegment& segment = model.path_segments[s];
    const MovingPiece<Real> piece = accelerated_piece(model, parameters, at, segment);
    const Real rate_bar = -Real(tendon.armature / segment.divisor) * y;
    const double fixed = (segment.link_a < 0 ? 1.0 : 0.0) - (segment.link_b < 0 ? 1.0 : 0.0);
    *inputs.parameters->gravity += (Real(fixed) * rate_bar) * piece.u;
    moving_piece_adjoint(*at.kinematics, at.A, segment, piece, rate_bar, ws.links.V, ws.links.A,
                         ws.links.kinematics);
  }
}

// Calls visit(tendon, piece of its path, flags) for the pieces at bodies of the subtree.
template <class Visit>
REVOLUTE_HD void visit_pieces(const Model& model, const Probes& probes, const Probe& probe,
                              const Visit& visit) {
  for (int t = 0; probe.integers > 0 && t < model.ntendon; ++t) {
    const Transmission& of = model.transmissions[t];
    if (of.type != TransmissionType::path) continue;
    for (int s = of.first; s < of.first + of.count; ++s)
      if (const int flags = probes.integers[probe.first_integer + s]) visit(t, model.path_segments[s], flags);
  }
}
// Whether the f-th force of a piece (transmission.hpp) acts in the subtree: first point, second point, surface twice.
REVOLUTE_HD inline bool acts_inside(int flags, int f) { return flags >> (f < 2 ? f : 2) & 1; }

// The derivative of a tendon's length by the subtree, as a wrench about the world's origin.
template <class Real>
REVOLUTE_HD Force<Real> piece_wrench(const Model& model, const Kinematics<Real>& kin,
                                     const PathSegment& segment, int flags) {
  const LinkForces<Real> group = segment_forces(model, segment, FramesAtRest<Real>{model, kin});
  Force<Real> out = zero_force<Real>();
  for (int f = 0; f < group.count; ++f)
    if (acts_inside(flags, f)) out += at_world_origin(tree_origin(model, kin, group.link[f]), group.force[f]);
  return out;
}

// Adds the cotangents of the points, of `weight` times M.(piece_wrench).
template <class Real>
REVOLUTE_HD void piece_wrench_adjoint(const Model& model, const Kinematics<Real>& kin,
                                      const PathSegment& segment, int flags, const Motion<Real>& M,
                                      const Real& weight, KinematicsCotangent<Real>& kin_bar) {
  using T = Directional<Real, Real>;
  const FramesAtRest<Real> at = {model, kin};
  const int wrap = segment.wrap < 0 ? -1 : model.path_wraps[segment.wrap].link;
  // the bodies of the subtree move with M about the world's origin
  const auto motion = [&](int link) {
    const bool inside = (link == segment.link_a && (flags & 1)) || (link == segment.link_b && (flags & 2)) ||
                        (segment.wrap >= 0 && link == wrap && (flags & 4));
    return inside ? at_reference(at.origin(link), M) : zero_motion<Real>();
  };
  const MovingFrames<Real, Real, decltype(motion)> frames = {at, motion};
  const LinkForces<T> group = segment_forces(model, segment, frames);
  for (int f = 0; f < group.count; ++f) {
    Force<Real>* const moment = kin_bar.moment_of(group.link[f]);
    if (!moment) continue;
    const Force<T>& moving = group.force[f];
    *moment += weight * (rate_of(moving) + -cross_force(motion(group.link[f]), value_of(moving)));
  }
}

}  // namespace revolute::detail
