// A medium's resistance to bodies.
//
// Each body, or each ellipsoid, that the medium resists has axes A at a point x of its link. Its velocity in the medium along
// these axes is u = (w, v). The medium then exerts g(u) = (n, f):
//   a body's inertia box, at the mass centre:  f_i = -(a + b_i |v_i|) v_i,   n_i = -(c + d_i |w_i|) w_i                     (1)
//     a and c come from viscosity, b and d from density and the sides of the box (parameter_map.hpp)
//   ellipsoids:  ellipsoid_forces.hpp                                                         (2)
// The integrators implicitfast and implicit add to their matrix
//   E = -h sum of J' (dg/du) J,   J maps generalized velocities to u;                         (3)
// implicitfast takes the symmetric part of dg/du.
// Source: MuJoCo, Computation, section Passive forces; mjd_passive_vel.
//
// Adjoint. With y = J tau_bar, (1) and (2) give L = y.g(u), so u_bar = (dg/du)' y. For (3), -p'E a^ gives
//   L = h y.(dg/du) x,   y = J p,  x = J a^                                                   (4)
// L depends on the configuration through y, x and u. `pull_back_velocity` pulls each of these velocities back.
#pragma once

#include "revolute/stages/ellipsoid_forces.hpp"
#include "revolute/stages/link_points.hpp"
#include "revolute/stages/mass_matrix.hpp"

namespace revolute {

REVOLUTE_HD inline bool any_medium(const Model& model) { return model.nmedium + model.nellipsoid > 0; }
// Whether the model has (3).
REVOLUTE_HD inline bool implicit_medium(const Model& model) {
  return any_medium(model) &&
         (model.integrator == Integrator::implicitfast || model.integrator == Integrator::implicit);
}

namespace detail {

// The place at which the medium acts on a link.
template <class Real>
struct MediumPlace {
  int link;
  Matrix3<Real> A;
  Vector3<Real> arm;  // from the reference point to the place

  // The velocity of the place along its axes, relative to the medium; `V` is that of the link.
  template <class X>
  REVOLUTE_HD Motion<X> local(const Motion<X>& V, const double* wind) const {
    Vector3<X> moved = V.v + cross(V.w, arm);
    if (wind) moved = moved - vector3<X>(wind);
    return {transpose_times(A, V.w), transpose_times(A, moved)};
  }
  // Moves a local wrench to the reference point.
  template <class X>
  REVOLUTE_HD Force<X> wrench(const Force<X>& g) const {
    Force<X> out = force_at(arm, A * g.f);
    out.n += A * g.n;
    return out;
  }
};
template <class Real>
REVOLUTE_HD MediumPlace<Real> place_of_box(const Model& model, const Parameters<Real>& parameters,
                                           const Kinematics<Real>& kin, int i) {
  const int link = model.medium_bodies[i].link;
  const Placement<Real>& at = kin.links[link];
  return {link, at.R * matrix3<Real>(model.medium_bodies[i].axes), at.p + at.R * parameters.drag[i].centre};
}
template <class Real>
REVOLUTE_HD MediumPlace<Real> place_of_ellipsoid(const Model& model, const Kinematics<Real>& kin, int i) {
  const MediumEllipsoid& body = model.medium_ellipsoids[i];
  const Placement<Real>& at = kin.links[body.link];
  return {body.link, at.R * matrix3<Real>(body.axes), at.p + at.R * vector3<Real>(body.position)};
}

// (1): the coefficients of component j, and the force.
template <class Real>
REVOLUTE_HD inline const Real& viscous_of(const MediumDrag<Real>& drag, int j) {
  return drag.viscous[j < 3 ? 1 : 0];
}
template <class Real>
REVOLUTE_HD inline Real& viscous_of(MediumDrag<Real>& drag, int j) {
  return drag.viscous[j < 3 ? 1 : 0];
}
template <class Drag>
REVOLUTE_HD inline auto& square_of(Drag& drag, int j) {
  auto& half = j < 3 ? drag.torque : drag.force;
  return j % 3 == 0 ? half.x : j % 3 == 1 ? half.y : half.z;
}
template <class Real>
REVOLUTE_HD Force<Real> box_force(const MediumDrag<Real>& drag, const Motion<Real>& u) {
  Force<Real> out;
  for (int j = 0; j < 6; ++j) {
    const Real& v = component(u, j);
    component(out, j) = -(viscous_of(drag, j) + square_of(drag, j) * abs(v)) * v;
  }
  return out;
}
// -dg_j/du_j
template <class Real>
REVOLUTE_HD inline Real box_slope(const MediumDrag<Real>& drag, const Motion<Real>& u, int j) {
  return viscous_of(drag, j) + Real(2) * square_of(drag, j) * abs(component(u, j));
}

// Adds the cotangent u_bar of local(V): to `twist_bar` of the twist, to the link's moment, and to the arm's cotangent.
template <class Real, class X, class Bar>
REVOLUTE_HD void pull_back_velocity(const MediumPlace<Real>& place, const Motion<X>& V, const double* wind,
                                    const Force<Bar>& u_bar, Force<Bar>& twist_bar, Force<Bar>& moment,
                                    Vector3<Bar>& arm_bar) {
  const Vector3<Bar> turned = place.A * u_bar.n, moved = place.A * u_bar.f;
  Vector3<X> velocity = V.v + cross(V.w, place.arm);
  if (wind) velocity = velocity - vector3<X>(wind);
  twist_bar += place.wrench(u_bar);
  const Vector3<Bar> arm = cross(moved, V.w);
  arm_bar += arm;
  moment += force_at(place.arm, arm);
  moment.n += cross(moved, velocity) + cross(turned, V.w);
}

template <class A, class B>
REVOLUTE_HD inline Combined<A, B> product(const Motion<A>& y, const Force<B>& g) {
  return dot(y.w, g.n) + dot(y.v, g.f);
}

}  // namespace detail

// Adds the medium's wrenches on links.
template <class Real>
REVOLUTE_HD void medium_wrenches(const Model& model, const Parameters<Real>& parameters,
                                 const Kinematics<Real>& kin, Force<Real>* out) {
  for (int i = 0; i < model.nmedium; ++i) {
    const detail::MediumPlace<Real> place = detail::place_of_box(model, parameters, kin, i);
    const Motion<Real> u = place.local(kin.V[place.link], model.wind);
    out[place.link] += place.wrench(detail::box_force(parameters.drag[i], u));
  }
  for (int i = 0; i < model.nellipsoid; ++i) {
    const detail::MediumPlace<Real> place = detail::place_of_ellipsoid(model, kin, i);
    const Motion<Real> u = place.local(kin.V[place.link], model.wind);
    out[place.link] += place.wrench(ellipsoid_force(model.medium_ellipsoids[i], u));
  }
}

// Starts from the cotangent of tau; T is scratch. Adds to F_v (cotangents of the links' velocities), kin_bar and
// parameters_bar. `wrenches` has the wrenches on each link and those beyond it.
template <class Real, class Bar>
REVOLUTE_HD void medium_adjoint(const Model& model, const Parameters<Real>& parameters,
                                const Kinematics<Real>& kin, const Force<Real>* wrenches, const Bar* tau_bar,
                                Motion<Bar>* T, Force<Bar>* F_v, KinematicsCotangent<Bar>& kin_bar,
                                Parameters<Bar>& parameters_bar) {
  if (!any_medium(model)) return;
  link_velocities(model, kin.S, tau_bar, T);
  for (int k = 0; k < model.nv; ++k) kin_bar.S[k] += tau_bar[k] * wrenches[k];
  const auto pull_back = [&](const detail::MediumPlace<Real>& place, const Force<Real>& g,
                             const Force<Bar>& u_bar, Vector3<Bar>& arm_bar) {
    Force<Bar>& moment = kin_bar.moment[place.link];
    detail::pull_back_velocity(place, kin.V[place.link], model.wind, u_bar, F_v[place.link], moment, arm_bar);
    // y.g by the place: g turns with the axes and moves with the arm
    const Vector3<Real> f = place.A * g.f, n = place.A * g.n;
    const Motion<Bar>& Z = T[place.link];
    const Vector3<Bar> arm = cross(f, Z.w);
    arm_bar += arm;
    moment += force_at(place.arm, arm);
    moment.n += cross(f, Z.v + cross(Z.w, place.arm)) + cross(n, Z.w);
  };
  for (int i = 0; i < model.nmedium; ++i) {
    const detail::MediumPlace<Real> place = detail::place_of_box(model, parameters, kin, i);
    const MediumDrag<Real>& drag = parameters.drag[i];
    MediumDrag<Bar>& drag_bar = parameters_bar.drag[i];
    const Motion<Real> u = place.local(kin.V[place.link], model.wind);
    const Motion<Bar> y = place.local(T[place.link], nullptr);
    Force<Bar> u_bar;
    for (int j = 0; j < 6; ++j) {
      const Real& v = component(u, j);
      const Bar& of_y = component(y, j);
      detail::viscous_of(drag_bar, j) -= v * of_y;
      detail::square_of(drag_bar, j) -= (abs(v) * v) * of_y;
      component(u_bar, j) = -detail::box_slope(drag, u, j) * of_y;
    }
    Vector3<Bar> arm_bar = zero3<Bar>();
    pull_back(place, detail::box_force(drag, u), u_bar, arm_bar);
    drag_bar.centre += transpose_times(kin.links[place.link].R, arm_bar);
  }
  for (int i = 0; i < model.nellipsoid; ++i) {
    const MediumEllipsoid& body = model.medium_ellipsoids[i];
    const detail::MediumPlace<Real> place = detail::place_of_ellipsoid(model, kin, i);
    const Motion<Real> u = place.local(kin.V[place.link], model.wind);
    const Motion<Bar> y = place.local(T[place.link], nullptr);
    Force<Bar> u_bar;
    for (int j = 0; j < 6; ++j) component(u_bar, j) = detail::product(y, ellipsoid_slope(body, u, j));
    Vector3<Bar> arm_bar = zero3<Bar>();
    pull_back(place, ellipsoid_force(body, u), u_bar, arm_bar);
  }
}

// --- implicit integrators (3) -------------------------------------------------------------------------------------------

namespace detail {

// -dg/du, column by column.
template <class Real>
struct MediumSlope {
  Force<Real> column[6];

  template <class X>
  REVOLUTE_HD Force<Combined<Real, X>> times(const Motion<X>& x) const {
    Force<Combined<Real, X>> out = zero_force<Combined<Real, X>>();
    for (int j = 0; j < 6; ++j) out += component(x, j) * column[j];
    return out;
  }
};
template <class Real>
REVOLUTE_HD MediumSlope<Real> slope_of_box(const MediumDrag<Real>& drag, const Motion<Real>& u) {
  MediumSlope<Real> out;
  for (int j = 0; j < 6; ++j) {
    out.column[j] = zero_force<Real>();
    component(out.column[j], j) = box_slope(drag, u, j);
  }
  return out;
}
template <class Real>
REVOLUTE_HD MediumSlope<Real> slope_of_ellipsoid(const Model& model, const MediumEllipsoid& body,
                                                 const Motion<Real>& u) {
  MediumSlope<Real> slope, out;
  for (int j = 0; j < 6; ++j) slope.column[j] = -ellipsoid_slope(body, u, j);
  if (model.integrator != Integrator::implicitfast) return slope;
  const Real half(0.5);
  for (int j = 0; j < 6; ++j)
    for (int i = 0; i < 6; ++i)
      component(out.column[j], i) = half * (component(slope.column[j], i) + component(slope.column[i], j));
  return out;
}

}  // namespace detail

// Adds (3) to a matrix with the rows of the mass matrix; `upper` holds the entries on the other side of the diagonal, or is
// null if the matrix is symmetric.
template <class Real>
REVOLUTE_HD void add_medium_slopes(const Model& model, const Parameters<Real>& parameters,
                                   const Kinematics<Real>& kin, Real h, Real* lower, Real* upper) {
  if (!implicit_medium(model)) return;
  const auto add = [&](const detail::MediumPlace<Real>& place, const detail::MediumSlope<Real>& slope) {
    for (int k = place.link; k >= 0; k = model.dofs[k].parent) {
      const MatrixRow row = tree_row(model, k);
      const Motion<Real> J_k = place.local(kin.S[k], nullptr);
      const Force<Real> of_k = slope.times(J_k);
      Real *const below = lower + model.mass_rows[k], *const above =
                                                          upper ? upper + model.mass_rows[k] : nullptr;
      for (int i = 0; i < row.count; ++i) {
        const Motion<Real> J_i = place.local(kin.S[row.dofs[i]], nullptr);
        below[i] += h * detail::product(J_k, slope.times(J_i));
        if (above && i > 0) above[i] += h * detail::product(J_i, of_k);
      }
    }
  };
  for (int i = 0; i < model.nmedium; ++i) {
    const detail::MediumPlace<Real> place = detail::place_of_box(model, parameters, kin, i);
    add(place, detail::slope_of_box(parameters.drag[i], place.local(kin.V[place.link], model.wind)));
  }
  for (int i = 0; i < model.nellipsoid; ++i) {
    const detail::MediumPlace<Real> place = detail::place_of_ellipsoid(model, kin, i);
    add(place, detail::slope_of_ellipsoid(model, model.medium_ellipsoids[i],
                                          place.local(kin.V[place.link], model.wind)));
  }
}

// The links' motions under p and a^, and the wrenches that pair with them.
template <class Bar>
struct MediumSlopeScratch {
  Motion<Bar>*Y, *X;
  Force<Bar>*F_y, *F_x;
  Bar* a_next;

  MediumSlopeScratch(const Model& model, Arena& arena) {
    const int count = implicit_medium(model) ? model.nv : 0;
    for (Motion<Bar>** array : {&Y, &X}) *array = arena.take<Motion<Bar>>(count);
    for (Force<Bar>** array : {&F_y, &F_x}) *array = arena.take<Force<Bar>>(count);
    a_next = arena.take<Bar>(count);
  }
};

// (4); adds to F_v, kin_bar and parameters_bar.
template <class Real, class Bar>
REVOLUTE_HD void medium_slopes_adjoint(const Model& model, const Parameters<Real>& parameters,
                                       const Kinematics<Real>& kin, Real h, const Bar* p, const Real* a_next,
                                       MediumSlopeScratch<Bar>& ws, Force<Bar>* F_v,
                                       KinematicsCotangent<Bar>& kin_bar, Parameters<Bar>& parameters_bar) {
  if (!implicit_medium(model)) return;
  for (int k = 0; k < model.nv; ++k) {
    ws.F_y[k] = ws.F_x[k] = zero_force<Bar>();
    ws.a_next[k] = a_next[k] + Bar(0);
  }
  link_velocities(model, kin.S, p, ws.Y);
  link_velocities(model, kin.S, ws.a_next, ws.X);
  // L = -h y.(slope) x
  const auto pull_back = [&](const detail::MediumPlace<Real>& place, const detail::MediumSlope<Real>& slope,
                             const Motion<Bar>& y, const Motion<Bar>& x, const Force<Bar>& u_bar,
                             Vector3<Bar>& arm_bar) {
    const int link = place.link;
    Force<Bar>& moment = kin_bar.moment[link];
    const Force<Bar> y_bar = -h * slope.times(x);
    Force<Bar> x_bar;
    for (int j = 0; j < 6; ++j) component(x_bar, j) = -h * detail::product(y, slope.column[j]);
    const double* const still = nullptr;
    detail::pull_back_velocity(place, ws.Y[link], still, y_bar, ws.F_y[link], moment, arm_bar);
    detail::pull_back_velocity(place, ws.X[link], still, x_bar, ws.F_x[link], moment, arm_bar);
    detail::pull_back_velocity(place, kin.V[link], model.wind, u_bar, F_v[link], moment, arm_bar);
  };
  for (int i = 0; i < model.nmedium; ++i) {
    const detail::MediumPlace<Real> place = detail::place_of_box(model, parameters, kin, i);
    const MediumDrag<Real>& drag = parameters.drag[i];
    MediumDrag<Bar>& drag_bar = parameters_bar.drag[i];
    const Motion<Real> u = place.local(kin.V[place.link], model.wind);
    const Motion<Bar> y = place.local(ws.Y[place.link], nullptr), x = place.local(ws.X[place.link], nullptr);
    Force<Bar> u_bar;
    for (int j = 0; j < 6; ++j) {
      const Real& v = component(u, j);
      const Bar both = -h * (component(y, j) * component(x, j));
      detail::viscous_of(drag_bar, j) += both;
      detail::square_of(drag_bar, j) += (Real(2) * abs(v)) * both;
      const Real sign = select(less(v, Real(0)), Real(-1), Real(1));
      component(u_bar, j) = (Real(2) * sign * detail::square_of(drag, j)) * both;
    }
    Vector3<Bar> arm_bar = zero3<Bar>();
    pull_back(place, detail::slope_of_box(drag, u), y, x, u_bar, arm_bar);
    drag_bar.centre += transpose_times(kin.links[place.link].R, arm_bar);
  }
  for (int i = 0; i < model.nellipsoid; ++i) {
    const MediumEllipsoid& body = model.medium_ellipsoids[i];
    const detail::MediumPlace<Real> place = detail::place_of_ellipsoid(model, kin, i);
    const Motion<Real> u = place.local(kin.V[place.link], model.wind);
    const Motion<Bar> y = place.local(ws.Y[place.link], nullptr), x = place.local(ws.X[place.link], nullptr);
    // d/du_j of h y.(dg/du) x = h sum over k of x_k y.(d2g/du_j du_k), and its symmetric part
    const bool symmetric = model.integrator == Integrator::implicitfast;
    Force<Bar> u_bar = zero_force<Bar>();
    for (int j = 0; j < 6; ++j)
      for (int k = 0; k <= j; ++k) {
        const Force<Real> curvature = ellipsoid_curvature(body, u, j, k);
        const Bar by_y = h * detail::product(y, curvature), by_x = h * detail::product(x, curvature);
        const auto add = [&](int to, int along) {
          const Bar plain = component(x, along) * by_y;
          component(u_bar, to) += symmetric ? Bar(Real(0.5) * (plain + component(y, along) * by_x)) : plain;
        };
        add(j, k);
        if (k < j) add(k, j);
      }
    Vector3<Bar> arm_bar = zero3<Bar>();
    pull_back(place, detail::slope_of_ellipsoid(model, body, u), y, x, u_bar, arm_bar);
  }
  sum_towards_root(model, ws.F_y);
  sum_towards_root(model, ws.F_x);
  for (int k = 0; k < model.nv; ++k) kin_bar.S[k] += p[k] * ws.F_y[k] + ws.a_next[k] * ws.F_x[k];
}

}  // namespace revolute
