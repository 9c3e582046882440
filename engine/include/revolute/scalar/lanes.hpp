// Lanes<W>: W environments in one value, on GCC and Clang vector extensions (AVX-512 for W = 8, AVX2 for W = 4, ...).
//
// Every operation acts on each lane as it acts on one double, so that a lane's bits do not depend on its neighbours.
#pragma once

#include <limits>

#include "revolute/scalar/scalar.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace revolute {

// The compiler's vector types. They have their own struct because g++ drops the attribute of a dependent member typedef.
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
#if defined(__SSE4_1__)
inline bool any(Mask<2> mask) { return !_mm_testz_si128(__m128i(mask.bits), __m128i(mask.bits)); }
#endif
#if defined(__AVX__)
inline bool any(Mask<4> mask) { return !_mm256_testz_si256(__m256i(mask.bits), __m256i(mask.bits)); }
#endif
#if defined(__AVX512F__)
inline bool any(Mask<8> mask) { return _mm512_test_epi64_mask(__m512i(mask.bits), __m512i(mask.bits)) != 0; }
#endif
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
  Lanes(double value)
      : values(value - Values{}) {}  // -0 stays -0, and the compiler sees that there is nothing to do
  Lanes(Values packed) : values(packed) {}

  Lanes& operator+=(Lanes other) {
    values += other.values;
    return *this;
  }
  Lanes& operator-=(Lanes other) {
    values -= other.values;
    return *this;
  }
  Lanes& operator*=(Lanes other) {
    values *= other.values;
    return *this;
  }
};

template <int W>
struct Width<Lanes<W>> {
  static constexpr int value = W;
};

// one number of the step with a pack of cotangents
template <int W>
struct CombinedOf<double, Lanes<W>> {
  using type = Lanes<W>;
};
template <int W>
struct CombinedOf<Lanes<W>, double> {
  using type = Lanes<W>;
};

#define REVOLUTE_LANES_OPERATOR(op)                     \
  template <int W>                                      \
  inline Lanes<W> operator op(Lanes<W> a, Lanes<W> b) { \
    return Lanes<W>(a.values op b.values);              \
  }                                                     \
  template <int W>                                      \
  inline Lanes<W> operator op(Lanes<W> a, double b) {   \
    return Lanes<W>(a.values op Lanes<W>(b).values);    \
  }                                                     \
  template <int W>                                      \
  inline Lanes<W> operator op(double a, Lanes<W> b) {   \
    return Lanes<W>(Lanes<W>(a).values op b.values);    \
  }
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
inline Lanes<W> select(Mask<1> mask, Lanes<W> a, Lanes<W> b) {
  return mask.bit ? a : b;
}
template <int W>
inline Lanes<W> sqrt(Lanes<W> a) {
  Lanes<W> root;
  for (int i = 0; i < W; ++i) root.values[i] = __builtin_sqrt(a.values[i]);
  return root;
}
#if defined(REVOLUTE_FUSED_MULTIPLY_ADD)
template <int W>
inline Lanes<W> multiply_add(const Lanes<W>& a, const Lanes<W>& b, const Lanes<W>& c) {
  Lanes<W> sum;
  for (int i = 0; i < W; ++i) sum.values[i] = __builtin_fma(a.values[i], b.values[i], c.values[i]);
  return sum;
}
#endif
// Whole registers at once, with the same bits: the compiler does not vectorize the loops above (CMakeLists.txt says why). For
// 512 bits they use the forms with a full mask: g++ 12 warns of an uninitialized register in its own header for the plain
// ones.
#if defined(__SSE2__)
inline Lanes<2> sqrt(Lanes<2> a) { return Lanes<2>(Lanes<2>::Values(_mm_sqrt_pd(__m128d(a.values)))); }
#elif defined(__aarch64__)
inline Lanes<2> sqrt(Lanes<2> a) { return Lanes<2>(Lanes<2>::Values(vsqrtq_f64(float64x2_t(a.values)))); }
inline Lanes<2> multiply_add(const Lanes<2>& a, const Lanes<2>& b, const Lanes<2>& c) {
  return Lanes<2>(
      Lanes<2>::Values(vfmaq_f64(float64x2_t(c.values), float64x2_t(a.values), float64x2_t(b.values))));
}
#endif
#if defined(__AVX__)
inline Lanes<4> sqrt(Lanes<4> a) { return Lanes<4>(Lanes<4>::Values(_mm256_sqrt_pd(__m256d(a.values)))); }
#endif
#if defined(__AVX512F__)
inline Lanes<8> sqrt(Lanes<8> a) {
  return Lanes<8>(Lanes<8>::Values(_mm512_maskz_sqrt_pd(0xff, __m512d(a.values))));
}
#endif
#if defined(__FMA__)
inline Lanes<2> multiply_add(const Lanes<2>& a, const Lanes<2>& b, const Lanes<2>& c) {
  return Lanes<2>(Lanes<2>::Values(_mm_fmadd_pd(__m128d(a.values), __m128d(b.values), __m128d(c.values))));
}
inline Lanes<4> multiply_add(const Lanes<4>& a, const Lanes<4>& b, const Lanes<4>& c) {
  return Lanes<4>(Lanes<4>::Values(_mm256_fmadd_pd(__m256d(a.values), __m256d(b.values), __m256d(c.values))));
}
#if defined(__AVX512F__)
inline Lanes<8> multiply_add(const Lanes<8>& a, const Lanes<8>& b, const Lanes<8>& c) {
  return Lanes<8>(Lanes<8>::Values(_mm512_fmadd_pd(__m512d(a.values), __m512d(b.values), __m512d(c.values))));
}
#endif
#endif
template <int W>
inline Lanes<W> multiply_add(double a, const Lanes<W>& b, const Lanes<W>& c) {
  return multiply_add(Lanes<W>(a), b, c);
}
template <int W>
inline Lanes<W> multiply_add(const Lanes<W>& a, double b, const Lanes<W>& c) {
  return multiply_add(a, Lanes<W>(b), c);
}
// minimum and maximum of scalar.hpp, to the bit: of two zeros, or with a NaN, the instruction gives its second operand
#if defined(__SSE2__)
inline Lanes<2> minimum(Lanes<2> a, Lanes<2> b) {
  return Lanes<2>(Lanes<2>::Values(_mm_min_pd(__m128d(b.values), __m128d(a.values))));
}
inline Lanes<2> maximum(Lanes<2> a, Lanes<2> b) {
  return Lanes<2>(Lanes<2>::Values(_mm_max_pd(__m128d(b.values), __m128d(a.values))));
}
#endif
#if defined(__AVX__)
inline Lanes<4> minimum(Lanes<4> a, Lanes<4> b) {
  return Lanes<4>(Lanes<4>::Values(_mm256_min_pd(__m256d(b.values), __m256d(a.values))));
}
inline Lanes<4> maximum(Lanes<4> a, Lanes<4> b) {
  return Lanes<4>(Lanes<4>::Values(_mm256_max_pd(__m256d(b.values), __m256d(a.values))));
}
#endif
#if defined(__AVX512F__)
inline Lanes<8> minimum(Lanes<8> a, Lanes<8> b) {
  return Lanes<8>(Lanes<8>::Values(_mm512_maskz_min_pd(0xff, __m512d(b.values), __m512d(a.values))));
}
inline Lanes<8> maximum(Lanes<8> a, Lanes<8> b) {
  return Lanes<8>(Lanes<8>::Values(_mm512_maskz_max_pd(0xff, __m512d(b.values), __m512d(a.values))));
}
#endif
template <int W>
inline typename Mask<W>::Bits sign_bits(Lanes<W> a) {
  using Bits = typename Mask<W>::Bits;
  return Bits(a.values) & (Bits{} + std::numeric_limits<long long>::min());
}
template <int W>
inline Lanes<W> abs(Lanes<W> a) {
  return Lanes<W>(typename Lanes<W>::Values(typename Mask<W>::Bits(a.values) ^ sign_bits(a)));
}
template <int W>
inline Lanes<W> clamp_magnitude(const Lanes<W>& a, const Lanes<W>& bound) {
  return Lanes<W>(
      typename Lanes<W>::Values(typename Mask<W>::Bits(minimum(abs(a), bound).values) | sign_bits(a)));
}
template <int W>
inline Lanes<W> flip_sign(const Lanes<W>& a, const Lanes<W>& b) {
  return Lanes<W>(typename Lanes<W>::Values(typename Mask<W>::Bits(a.values) ^ sign_bits(b)));
}
template <int W>
inline Mask<W> is_negative(Lanes<W> a) {
  return {typename Mask<W>::Bits(a.values) < typename Mask<W>::Bits{}};
}
template <int W>
inline Mask<W> is_finite(Lanes<W> a) {
  return {(a.values - a.values) == typename Lanes<W>::Values{}};
}
template <int W>
struct AllPositiveZero<Lanes<W>> {
  typename Mask<W>::Bits joined{};
  void add(Lanes<W> a) { joined |= typename Mask<W>::Bits(a.values); }
  bool holds() const { return !any(Mask<W>{joined}); }
};
template <int W>
inline double get_lane(const Lanes<W>& a, int lane) {
  return a.values[lane];
}
template <int W>
inline void set_lane(Lanes<W>& a, int lane, double value) {
  a.values[lane] = value;
}

}  // namespace revolute
