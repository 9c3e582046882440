// Memory for numbers of which each step needs another count: room for some from the start, more when a step needs more than any
// before it. For the matrices of rows that touch each other: with all rows that a model may ever have they would be larger than
// a machine's address space likes, since robots have thousands of pairs of shapes of which a dozen touch.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>

#include "revolute/arena.hpp"
#include "revolute/scalar/scalar.hpp"

namespace revolute {

template <class T>
class GrowingArray {
 public:
  // `most` is what no step exceeds.
  GrowingArray(std::size_t most, Arena& arena)
      : most_(most), count_(std::min(most, at_first)), data_(arena.take<T>(count_)) {}

  // Room for `count` numbers; what was there is lost when it grows. A device does not grow: its host sees to enough room.
  REVOLUTE_HD T* at_least(std::size_t count) {
#if !defined(__CUDA_ARCH__)
    if (count > count_) grow(count);
#endif
    return data_;
  }

 private:
  static constexpr std::size_t at_first = std::size_t(256) * 256;

  void grow(std::size_t count) {
    count_ = std::min(most_, std::max(count, 2 * count_));
    own_.reset();
    own_.reset(new T[count_]);
    data_ = own_.get();
  }

  std::size_t most_, count_;
  T* data_;
  std::unique_ptr<T[]> own_;
};

}  // namespace revolute
