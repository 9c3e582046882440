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
template <class Real>
REVOLUTE_HD inline Motion<Real> operator+(const Motion<Real>& a, const Motion<Real>& b) {
  return {a.w + b.w, a.v + b.v};
}
template <class Real>
REVOLUTE_HD inline Motion<Real> operator-(const Motion<Real>& a, const Motion<Real>& b) {
  return {a.w - b.w, a.v - b.v};
}
template <class Real>
REVOLUTE_HD inline Motion<Real> operator*(Real s, const Motion<Real>& a) {
  return {s * a.w, s * a.v};
}
template <class Real>
REVOLUTE_HD inline Force<Real> operator+(const Force<Real>& a, const Force<Real>& b) {
  return {a.n + b.n, a.f + b.f};
}
template <class Real>
REVOLUTE_HD inline Force<Real> operator-(const Force<Real>& a) {
  return {-a.n, -a.f};
}
template <class Real>
REVOLUTE_HD inline Force<Real> operator*(Real s, const Force<Real>& a) {
  return {s * a.n, s * a.f};
}
template <class Real>
REVOLUTE_HD inline Real dot(const Motion<Real>& a, const Force<Real>& b) {
  return dot(a.w, b.n) + dot(a.v, b.f);
}

// c + s a
template <class Real>
REVOLUTE_HD inline Motion<Real> multiply_add(const Real& s, const Motion<Real>& a, const Motion<Real>& c) {
  return {multiply_add(s, a.w, c.w), multiply_add(s, a.v, c.v)};
}
template <class Real>
REVOLUTE_HD inline Force<Real> multiply_add(const Real& s, const Force<Real>& a, const Force<Real>& c) {
  return {multiply_add(s, a.n, c.n), multiply_add(s, a.f, c.f)};
}

// a x b, the rate of change of a motion vector b that is carried along with velocity a.
template <class Real>
REVOLUTE_HD inline Motion<Real> cross_motion(const Motion<Real>& a, const Motion<Real>& b) {
  return {cross(a.w, b.w), cross(a.w, b.v) + cross(a.v, b.w)};
}
// a x* b, the same for a force vector. Adjoint identity used throughout: (a x b) . c = -b . (a x* c) = a . (b x* c).
template <class Real>
REVOLUTE_HD inline Force<Real> cross_force(const Motion<Real>& a, const Force<Real>& b) {
  return {cross(a.w, b.n) + cross(a.v, b.f), cross(a.w, b.f)};
}

}  // namespace revolute
