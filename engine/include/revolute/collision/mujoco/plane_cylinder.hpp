// A fixed plane and a cylinder: at most four points. With the plane's normal n, the cylinder's axis z turned so that
// p = n.z <= 0, its centre o, radius r and half length h:
//   v = r (p z - n)/|p z - n|,   w = (sqrt(3)/2) r (z x n)/|z x n|                            (1)
//   x0 = o + v + h z,   x1 = o + v - h z,   x2, x3 = o -+ w - v/2 + h z                       (2)
//   gap = n.(x - plane)
// A cylinder that stands upright takes its own x axis for v/r. The points x1 to x3 exist only where x0 is near.
#pragma once

#include "revolute/collision/mujoco/frame.hpp"
#include "revolute/collision/plane_point.hpp"

namespace revolute::mujoco {

template <class Real>
struct Cylinder {
  Matrix3<Real> R;
  Vector3<Real> centre;
  Real radius, half;
};

template <class Real>
struct PlaneCylinder {
  Vector3<Real> z, outward, sideways;  // outward = v/r, sideways = w/|w|
  Real inverse;                        // 1/|p z - n|, 0 where the cylinder stands upright
};
template <class Real>
REVOLUTE_HD inline PlaneCylinder<Real> plane_cylinder_axes(const Vector3<Real>& n, const Cylinder<Real>& b) {
  PlaneCylinder<Real> out;
  const Vector3<Real> z = b.R.column(2);
  out.z = select(less(Real(0), dot(n, z)), -z, z);
  const Vector3<Real> across =
      cross(out.z, cross(out.z, n));  // p z - n, to rounding also where both are nearly parallel
  const Real squared = dot(across, across);
  const auto upright = less(squared, Real(shortest * shortest));
  out.inverse = select(upright, Real(0), Real(1) / sqrt(select(upright, Real(1), squared)));
  out.outward = select(upright, b.R.column(0), out.inverse * across);
  out.sideways = cross(out.outward, out.z);  // v x z is along z x n
  return out;
}

// How far point `slot` goes along v and w, in parts of r.
REVOLUTE_HD inline double along_outward(int slot) { return slot < 2 ? 1 : -0.5; }
REVOLUTE_HD inline double along_sideways(int slot) {
  return slot == 2 ? 0.8660254037844386 : slot == 3 ? -0.8660254037844386 : 0;
}

// The point (2).
template <class Real>
REVOLUTE_HD inline Vector3<Real> plane_cylinder_point(const PlaneCylinder<Real>& axes,
                                                      const Cylinder<Real>& b, int slot) {
  const Vector3<Real> end = (slot == 1 ? -b.half : b.half) * axes.z;
  const Vector3<Real> rim = (b.radius * Real(along_outward(slot))) * axes.outward +
                            (b.radius * Real(along_sideways(slot))) * axes.sideways;
  return b.centre + rim + end;
}

// The cylinder's moment about the world's origin, from the cotangent of a point.
template <class Real, class Bar>
REVOLUTE_HD inline Force<Bar> plane_cylinder_adjoint(const Vector3<Real>& n, const Cylinder<Real>& b,
                                                     int slot, const Vector3<Bar>& x_bar) {
  const PlaneCylinder<Real> axes = plane_cylinder_axes(n, b);
  const Vector3<Real> arm = plane_cylinder_point(axes, b, slot) - b.centre;
  // upright: the point is carried along
  const Vector3<Bar> rigid = cross(arm, x_bar);
  // else the axes follow z, of (1)
  const Vector3<Bar> outward_bar = (b.radius * Real(along_outward(slot))) * x_bar,
                     sideways_bar = (b.radius * Real(along_sideways(slot))) * x_bar;
  const Vector3<Bar> v_bar = direction_adjoint(axes.outward, axes.inverse, outward_bar),
                     w_bar = direction_adjoint(axes.sideways, axes.inverse, sideways_bar);
  const Vector3<Bar> z_bar = (slot == 1 ? -b.half : b.half) * x_bar + dot(n, axes.z) * v_bar +
                             dot(axes.z, v_bar) * n + cross(n, w_bar);
  Force<Bar> moment = force_at(b.centre, x_bar);
  moment.n += select_each(less(Real(0), axes.inverse), cross(axes.z, z_bar), rigid);
  return moment;
}

}  // namespace revolute::mujoco
