// Lanes<W>: W environments in one value, on GCC and Clang vector extensions (AVX-512 for W = 8, AVX2 for W = 4, ...).
//
// Every operation acts on each lane as it acts on one double, so that a lane's bits do not depend on its neighbours.
#pragma once

#include "revolute/scalar/scalar.hpp"

namespace revolute {

// The compiler's vector types; a struct of their own because g++ drops the attribute of a dependent member typedef.
template <int W>
struct VectorTypes {
  typedef long long Integers __attribute__((vector_size(8 * W)));
  typedef double Doubles __attribute__((vector_size(8 * W)));
};

template <int W>
struct Mask {
  using Bits = typename VectorTypes<W>::Integers;
  Bits bits;
};

template <int W>
inline Mask<W> operator&(Mask<W> a, Mask<W> b) {
  return {a.bits & b.bits};
}
template <int W>
inline Mask<W> operator|(Mask<W> a, Mask<W> b) {
  return {a.bits | b.bits};
}
template <int W>
inline Mask<W> operator!(Mask<W> a) {
  return {~a.bits};
}
template <int W>
inline bool any(Mask<W> mask) {
  long long joined = 0;
  for (int i = 0; i < W; ++i) joined |= mask.bits[i];
  return joined != 0;
}
template <int W>
inline bool all(Mask<W> mask) {
  return !any(!mask);
}
template <int W>
inline bool get_lane(Mask<W> mask, int lane) {
  return mask.bits[lane] != 0;
}

template <int W>
struct Lanes {
  using Values = typename VectorTypes<W>::Doubles;
  Values values;

  Lanes() = default;
  Lanes(double value) : values(Values{} + value) {}
  Lanes(Values packed) : values(packed) {}

  Lanes& operator+=(Lanes other) { values += other.values; return *this; }
  Lanes& operator-=(Lanes other) { values -= other.values; return *this; }
  Lanes& operator*=(Lanes other) { values *= other.values; return *this; }
};

template <int W>
struct Width<Lanes<W>> {
  static constexpr int value = W;
};

#define REVOLUTE_LANES_OPERATOR(op)                                                                                 \
  template <int W>                                                                                                  \
  inline Lanes<W> operator op(Lanes<W> a, Lanes<W> b) { return Lanes<W>(a.values op b.values); }                    \
  template <int W>                                                                                                  \
  inline Lanes<W> operator op(Lanes<W> a, double b) { return Lanes<W>(a.values op Lanes<W>(b).values); }            \
  template <int W>                                                                                                  \
  inline Lanes<W> operator op(double a, Lanes<W> b) { return Lanes<W>(Lanes<W>(a).values op b.values); }
REVOLUTE_LANES_OPERATOR(+)
REVOLUTE_LANES_OPERATOR(-)
REVOLUTE_LANES_OPERATOR(*)
REVOLUTE_LANES_OPERATOR(/)
#undef REVOLUTE_LANES_OPERATOR

template <int W>
inline Lanes<W> operator-(Lanes<W> a) {
  return Lanes<W>(-a.values);
}
template <int W>
inline Mask<W> less(Lanes<W> a, Lanes<W> b) {
  return {a.values < b.values};
}
template <int W>
inline Mask<W> less_equal(Lanes<W> a, Lanes<W> b) {
  return {a.values <= b.values};
}
template <int W>
inline Lanes<W> select(Mask<W> mask, Lanes<W> a, Lanes<W> b) {
  return Lanes<W>(mask.bits ? a.values : b.values);
}
template <int W>
inline Lanes<W> sqrt(Lanes<W> a) {
  Lanes<W> root;
  for (int i = 0; i < W; ++i) root.values[i] = __builtin_sqrt(a.values[i]);
  return root;
}
template <int W>
inline Lanes<W> abs(Lanes<W> a) {
  return select(less(a, Lanes<W>(0.0)), -a, a);
}
template <int W>
inline Mask<W> is_finite(Lanes<W> a) {
  return {(a.values - a.values) == typename Lanes<W>::Values{}};
}
template <int W>
inline double get_lane(const Lanes<W>& a, int lane) {
  return a.values[lane];
}
template <int W>
inline void set_lane(Lanes<W>& a, int lane, double value) {
  a.values[lane] = value;
}

}  // namespace revolute
