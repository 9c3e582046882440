// Loops over arrays of numbers of one environment with the machine's vectors. Every element gets the operations of the plain
// loop, so the bits are the same.
#pragma once

#include <cstring>
#include <type_traits>

#if defined(__CUDACC__)
#include "revolute/scalar/scalar.hpp"
#else
#include "revolute/scalar/lanes.hpp"
#endif

namespace revolute {

#if !defined(__CUDACC__)
namespace detail {

template <int W>
inline Lanes<W> load_vector(const double* from) {
  Lanes<W> out;
  std::memcpy(&out.values, from, sizeof(out.values));
  return out;
}
template <int W>
inline void store_vector(const Lanes<W>& from, double* to) {
  std::memcpy(to, &from.values, sizeof(from.values));
}

// Handles the elements from `i` on, W at a time, while at least W remain.
template <int W>
inline void add_products_by(const double* factor, const double* const* rows, int row_count, double* out,
                            int count, int& i) {
  for (; i + W <= count; i += W) {
    Lanes<W> sum = load_vector<W>(out + i);
    for (int r = 0; r < row_count; ++r)
      sum = multiply_add(Lanes<W>(factor[r]), load_vector<W>(rows[r] + i), sum);
    store_vector(sum, out + i);
  }
}

}  // namespace detail
#endif

// out[i] += sum_r factor[r] rows[r][i], in the order of r
template <class Real>
REVOLUTE_HD inline void add_products(const Real* factor, const Real* const* rows, int row_count, Real* out,
                                     int count) {
  int i = 0;
#if defined(__AVX__) && !defined(__CUDACC__)
  if constexpr (std::is_same_v<Real, double>) {
#if defined(__AVX512F__)
    detail::add_products_by<8>(factor, rows, row_count, out, count, i);
#endif
    detail::add_products_by<4>(factor, rows, row_count, out, count, i);
    detail::add_products_by<2>(factor, rows, row_count, out, count, i);
  }
#endif
  for (; i < count; ++i) {
    Real sum = out[i];
    for (int r = 0; r < row_count; ++r) sum = multiply_add(factor[r], rows[r][i], sum);
    out[i] = sum;
  }
}

}  // namespace revolute
