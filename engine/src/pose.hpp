// Poses of frames while a model is built.
#pragma once

#include <algorithm>

#include "revolute/spatial/quaternion.hpp"

namespace revolute {

// A frame in another frame: its point x is at p + R x there; q is R as a quaternion.
struct Pose {
  Matrix3<double> R;
  Vector3<double> p;
  Quaternion<double> q;
};
inline Pose operator*(const Pose& a, const Pose& b) { return {a.R * b.R, a.p + a.R * b.p, a.q * b.q}; }
inline Pose identity() { return {{{1, 0, 0, 0, 1, 0, 0, 0, 1}}, {0, 0, 0}, {1, 0, 0, 0}}; }
inline Pose pose(const double* position, const double* quaternion) {
  const Quaternion<double> q =
      normalized(Quaternion<double>{quaternion[0], quaternion[1], quaternion[2], quaternion[3]});
  return {rotation_matrix(q), vector3<double>(position), q};
}
// One of the two quaternions of a rotation.
inline Quaternion<double> quaternion_of(const Matrix3<double>& R) {
  // the largest component first: 4 q_i^2 = 1 +- the diagonal
  const double d[4] = {1 + R.m[0] + R.m[4] + R.m[8], 1 + R.m[0] - R.m[4] - R.m[8],
                       1 - R.m[0] + R.m[4] - R.m[8], 1 - R.m[0] - R.m[4] + R.m[8]};
  const double x = R.m[7] - R.m[5], y = R.m[2] - R.m[6], z = R.m[3] - R.m[1];
  const double xy = R.m[1] + R.m[3], xz = R.m[2] + R.m[6], yz = R.m[5] + R.m[7];
  switch (std::max_element(d, d + 4) - d) {
    case 0:
      return normalized(Quaternion<double>{d[0], x, y, z});
    case 1:
      return normalized(Quaternion<double>{x, d[1], xy, xz});
    case 2:
      return normalized(Quaternion<double>{y, xy, d[2], yz});
    default:
      return normalized(Quaternion<double>{z, xz, yz, d[3]});
  }
}
inline void store(const Quaternion<double>& q, double* out) {
  out[0] = q.w;
  out[1] = q.x;
  out[2] = q.y;
  out[3] = q.z;
}
inline void store(const Matrix3<double>& R, double* out) { std::copy(R.m, R.m + 9, out); }
inline void store(const Vector3<double>& p, double* out) {
  out[0] = p.x;
  out[1] = p.y;
  out[2] = p.z;
}

}  // namespace revolute
