// The scalar interface that every stage is written against, and its one-environment form.
//
// A stage is a template over `Real`: `double` (one environment) or `Lanes<W>` (a pack of W environments, lanes.hpp).
// Comparisons give a Mask, which does not convert to bool: on data use select, any, all; `if` is for the model only.
// The formulae are the same for every width, operation by operation, so that a pack and a single run give equal bits.
//
// An adjoint is a template over two types: `Real`, the numbers of the step, and `Bar`, those of the cotangents. Both may be
// the same. Or one environment's step (`double`) has several cotangents side by side (`Lanes<W>`): a value that depends only
// on the step is then one number, and a value that depends on a cotangent is a Bar.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(__CUDACC__)
#define REVOLUTE_HD __host__ __device__
#else
#define REVOLUTE_HD
#endif
// noipa: g++ 12.2 takes some functions that get the address of an element for ones that leave the rest of the array alone, and
// drops stores to it (-fipa-modref). With noipa it assumes nothing about a function that it does not inline.
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#define REVOLUTE_NOINLINE REVOLUTE_HD __attribute__((noipa))
#else
#define REVOLUTE_NOINLINE REVOLUTE_HD __attribute__((noinline))
#endif
#define REVOLUTE_INLINE __attribute__((always_inline)) inline
#define REVOLUTE_INLINE_LAMBDA __attribute__((always_inline))

namespace revolute {

// Calls visit(i) for i = Begin ... End - 1, each a constant to the compiler from its first pass on. Numbers of an array that is
// visited with inlined functions alone stay in registers, which loops unrolled by a pragma do not ensure.
template <int Begin, int End, class Visit>
REVOLUTE_HD REVOLUTE_INLINE void unrolled(const Visit& visit) {
  if constexpr (Begin < End) {
    visit(Begin);
    unrolled<Begin + 1, End>(visit);
  }
}

// Copies N numbers.
template <int N, class Real>
REVOLUTE_HD REVOLUTE_INLINE void copy_numbers(const Real* from, Real* to) {
  unrolled<0, N>([&](int i) REVOLUTE_INLINE_LAMBDA { to[i] = from[i]; });
}

template <int W>
struct Mask;

template <>
struct Mask<1> {
  bool bit;
};

REVOLUTE_HD inline Mask<1> operator&(Mask<1> a, Mask<1> b) { return {a.bit && b.bit}; }
REVOLUTE_HD inline Mask<1> operator|(Mask<1> a, Mask<1> b) { return {a.bit || b.bit}; }
REVOLUTE_HD inline Mask<1> operator!(Mask<1> a) { return {!a.bit}; }

// Number of environments in a Real, and the Mask that its comparisons give.
template <class Real>
struct Width {
  static constexpr int value = 1;
};
template <class Real>
using MaskOf = Mask<Width<Real>::value>;
// The type of a product, sum or difference of A and B: a step's number and a cotangent give a cotangent.
template <class A, class B>
struct CombinedOf {};
template <class A>
struct CombinedOf<A, A> {
  using type = A;
};
template <class A, class B>
using Combined = typename CombinedOf<A, B>::type;
// Whether a Real carries derivatives (dual.hpp), which get_lane drops.
template <class Real>
struct HasTangents {
  static constexpr bool value = false;
};
// How many derivatives a Real keeps in its member `tangent` (dual.hpp).
template <class Real>
struct TangentCount {
  static constexpr int value = 0;
};
// 0 with the derivatives of a.
template <class Real>
REVOLUTE_HD inline Real tangents_of(const Real& a) {
  if constexpr (HasTangents<Real>::value)
    return a - Real(get_lane(a, 0));
  else
    return Real(0);
}

// a as a constant.
template <class Real>
REVOLUTE_HD inline Real without_tangents(const Real& a) {
  if constexpr (HasTangents<Real>::value)
    return Real(get_lane(a, 0));
  else
    return a;
}

#define REVOLUTE_SCALAR_FUNCTIONS(T)                                                         \
  REVOLUTE_HD inline Mask<1> less(T a, T b) { return {a < b}; }                              \
  REVOLUTE_HD inline Mask<1> less_equal(T a, T b) { return {a <= b}; }                       \
  REVOLUTE_HD inline T select(Mask<1> mask, T a, T b) { return mask.bit ? a : b; }           \
  REVOLUTE_HD inline T sqrt(T a) { return std::sqrt(a); }                                    \
  REVOLUTE_HD inline T abs(T a) { return std::fabs(a); }                                     \
  REVOLUTE_HD inline Mask<1> is_negative(T a) { return {std::signbit(a)}; /* true of -0 */ } \
  REVOLUTE_HD inline Mask<1> is_finite(T a) { return {a - a == T(0)}; }

REVOLUTE_SCALAR_FUNCTIONS(double)
REVOLUTE_SCALAR_FUNCTIONS(float)
#undef REVOLUTE_SCALAR_FUNCTIONS

REVOLUTE_HD inline bool any(Mask<1> mask) { return mask.bit; }
REVOLUTE_HD inline bool all(Mask<1> mask) { return mask.bit; }

// One environment's value inside a Real, and its replacement.
REVOLUTE_HD inline double get_lane(double a, int) { return a; }
REVOLUTE_HD inline double get_lane(float a, int) { return double(a); }
REVOLUTE_HD inline void set_lane(double& a, int, double value) { a = value; }
REVOLUTE_HD inline void set_lane(float& a, int, double value) { a = float(value); }
REVOLUTE_HD inline bool get_lane(Mask<1> mask, int) { return mask.bit; }

// Whether all numbers that were added are +0, to the bit, in every lane and derivative. It is unknown for a Real that records
// its operations (benchmarks/autodiff).
template <class Real>
struct AllPositiveZero {
  REVOLUTE_HD void add(const Real&) {}
  REVOLUTE_HD bool holds() const { return false; }
};
template <class Float, class Bits>
struct JoinedBits {
  Bits joined = 0;
  REVOLUTE_HD void add(Float a) {
    Bits bits;
    memcpy(&bits, &a, sizeof bits);
    joined |= bits;
  }
  REVOLUTE_HD bool holds() const { return joined == 0; }
};
template <>
struct AllPositiveZero<double> : JoinedBits<double, std::uint64_t> {};
template <>
struct AllPositiveZero<float> : JoinedBits<float, std::uint32_t> {};

// Numbers that depend on how many digits a Real has.
template <class Real>
struct Precision {
  static constexpr double to_integer = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer
  // pi/2 in three parts; the first two leave room for the bits of a quarter turn's number
  static constexpr double half_pi[3] = {1.57079632673412561417e+00, 6.07710050630396597660e-11,
                                        2.02226624879595063154e-21};
  static constexpr double largest_angle = 1e6;   // limit of this reduction
  static constexpr double tiny_square = 1e-200;  // of a length that counts as zero
};
template <>
struct Precision<float> {
  static constexpr double to_integer = 12582912.0;  // 1.5 * 2^23
  static constexpr double half_pi[3] = {1.5703125, 4.837512969970703125e-4, 7.54978995489188216e-8};
  static constexpr double largest_angle = 8e3;
  static constexpr double tiny_square = 1e-30;
};

#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define REVOLUTE_FUSED_MULTIPLY_ADD 1
#endif

// a b + c, rounded once where the instruction set can: the same in every width of one build.
template <class Real>
REVOLUTE_HD inline Real multiply_add(const Real& a, const Real& b, const Real& c) {
  return a * b + c;
}
#if defined(REVOLUTE_FUSED_MULTIPLY_ADD)
REVOLUTE_HD inline double multiply_add(double a, double b, double c) { return __builtin_fma(a, b, c); }
REVOLUTE_HD inline float multiply_add(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
#endif

template <class Real>
REVOLUTE_HD inline Real minimum(Real a, Real b) {
  return select(less(b, a), b, a);
}
template <class Real>
REVOLUTE_HD inline Real maximum(Real a, Real b) {
  return select(less(a, b), b, a);
}
template <class Real>
REVOLUTE_HD inline Real clamp(Real a, Real lower, Real upper) {
  return minimum(maximum(a, lower), upper);
}
// a, or +-bound with the sign of a where |a| >= bound >= 0.
template <class Real>
REVOLUTE_HD inline Real clamp_magnitude(const Real& a, const Real& bound) {
  return select(less_equal(bound, abs(a)), select(is_negative(a), -bound, bound), a);
}
REVOLUTE_HD inline double clamp_magnitude(double a, double bound) {
  return std::copysign(minimum(std::fabs(a), bound), a);
}
// a, or -a where the sign of b is -
template <class Real>
REVOLUTE_HD inline Real flip_sign(const Real& a, const Real& b) {
  return select(is_negative(b), -a, a);
}
// 1 where the mask holds, 0 elsewhere.
template <class Real>
REVOLUTE_HD inline Real indicator(MaskOf<Real> mask) {
  return select(mask, Real(1), Real(0));
}

}  // namespace revolute
