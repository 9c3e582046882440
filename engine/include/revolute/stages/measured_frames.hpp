// Frames fixed in links: pose, velocity and acceleration, and their adjoints.
//
// With r from the reference point of the tree to the frame's origin, V = (w; v_0) and A of the link:
//   v = v_0 + w x r,   a = a_0 + alpha x r + w x v                                            (1)
// A includes the acceleration -g of the world (acceleration.hpp), as MuJoCo's sensors measure it.
// Adjoint: a cotangent p_bar of the origin and a moment `turn` (d loss = turn . small rotation of the frame) act on the link as
// the force (r x p_bar + turn; p_bar) in KinematicsCotangent::moment. For (1):
//   V_bar += (w_bar + r x v_bar; v_bar),   p_bar += v_bar x w                                 (2)
//   A_bar += (alpha_bar + r x a_bar; a_bar),   p_bar += a_bar x alpha,   v_bar += a_bar x w,   w_bar += v x a_bar   (3)
#pragma once

#include "revolute/model/joints/ball.hpp"
#include "revolute/model/probe.hpp"
#include "revolute/stages/measurement.hpp"

namespace revolute {

template <class Real>
struct MeasuredFrame {
  Vector3<Real> r, p;  // r: from the reference point; p: in the world
  Matrix3<Real> R;
};

template <class Real>
struct FrameMotion {
  Vector3<Real> v, w, a, alpha;
};

template <class Real>
struct FrameCotangent {
  Vector3<Real> p, turn, v, w, a, alpha;
};
template <class Real>
REVOLUTE_HD inline FrameCotangent<Real> zero_frame_cotangent() {
  const Vector3<Real> o = zero3<Real>();
  return {o, o, o, o, o, o};
}

template <class Real>
REVOLUTE_HD MeasuredFrame<Real> measured_frame(const Model& model, const Parameters<Real>& parameters,
                                               const Kinematics<Real>& kin, const Place& place) {
  Vector3<Real> local = vector3<Real>(place.position);
  if (place.mass_centre) local = mass_centre_in_link(model, parameters, place.body);
  const Matrix3<Real> rotation = matrix3<Real>(place.rotation);
  if (is_world(place.link)) return {local, local, rotation};
  const Placement<Real>& link = placement(kin, place.link);
  const Vector3<Real> r = link.p + link.R * local;
  return {r, tree_origin(model, kin, place.link) + r, link.R * rotation};
}

// (1); `A` may be null
template <class Real>
REVOLUTE_HD FrameMotion<Real> frame_motion(const Kinematics<Real>& kin, const Vector3<Real>& gravity,
                                           const Motion<Real>* A, const Place& place,
                                           const MeasuredFrame<Real>& frame) {
  const Vector3<Real> o = zero3<Real>();
  if (place.link < 0) return {o, o, -gravity, o};
  const Motion<Real>& V = kin.V[place.link];
  FrameMotion<Real> out = {V.v + cross(V.w, frame.r), V.w, o, o};
  if (!A) return out;
  out.alpha = A[place.link].w;
  out.a = A[place.link].v + cross(out.alpha, frame.r) + cross(out.w, out.v);
  return out;
}

// The quaternion of a place, by MuJoCo's products along the joints.
template <class Real>
REVOLUTE_HD Quaternion<Real> place_quaternion(const Model& model, const Parameters<Real>& parameters,
                                              const Probes& probes, const Place& place, const Real* qpos) {
  const auto constant = [](const double* q) {
    return Quaternion<Real>{Real(q[0]), Real(q[1]), Real(q[2]), Real(q[3])};
  };
  Quaternion<Real> out = {Real(1), Real(0), Real(0), Real(0)};
  if (is_mocap(place.root))
    out = load_quaternion(parameters.input(Input::mocap_quat) + 4 * mocap_index(place.root));
  for (int i = 0; i < place.joints; ++i) {
    const Joint& joint = model.joints[probes.joints[place.first_joint + i]];
    if (joint.type == JointType::free) {
      out = load_quaternion(qpos + joint.qpos + 3);
      continue;
    }
    out = out * constant(joint.orientation);
    if (joint.type == JointType::ball) out = out * load_quaternion(qpos + joint.qpos);
    if (joint.type == JointType::revolute) {
      Real s, c;
      sincos(Real(0.5) * (qpos[joint.qpos] - Real(joint.reference)), s, c);
      out = out * Quaternion<Real>{c, Real(0), Real(0), s};
    }
  }
  return normalized(out * constant(place.orientation));
}

// (2) and (3); uses up `bar`. `A` may be null.
template <class Real>
REVOLUTE_HD void frame_adjoint(const Model& model, const Kinematics<Real>& kin, const Motion<Real>* A,
                               const Place& place, const MeasuredFrame<Real>& frame,
                               const FrameMotion<Real>& motion, FrameCotangent<Real>& bar,
                               LinkCotangents<Real>& out, Parameters<Real>& parameters_bar) {
  if (place.link >= 0) {
    if (A) {
      out.A[place.link] += Force<Real>{bar.alpha + cross(frame.r, bar.a), bar.a};
      bar.p += cross(bar.a, motion.alpha);
      bar.v += cross(bar.a, motion.w);
      bar.w += cross(motion.v, bar.a);
    }
    out.V[place.link] += Force<Real>{bar.w + cross(frame.r, bar.v), bar.v};
    bar.p += cross(bar.v, motion.w);
  } else {
    *parameters_bar.gravity -= bar.a;
  }
  if (Force<Real>* const moment = out.kinematics.moment_of(place.link))
    *moment += Force<Real>{cross(frame.r, bar.p) + bar.turn, bar.p};
  if (!place.mass_centre) return;
  const Vector3<Real> in_link =
      is_world(place.link) ? bar.p : transpose_times(placement(kin, place.link).R, bar.p);
  add3(parameters_bar.ipos + 3 * place.body,
       transpose_times(matrix3<Real>(model.bodies[place.body].rotation), in_link));
}

}  // namespace revolute
