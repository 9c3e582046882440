// Three-vectors and 3x3 matrices (row-major), full and symmetric.
#pragma once

#include "revolute/scalar/scalar.hpp"

namespace revolute {

template <class Real>
struct Vector3 {
  Real x, y, z;

  REVOLUTE_HD Vector3& operator+=(const Vector3& b) {
    x += b.x;
    y += b.y;
    z += b.z;
    return *this;
  }
  REVOLUTE_HD Vector3& operator-=(const Vector3& b) {
    x -= b.x;
    y -= b.y;
    z -= b.z;
    return *this;
  }
};

template <class Real>
REVOLUTE_HD inline Vector3<Real> zero3() {
  return {Real(0), Real(0), Real(0)};
}
// A vector of the model's constants.
template <class Real>
REVOLUTE_HD inline Vector3<Real> vector3(const double* a) {
  return {Real(a[0]), Real(a[1]), Real(a[2])};
}
template <class A, class B>
REVOLUTE_HD inline Vector3<Combined<A, B>> operator+(const Vector3<A>& a, const Vector3<B>& b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z};
}
template <class A, class B>
REVOLUTE_HD inline Vector3<Combined<A, B>> operator-(const Vector3<A>& a, const Vector3<B>& b) {
  return {a.x - b.x, a.y - b.y, a.z - b.z};
}
template <class Real>
REVOLUTE_HD inline Vector3<Real> operator-(const Vector3<Real>& a) {
  return {-a.x, -a.y, -a.z};
}
template <class A, class B>
REVOLUTE_HD inline Vector3<Combined<A, B>> operator*(const A& s, const Vector3<B>& a) {
  return {s * a.x, s * a.y, s * a.z};
}
template <class A, class B>
REVOLUTE_HD inline Combined<A, B> dot(const Vector3<A>& a, const Vector3<B>& b) {
  return multiply_add(a.x, b.x, multiply_add(a.y, b.y, a.z * b.z));
}
// c + s a
template <class A, class B>
REVOLUTE_HD inline Vector3<Combined<A, B>> multiply_add(const A& s, const Vector3<B>& a,
                                                        const Vector3<Combined<A, B>>& c) {
  return {multiply_add(s, a.x, c.x), multiply_add(s, a.y, c.y), multiply_add(s, a.z, c.z)};
}
template <class A, class B>
REVOLUTE_HD inline Vector3<Combined<A, B>> cross(const Vector3<A>& a, const Vector3<B>& b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
template <class Real>
REVOLUTE_HD inline Vector3<Real> select(MaskOf<Real> mask, const Vector3<Real>& a, const Vector3<Real>& b) {
  return {select(mask, a.x, b.x), select(mask, a.y, b.y), select(mask, a.z, b.z)};
}

// One environment's vector inside a pack, and its replacement.
template <class Real>
REVOLUTE_HD inline Vector3<double> get_lane(const Vector3<Real>& a, int lane) {
  return {get_lane(a.x, lane), get_lane(a.y, lane), get_lane(a.z, lane)};
}
template <class Real>
REVOLUTE_HD inline void set_lane(Vector3<Real>& a, int lane, const Vector3<double>& value) {
  set_lane(a.x, lane, value.x);
  set_lane(a.y, lane, value.y);
  set_lane(a.z, lane, value.z);
}

template <class Real>
struct Matrix3 {
  Real m[9];

  REVOLUTE_HD Real& operator()(int i, int j) { return m[3 * i + j]; }
  REVOLUTE_HD const Real& operator()(int i, int j) const { return m[3 * i + j]; }
  REVOLUTE_HD Vector3<Real> column(int j) const { return {m[j], m[3 + j], m[6 + j]}; }
};

template <class Real>
REVOLUTE_HD inline Matrix3<double> get_lane(const Matrix3<Real>& A, int lane) {
  Matrix3<double> out;
  for (int i = 0; i < 9; ++i) out.m[i] = get_lane(A.m[i], lane);
  return out;
}

template <class Real>
REVOLUTE_HD inline Matrix3<Real> matrix3(const double* a) {
  Matrix3<Real> out;
  for (int i = 0; i < 9; ++i) out.m[i] = Real(a[i]);
  return out;
}
template <class A, class B>
REVOLUTE_HD inline Vector3<Combined<A, B>> operator*(const Matrix3<A>& M, const Vector3<B>& b) {
  const auto row = [&](int i) {
    return multiply_add(M.m[i], b.x, multiply_add(M.m[i + 1], b.y, M.m[i + 2] * b.z));
  };
  return {row(0), row(3), row(6)};
}
// M' b
template <class A, class B>
REVOLUTE_HD inline Vector3<Combined<A, B>> transpose_times(const Matrix3<A>& M, const Vector3<B>& b) {
  const auto column = [&](int j) {
    return multiply_add(M.m[j], b.x, multiply_add(M.m[j + 3], b.y, M.m[j + 6] * b.z));
  };
  return {column(0), column(1), column(2)};
}
template <class A, class B>
REVOLUTE_HD inline Matrix3<Combined<A, B>> operator*(const Matrix3<A>& M, const Matrix3<B>& N) {
  Matrix3<Combined<A, B>> C;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      C.m[3 * i + j] = multiply_add(M.m[3 * i], N.m[j],
                                    multiply_add(M.m[3 * i + 1], N.m[3 + j], M.m[3 * i + 2] * N.m[6 + j]));
  return C;
}
template <class Real>
REVOLUTE_HD inline Matrix3<Real> operator+(const Matrix3<Real>& A, const Matrix3<Real>& B) {
  Matrix3<Real> C;
  for (int i = 0; i < 9; ++i) C.m[i] = A.m[i] + B.m[i];
  return C;
}
template <class Real>
REVOLUTE_HD inline Matrix3<Real> operator*(Real s, const Matrix3<Real>& A) {
  Matrix3<Real> C;
  for (int i = 0; i < 9; ++i) C.m[i] = s * A.m[i];
  return C;
}
template <class Real>
REVOLUTE_HD inline Matrix3<Real> identity_matrix() {
  const Real o(0), l(1);
  return {{l, o, o, o, l, o, o, o, l}};
}
// a b'
template <class Real>
REVOLUTE_HD inline Matrix3<Real> outer_product(const Vector3<Real>& a, const Vector3<Real>& b) {
  return {
      {a.x * b.x, a.x * b.y, a.x * b.z, a.y * b.x, a.y * b.y, a.y * b.z, a.z * b.x, a.z * b.y, a.z * b.z}};
}
template <class Real>
REVOLUTE_HD inline Matrix3<Real> transpose(const Matrix3<Real>& A) {
  return {{A.m[0], A.m[3], A.m[6], A.m[1], A.m[4], A.m[7], A.m[2], A.m[5], A.m[8]}};
}

// Symmetric 3x3 matrix. As a cotangent it holds the entries G_ij of the full symmetric matrix with dL = sum_ij G_ij dA_ij.
template <class Real>
struct Symmetric3 {
  Real xx, yy, zz, xy, xz, yz;

  REVOLUTE_HD Symmetric3& operator+=(const Symmetric3& b) {
    xx += b.xx;
    yy += b.yy;
    zz += b.zz;
    xy += b.xy;
    xz += b.xz;
    yz += b.yz;
    return *this;
  }
};

template <class Real>
REVOLUTE_HD inline Symmetric3<Real> zero_symmetric3() {
  return {Real(0), Real(0), Real(0), Real(0), Real(0), Real(0)};
}
template <class A, class B>
REVOLUTE_HD inline Vector3<Combined<A, B>> operator*(const Symmetric3<A>& M, const Vector3<B>& b) {
  return {multiply_add(M.xx, b.x, multiply_add(M.xy, b.y, M.xz * b.z)),
          multiply_add(M.xy, b.x, multiply_add(M.yy, b.y, M.yz * b.z)),
          multiply_add(M.xz, b.x, multiply_add(M.yz, b.y, M.zz * b.z))};
}
template <class Real>
REVOLUTE_HD inline Matrix3<Real> full(const Symmetric3<Real>& A) {
  return {{A.xx, A.xy, A.xz, A.xy, A.yy, A.yz, A.xz, A.yz, A.zz}};
}
template <class Real>
REVOLUTE_HD inline Real trace(const Symmetric3<Real>& A) {
  return A.xx + A.yy + A.zz;
}
// M += s (a b' + b a')/2
template <class S, class A, class B>
REVOLUTE_HD inline void add_symmetric_product(Symmetric3<Combined<A, B>>& M, const S& s, const Vector3<A>& a,
                                              const Vector3<B>& b) {
  const Vector3<Combined<S, A>> sa = s * a;
  const Vector3<Combined<S, A>> ha = S(0.5) * sa;
  const Vector3<Combined<S, B>> hb = S(0.5) * (s * b);
  M.xx = multiply_add(sa.x, b.x, M.xx);
  M.yy = multiply_add(sa.y, b.y, M.yy);
  M.zz = multiply_add(sa.z, b.z, M.zz);
  M.xy = multiply_add(ha.x, b.y, multiply_add(hb.x, a.y, M.xy));
  M.xz = multiply_add(ha.x, b.z, multiply_add(hb.x, a.z, M.xz));
  M.yz = multiply_add(ha.y, b.z, multiply_add(hb.y, a.z, M.yz));
}
// R M R'
template <class A, class B>
REVOLUTE_HD inline Symmetric3<Combined<A, B>> rotate(const Matrix3<A>& R, const Symmetric3<B>& M) {
  Vector3<Combined<A, B>> row[3];
  for (int i = 0; i < 3; ++i) row[i] = M * Vector3<A>{R.m[3 * i], R.m[3 * i + 1], R.m[3 * i + 2]};
  const auto entry = [&](int i, int j) {
    return dot(row[i], Vector3<A>{R.m[3 * j], R.m[3 * j + 1], R.m[3 * j + 2]});
  };
  return {entry(0, 0), entry(1, 1), entry(2, 2), entry(0, 1), entry(0, 2), entry(1, 2)};
}

}  // namespace revolute
