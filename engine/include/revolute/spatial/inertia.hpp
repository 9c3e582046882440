// Rigid-body and articulated-body inertia in world axes at a tree's reference point.
//
// Rigid: ten numbers m, h = m c, I (about the reference point); I_sp (w; v) = (I w + h x v; m v - h x w).     (1)
// Cotangents of a rigid inertia are the same ten numbers; rows (2) to (5) are the adjoints of its uses.
// Articulated: the symmetric 6x6 matrix [A B; B' C].
#pragma once

#include "revolute/spatial/spatial_vector.hpp"

namespace revolute {

template <class Real>
struct RigidInertia {
  Real m;
  Vector3<Real> h;
  Symmetric3<Real> I;
};

template <class Real>
REVOLUTE_HD inline RigidInertia<Real> zero_inertia() {
  return {Real(0), zero3<Real>(), zero_symmetric3<Real>()};
}
// (1)
template <class A, class B>
REVOLUTE_HD inline Force<Combined<A, B>> operator*(const RigidInertia<A>& I, const Motion<B>& a) {
  return {I.I * a.w + cross(I.h, a.v), I.m * a.v - cross(I.h, a.w)};
}
// (2) adjoint of x' I y by I:  I_bar += s d(x' I y)/dI
template <class S, class A, class B>
REVOLUTE_HD inline void add_bilinear_adjoint(RigidInertia<Combined<A, B>>& I_bar, const S& s,
                                             const Motion<A>& x, const Motion<B>& y) {
  I_bar.m += s * dot(x.v, y.v);
  I_bar.h += s * (cross(y.v, x.w) + cross(x.v, y.w));
  add_symmetric_product(I_bar.I, s, x.w, y.w);
}

// (3) moves an inertia given in a link frame (rotation R, origin p) to world axes at the reference point:
//     h = R h_l + m p,  I = R I_l R' - (g p' + p g') + 2 (p.g) 1 - m p p' + m p.p 1,  g = R h_l.
template <class Real>
REVOLUTE_HD inline RigidInertia<Real> to_world(const RigidInertia<Real>& local, const Matrix3<Real>& R,
                                               const Vector3<Real>& p) {
  RigidInertia<Real> out;
  const Vector3<Real> g = R * local.h;
  out.m = local.m;
  out.h = g + local.m * p;
  out.I = rotate(R, local.I);
  add_symmetric_product(out.I, Real(-1), p, Real(2) * g + local.m * p);
  const Real diagonal = dot(p, Real(2) * g + local.m * p);
  out.I.xx += diagonal;
  out.I.yy += diagonal;
  out.I.zz += diagonal;
  return out;
}
// adjoint of (3) by the link-frame inertia
template <class Real, class Bar>
REVOLUTE_HD inline void to_world_adjoint(const RigidInertia<Bar>& out_bar, const Matrix3<Real>& R,
                                         const Vector3<Real>& p, RigidInertia<Bar>& local_bar) {
  const Bar t = trace(out_bar.I);
  const Vector3<Bar> Gp = out_bar.I * p;
  local_bar.m += out_bar.m + dot(p, out_bar.h) - dot(p, Gp) + t * dot(p, p);
  local_bar.h += transpose_times(R, out_bar.h + Real(2) * (t * p - Gp));
  local_bar.I += rotate(transpose(R), out_bar.I);
}

// (4) change of L under a small rigid displacement d of the body that carries I: dL = d . moment(I, I_bar)
template <class Real, class Bar>
REVOLUTE_HD inline Force<Bar> displacement_moment(const RigidInertia<Real>& I,
                                                  const RigidInertia<Bar>& I_bar) {
  const Matrix3<Bar> P = full(I.I) * full(I_bar.I);
  const Vector3<Bar> turn = {P.m[5] - P.m[7], P.m[6] - P.m[2], P.m[1] - P.m[3]};
  return {cross(I.h, I_bar.h) + Real(2) * turn,
          I.m * I_bar.h + Real(2) * (trace(I_bar.I) * I.h - I_bar.I * I.h)};
}

template <class Real>
struct ArticulatedInertia {
  Symmetric3<Real> A;
  Matrix3<Real> B;
  Symmetric3<Real> C;

  REVOLUTE_HD ArticulatedInertia& operator+=(const ArticulatedInertia& b) {
    A += b.A;
    for (int i = 0; i < 9; ++i) B.m[i] += b.B.m[i];
    C += b.C;
    return *this;
  }
};

template <class Real>
REVOLUTE_HD inline ArticulatedInertia<Real> articulated(const RigidInertia<Real>& I) {
  const Real o(0);
  return {I.I, {{o, -I.h.z, I.h.y, I.h.z, o, -I.h.x, -I.h.y, I.h.x, o}}, {I.m, I.m, I.m, o, o, o}};
}
template <class A, class B>
REVOLUTE_HD inline Force<Combined<A, B>> operator*(const ArticulatedInertia<A>& M, const Motion<B>& a) {
  return {M.A * a.w + M.B * a.v, transpose_times(M.B, a.w) + M.C * a.v};
}
// A cotangent of an articulated inertia is stored in the same way, with the entries of the full symmetric matrix, and maps
// forces to motions.
template <class A, class B>
REVOLUTE_HD inline Motion<Combined<A, B>> cotangent_times(const ArticulatedInertia<A>& M_bar,
                                                          const Force<B>& u) {
  return {M_bar.A * u.n + M_bar.B * u.f, transpose_times(M_bar.B, u.n) + M_bar.C * u.f};
}
// M_bar += s (a b' + b a')/2
template <class S, class A, class B>
REVOLUTE_HD inline void add_symmetric_product(ArticulatedInertia<Combined<A, B>>& M_bar, const S& s,
                                              const Motion<A>& a, const Motion<B>& b) {
  add_symmetric_product(M_bar.A, s, a.w, b.w);
  add_symmetric_product(M_bar.C, s, a.v, b.v);
  const Vector3<Combined<S, A>> aw = (S(0.5) * s) * a.w;
  const Vector3<Combined<S, B>> bw = (S(0.5) * s) * b.w;
  const Combined<S, A> wa[3] = {aw.x, aw.y, aw.z};
  const Combined<S, B> wb[3] = {bw.x, bw.y, bw.z};
  const A va[3] = {a.v.x, a.v.y, a.v.z};
  const B vb[3] = {b.v.x, b.v.y, b.v.z};
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      M_bar.B.m[3 * i + j] = multiply_add(wa[i], vb[j], multiply_add(wb[i], va[j], M_bar.B.m[3 * i + j]));
}
// M -= s u u'
template <class Real>
REVOLUTE_HD inline void subtract_square(ArticulatedInertia<Real>& M, Real s, const Force<Real>& u) {
  const Force<Real> su = -s * u;
  const Real sn[3] = {su.n.x, su.n.y, su.n.z}, sf[3] = {su.f.x, su.f.y, su.f.z};
  const Real n[3] = {u.n.x, u.n.y, u.n.z}, f[3] = {u.f.x, u.f.y, u.f.z};
  const auto subtract = [](Symmetric3<Real>& A, const Real* sa, const Real* a) {
    A.xx = multiply_add(sa[0], a[0], A.xx);
    A.yy = multiply_add(sa[1], a[1], A.yy);
    A.zz = multiply_add(sa[2], a[2], A.zz);
    A.xy = multiply_add(sa[0], a[1], A.xy);
    A.xz = multiply_add(sa[0], a[2], A.xz);
    A.yz = multiply_add(sa[1], a[2], A.yz);
  };
  subtract(M.A, sn, n);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) M.B.m[3 * i + j] = multiply_add(sn[i], f[j], M.B.m[3 * i + j]);
  subtract(M.C, sf, f);
}
// (5) the part of a cotangent of [A B; B' C] that reaches the rigid inertia in it
template <class Real>
REVOLUTE_HD inline void add_articulated_adjoint(RigidInertia<Real>& I_bar,
                                                const ArticulatedInertia<Real>& M_bar) {
  const Real two(2);
  I_bar.m += trace(M_bar.C);
  I_bar.h += two * Vector3<Real>{M_bar.B.m[7] - M_bar.B.m[5], M_bar.B.m[2] - M_bar.B.m[6],
                                 M_bar.B.m[3] - M_bar.B.m[1]};
  I_bar.I += M_bar.A;
}

}  // namespace revolute
