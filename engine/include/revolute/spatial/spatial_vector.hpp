// Spatial motion and force vectors in Pluecker coordinates (Featherstone, Rigid Body Dynamics Algorithms, 2008, ch. 2).
//
// All spatial vectors of a kinematic tree are expressed in world axes at one point of that tree, its reference point, so
// that no transforms are needed between links. A motion vector is (w; v): angular velocity and the velocity of the
// body-fixed point that passes the reference point. A force vector is (n; f): moment about the reference point, force.
#pragma once

#include "revolute/spatial/vector3.hpp"

namespace revolute {

template <class Real>
struct Motion {
  Vector3<Real> w, v;
  REVOLUTE_HD Motion& operator+=(const Motion& b) {
    w += b.w;
    v += b.v;
    return *this;
  }
  REVOLUTE_HD Motion& operator-=(const Motion& b) {
    w -= b.w;
    v -= b.v;
    return *this;
  }
};

template <class Real>
struct Force {
  Vector3<Real> n, f;
  REVOLUTE_HD Force& operator+=(const Force& b) {
    n += b.n;
    f += b.f;
    return *this;
  }
  REVOLUTE_HD Force& operator-=(const Force& b) {
    n -= b.n;
    f -= b.f;
    return *this;
  }
};

template <class Real>
REVOLUTE_HD inline Motion<Real> zero_motion() {
  return {zero3<Real>(), zero3<Real>()};
}
template <class Real>
REVOLUTE_HD inline Force<Real> zero_force() {
  return {zero3<Real>(), zero3<Real>()};
}
template <class A, class B>
REVOLUTE_HD inline Motion<Combined<A, B>> operator+(const Motion<A>& a, const Motion<B>& b) {
  return {a.w + b.w, a.v + b.v};
}
template <class A, class B>
REVOLUTE_HD inline Motion<Combined<A, B>> operator-(const Motion<A>& a, const Motion<B>& b) {
  return {a.w - b.w, a.v - b.v};
}
template <class A, class B>
REVOLUTE_HD inline Motion<Combined<A, B>> operator*(const A& s, const Motion<B>& a) {
  return {s * a.w, s * a.v};
}
template <class A, class B>
REVOLUTE_HD inline Force<Combined<A, B>> operator+(const Force<A>& a, const Force<B>& b) {
  return {a.n + b.n, a.f + b.f};
}
template <class Real>
REVOLUTE_HD inline Force<Real> operator-(const Force<Real>& a) {
  return {-a.n, -a.f};
}
template <class A, class B>
REVOLUTE_HD inline Force<Combined<A, B>> operator*(const A& s, const Force<B>& a) {
  return {s * a.n, s * a.f};
}
template <class A, class B>
REVOLUTE_HD inline Combined<A, B> dot(const Motion<A>& a, const Force<B>& b) {
  return dot(a.w, b.n) + dot(a.v, b.f);
}

// c + s a
template <class A, class B>
REVOLUTE_HD inline Motion<Combined<A, B>> multiply_add(const A& s, const Motion<B>& a,
                                                       const Motion<Combined<A, B>>& c) {
  return {multiply_add(s, a.w, c.w), multiply_add(s, a.v, c.v)};
}
template <class A, class B>
REVOLUTE_HD inline Force<Combined<A, B>> multiply_add(const A& s, const Force<B>& a,
                                                      const Force<Combined<A, B>>& c) {
  return {multiply_add(s, a.n, c.n), multiply_add(s, a.f, c.f)};
}

// a x b, the rate of change of a motion vector b that is carried along with velocity a.
template <class A, class B>
REVOLUTE_HD inline Motion<Combined<A, B>> cross_motion(const Motion<A>& a, const Motion<B>& b) {
  return {cross(a.w, b.w), cross(a.w, b.v) + cross(a.v, b.w)};
}
// a x* b, the same for a force vector. Adjoint identity used throughout: (a x b) . c = -b . (a x* c) = a . (b x* c).
template <class A, class B>
REVOLUTE_HD inline Force<Combined<A, B>> cross_force(const Motion<A>& a, const Force<B>& b) {
  return {cross(a.w, b.n) + cross(a.v, b.f), cross(a.w, b.f)};
}

}  // namespace revolute
