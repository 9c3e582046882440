// Reads spatial quantities from an array of numbers and adds them to one, for functors under test.
//
// A symmetric matrix is six numbers. Its cotangent holds the entries of the full matrix, so an off-diagonal
// number, which stands for two entries, has twice the entry as its derivative; the same holds for the block B
// of an articulated inertia.
#pragma once

#include "revolute/spatial/inertia.hpp"
#include "revolute/spatial/quaternion.hpp"

namespace revolute::check {

template <class Real>
Matrix3<Real> identity3() {
  const Real o(0), l(1);
  return {{l, o, o, o, l, o, o, o, l}};
}

template <class Real>
struct Reader {
  const Real* next;

  Real scalar() { return *next++; }
  Vector3<Real> vector() {
    next += 3;
    return {next[-3], next[-2], next[-1]};
  }
  Quaternion<Real> quaternion() {
    next += 4;
    return {next[-4], next[-3], next[-2], next[-1]};
  }
  Matrix3<Real> matrix() {
    Matrix3<Real> out;
    for (Real& entry : out.m) entry = scalar();
    return out;
  }
  Symmetric3<Real> symmetric() {
    next += 6;
    return {next[-6], next[-5], next[-4], next[-3], next[-2], next[-1]};
  }
  Symmetric3<Real> symmetric_cotangent() {
    const Real half(0.5);
    const Symmetric3<Real> a = symmetric();
    return {a.xx, a.yy, a.zz, half * a.xy, half * a.xz, half * a.yz};
  }
  Motion<Real> motion() {
    const Vector3<Real> w = vector();
    return {w, vector()};
  }
  Force<Real> force() {
    const Vector3<Real> n = vector();
    return {n, vector()};
  }
  RigidInertia<Real> inertia() {
    const Real m = scalar();
    const Vector3<Real> h = vector();
    return {m, h, symmetric()};
  }
  RigidInertia<Real> inertia_cotangent() {
    const Real m = scalar();
    const Vector3<Real> h = vector();
    return {m, h, symmetric_cotangent()};
  }
  ArticulatedInertia<Real> articulated() {
    const Symmetric3<Real> A = symmetric();
    const Matrix3<Real> B = matrix();
    return {A, B, symmetric()};
  }
  ArticulatedInertia<Real> articulated_cotangent() {
    const Symmetric3<Real> A = symmetric_cotangent();
    Matrix3<Real> B = matrix();
    for (Real& entry : B.m) entry = Real(0.5) * entry;
    return {A, B, symmetric_cotangent()};
  }
};

template <class Real>
struct Writer {
  Real* next;

  void add(Real a) { *next++ += a; }
  void add(const Vector3<Real>& a) {
    add(a.x);
    add(a.y);
    add(a.z);
  }
  void add(const Quaternion<Real>& a) {
    add(a.w);
    add(Vector3<Real>{a.x, a.y, a.z});
  }
  void add(const Matrix3<Real>& a) {
    for (const Real& entry : a.m) add(entry);
  }
  void add(const Symmetric3<Real>& a) {
    add(Vector3<Real>{a.xx, a.yy, a.zz});
    add(Vector3<Real>{a.xy, a.xz, a.yz});
  }
  void add(const Motion<Real>& a) {
    add(a.w);
    add(a.v);
  }
  void add(const Force<Real>& a) {
    add(a.n);
    add(a.f);
  }
  void add(const RigidInertia<Real>& a) {
    add(a.m);
    add(a.h);
    add(a.I);
  }
  void add(const ArticulatedInertia<Real>& a) {
    add(a.A);
    add(a.B);
    add(a.C);
  }
  void add_cotangent(const Symmetric3<Real>& a) {
    add(Vector3<Real>{a.xx, a.yy, a.zz});
    add(Real(2) * Vector3<Real>{a.xy, a.xz, a.yz});
  }
  void add_cotangent(const ArticulatedInertia<Real>& a) {
    add_cotangent(a.A);
    for (const Real& entry : a.B.m) add(Real(2) * entry);
    add_cotangent(a.C);
  }
  void add_cotangent(const RigidInertia<Real>& a) {
    add(a.m);
    add(a.h);
    add_cotangent(a.I);
  }
};

}  // namespace revolute::check
