// Places of frames while a model is built.
#pragma once

#include <algorithm>

#include "revolute/spatial/quaternion.hpp"

namespace revolute {

// A frame in another: a point x of it is at p + R x.
struct Pose {
  Matrix3<double> R;
  Vector3<double> p;
};
inline Pose operator*(const Pose& a, const Pose& b) { return {a.R * b.R, a.p + a.R * b.p}; }
inline Pose identity() { return {{{1, 0, 0, 0, 1, 0, 0, 0, 1}}, {0, 0, 0}}; }
inline Pose pose(const double* position, const double* quaternion) {
  return {rotation_matrix(
              normalized(Quaternion<double>{quaternion[0], quaternion[1], quaternion[2], quaternion[3]})),
          vector3<double>(position)};
}
inline void store(const Matrix3<double>& R, double* out) { std::copy(R.m, R.m + 9, out); }
inline void store(const Vector3<double>& p, double* out) {
  out[0] = p.x;
  out[1] = p.y;
  out[2] = p.z;
}

}  // namespace revolute
