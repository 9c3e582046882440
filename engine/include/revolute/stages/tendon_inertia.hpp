// Armature of tendons: a mass m that moves with the length's rate J qvel. It adds to the mass matrix and to the bias forces:
//   M += J' m J,   C += J' m c,   c = dJ/dt qvel                                              (1)
// As in MuJoCo, M gets only entries between degrees of freedom on one path to the root. J of a fixed tendon is constant, so
// c = 0. A spatial tendon with armature does not wrap. Each piece from a to b, of length L and direction u, gives
//   c = u.(a_b - a_a) + (|v|^2 - (u.v)^2)/L,   v = v_b - v_a,                                 (2)
// with accelerations for qacc = 0 and without gravity, divided by its pulley's number.
// Reads links, transmissions, qvel. Source: MuJoCo, Computation, section Armature of tendons; mj_tendonDot.
//
// Adjoint, from w of acceleration.hpp:  L = -m (J w)(J a + c), with the products of (1) for J'J:
//   c_bar = -m (J w),   J_bar -= m c w,   and square_adjoint() for J'J                        (3)
#pragma once

#include "revolute/stages/acceleration.hpp"
#include "revolute/stages/actuation.hpp"

namespace revolute {

REVOLUTE_HD inline bool has_inertia(const Model& model, int tendon) {
  return model.tendon_inertia && model.tendons[tendon].armature > 0;
}
// Whether a tendon has the force of (2).
REVOLUTE_HD inline bool has_bending_inertia(const Model& model, int tendon) {
  return has_inertia(model, tendon) && model.transmissions[tendon].type == TransmissionType::path;
}
REVOLUTE_HD inline bool any_bending_inertia(const Model& model) {
  for (int t = 0; model.tendon_inertia && t < model.ntendon; ++t)
    if (has_bending_inertia(model, t)) return true;
  return false;
}

template <class Real>
struct TendonInertia {
  Motion<Real>* A;  // [nv] accelerations of the links for qacc = 0, without gravity
  Real* rate;       // [ntendon] c

  TendonInertia(const Model& model, Arena& arena)
      : A(arena.take<Motion<Real>>(any_bending_inertia(model) ? model.nv : 0)),
        rate(arena.take<Real>(any_bending_inertia(model) ? model.ntendon : 0)) {}
};

// Adds J' m J to the mass matrix.
template <class Real>
REVOLUTE_HD void add_tendon_inertia(const Model& model, const Transmissions<Real>& at, MassMatrix<Real>& M) {
  for (int t = 0; model.tendon_inertia && t < model.ntendon; ++t) {
    const Transmission& of = model.transmissions[t];
    const Real* const J = at.row(of);
    const Real armature(model.tendons[t].armature);
    visit_coupling(model, dofs_of(model, of),
                   [&](int i, int j, int place) { M.entries[place] += armature * J[i] * J[j]; });
  }
}

namespace detail {

// A point of a link with its velocity and its acceleration.
template <class Real>
struct MovingPoint {
  Vector3<Real> r, p, v, a;  // r: from the reference point
};
template <class Real>
REVOLUTE_HD inline MovingPoint<Real> moving_point(const Model& model, const Kinematics<Real>& kin,
                                                  const Motion<Real>* A, int link, const double* local) {
  MovingPoint<Real> out;
  out.p = world_point(model, kin, link, local);
  out.r = out.v = out.a = zero3<Real>();
  if (link < 0) return out;
  const Motion<Real>& V = kin.V[link];
  out.r = out.p - tree_origin(model, kin, link);
  out.v = V.v + cross(V.w, out.r);
  out.a = A[link].v + cross(A[link].w, out.r) + cross(V.w, out.v);
  return out;
}
// The reverse: the cotangents of p, v and a, on a link.
template <class Real, class Bar>
REVOLUTE_HD inline void moving_point_adjoint(const Kinematics<Real>& kin, const Motion<Real>* A, int link,
                                             const MovingPoint<Real>& at, Vector3<Bar> p_bar,
                                             Vector3<Bar> v_bar, const Vector3<Bar>& a_bar, Force<Bar>* V_bar,
                                             Force<Bar>* A_bar, KinematicsCotangent<Bar>& kin_bar) {
  if (is_world(link)) return;
  if (link >= 0) {
    const Motion<Real>& V = kin.V[link];
    A_bar[link] += Force<Bar>{cross(at.r, a_bar), a_bar};
    p_bar += cross(a_bar, A[link].w);
    v_bar += cross(a_bar, V.w);
    V_bar[link] += Force<Bar>{cross(at.v, a_bar) + cross(at.r, v_bar), v_bar};
    p_bar += cross(v_bar, V.w);
  }
  const Vector3<Real> arm = link >= 0 ? at.r : at.p;
  *kin_bar.moment_of(link) += Force<Bar>{cross(arm, p_bar), p_bar};
}

template <class Real>
struct MovingPiece {
  MovingPoint<Real> a, b;
  Vector3<Real> u, v, acceleration;
  Real inverse_length, stretch, rate;  // stretch: u.v; rate: (2)
};
template <class Real>
REVOLUTE_HD MovingPiece<Real> moving_piece(const Model& model, const Kinematics<Real>& kin,
                                           const Motion<Real>* A, const PathSegment& segment) {
  MovingPiece<Real> out;
  out.a = moving_point(model, kin, A, segment.link_a, segment.point_a);
  out.b = moving_point(model, kin, A, segment.link_b, segment.point_b);
  Real length;
  out.u = direction(out.b.p - out.a.p, length, out.inverse_length);
  out.v = out.b.v - out.a.v;
  out.acceleration = out.b.a - out.a.a;
  out.stretch = dot(out.u, out.v);
  out.rate =
      dot(out.u, out.acceleration) + (dot(out.v, out.v) - out.stretch * out.stretch) * out.inverse_length;
  return out;
}

// Starts from the cotangent y of (2).
template <class Real, class Bar>
REVOLUTE_HD void moving_piece_adjoint(const Kinematics<Real>& kin, const Motion<Real>* A,
                                      const PathSegment& segment, const MovingPiece<Real>& piece,
                                      const Bar& y, Force<Bar>* V_bar, Force<Bar>* A_bar,
                                      KinematicsCotangent<Bar>& kin_bar) {
  const Real inverse = piece.inverse_length, two(2);
  const Vector3<Real> across = piece.v - piece.stretch * piece.u;
  const Vector3<Bar> a_bar = y * piece.u, v_bar = y * ((two * inverse) * across);
  const Vector3<Real> by_u = piece.acceleration - (two * piece.stretch * inverse) * piece.v;
  const Vector3<Bar> p_bar =
      y * (inverse * (by_u - dot(by_u, piece.u) * piece.u) -
           ((dot(piece.v, piece.v) - piece.stretch * piece.stretch) * inverse * inverse) * piece.u);
  moving_point_adjoint(kin, A, segment.link_b, piece.b, p_bar, v_bar, a_bar, V_bar, A_bar, kin_bar);
  moving_point_adjoint(kin, A, segment.link_a, piece.a, -p_bar, -v_bar, -a_bar, V_bar, A_bar, kin_bar);
}

}  // namespace detail

// (2): c of all tendons.
template <class Real>
REVOLUTE_HD void tendon_inertia(const Model& model, const Kinematics<Real>& kin, const Real* qvel,
                                TendonInertia<Real>& out) {
  link_accelerations(model, zero3<Real>(), kin, qvel, static_cast<const Real*>(nullptr), out.A);
  for (int t = 0; t < model.ntendon; ++t) {
    out.rate[t] = Real(0);
    if (!has_bending_inertia(model, t)) continue;
    const Transmission& of = model.transmissions[t];
    for (int s = of.first; s < of.first + of.count; ++s) {
      const PathSegment& segment = model.path_segments[s];
      out.rate[t] += Real(1.0 / segment.divisor) * detail::moving_piece(model, kin, out.A, segment).rate;
    }
  }
}
// (1): force -= J' m c
template <class Real>
REVOLUTE_HD void subtract_tendon_bias(const Model& model, const Transmissions<Real>& at,
                                      const TendonInertia<Real>& inertia, Real* force) {
  for (int t = 0; t < model.ntendon; ++t) {
    if (!has_bending_inertia(model, t)) continue;
    const Transmission& of = model.transmissions[t];
    const Real push = -(Real(model.tendons[t].armature) * inertia.rate[t]);
    add_row(dofs_of(model, of), at.row(of), push, force);
  }
}

// (3). `p` and `x` are those of the integrator, or null. A_bar [nv] is scratch. Adds to J_bar, V_bar, qvel_bar and kin_bar.
template <class Real, class Bar>
REVOLUTE_HD void tendon_inertia_adjoint(const Model& model, const Kinematics<Real>& kin, const Real* qvel,
                                        const Transmissions<Real>& at, const TendonInertia<Real>& inertia,
                                        const Bar* w, const Real* a, const Bar* p, const Real* x,
                                        Force<Bar>* A_bar, TransmissionsCotangent<Bar>& bar,
                                        Force<Bar>* V_bar, Bar* qvel_bar, KinematicsCotangent<Bar>& kin_bar) {
  for (int k = 0; k < model.nv; ++k) A_bar[k] = zero_force<Bar>();
  for (int t = 0; t < model.ntendon; ++t) {
    if (!has_bending_inertia(model, t)) continue;
    const Transmission& of = model.transmissions[t];
    const TransmissionDofs dofs = dofs_of(model, of);
    const Real* const J = at.row(of);
    Bar* const J_bar = bar.row(of);
    const Real m(model.tendons[t].armature);
    square_adjoint(model, dofs, J, m, w, a, J_bar);
    if (p) square_adjoint(model, dofs, J, m, p, x, J_bar);
    for (int i = 0; i < dofs.count; ++i) J_bar[i] -= (m * inertia.rate[t]) * w[dofs.dofs[i]];
    const Bar rate_bar = -m * row_product(dofs, J, w);
    for (int s = of.first; s < of.first + of.count; ++s) {
      const PathSegment& segment = model.path_segments[s];
      const detail::MovingPiece<Real> piece = detail::moving_piece(model, kin, inertia.A, segment);
      const Bar y = Real(1.0 / segment.divisor) * rate_bar;
      detail::moving_piece_adjoint(kin, inertia.A, segment, piece, y, V_bar, A_bar, kin_bar);
    }
  }
  velocity_products_adjoint(model, kin, qvel, A_bar, qvel_bar, kin_bar.S, V_bar);
}

}  // namespace revolute
