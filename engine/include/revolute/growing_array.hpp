// Memory for numbers whose count differs from step to step. It starts with room for some and grows when a step needs more
// than any step before. It serves the matrices of rows that touch each other. With all rows that a model may ever have, these
// would be too large for a machine's address space: robots have thousands of pairs of shapes, and a dozen touch.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include "revolute/arena.hpp"
#include "revolute/scalar/scalar.hpp"

namespace revolute {

// Owns memory of the host. A device only moves it, which std::unique_ptr does not allow.
template <class T>
class HostMemory {
 public:
  HostMemory() = default;
  REVOLUTE_HD HostMemory(HostMemory&& other) noexcept : data_(other.data_) { other.data_ = nullptr; }
  REVOLUTE_HD HostMemory& operator=(HostMemory&& other) noexcept {
    T* const mine = data_;
    data_ = other.data_;
    other.data_ = mine;
    return *this;
  }
  REVOLUTE_HD ~HostMemory() {
#if !defined(__CUDA_ARCH__)
    delete[] data_;
#endif
  }
  T* replace(std::size_t count) {
    delete[] data_;
    data_ = nullptr;
    return data_ = new T[count];
  }

 private:
  T* data_ = nullptr;
};

// std::swap for a device
template <class T>
REVOLUTE_HD inline void exchange(T& a, T& b) {
  T kept = std::move(a);
  a = std::move(b);
  b = std::move(kept);
}

template <class T>
class GrowingArray {
 public:
  // No step needs more than `most`.
  GrowingArray(std::size_t most, Arena& arena)
      : most_(most), count_(std::min(most, at_first)), data_(arena.take<T>(count_)) {}

  // Returns room for `count` numbers; old contents are lost when it grows. It does not grow on a device: the host ensures
  // enough room.
  REVOLUTE_HD T* at_least(std::size_t count) {
#if !defined(__CUDA_ARCH__)
    if (count > count_) grow(count);
#endif
    return data_;
  }
  // The same, but the first `kept` numbers stay.
  REVOLUTE_HD T* keep(std::size_t kept, std::size_t count) {
#if !defined(__CUDA_ARCH__)
    if (count > count_) {
      const T* const old = data_;
      const HostMemory<T> held = std::move(own_);
      grow(count);
      std::copy_n(old, kept, data_);
    }
#endif
    return data_;
  }
  REVOLUTE_HD T* data() const { return data_; }
  REVOLUTE_HD void swap(GrowingArray& other) { exchange(*this, other); }

 private:
  static constexpr std::size_t at_first = std::size_t(256) * 256;

  void grow(std::size_t count) {
    count_ = std::min(most_, std::max(count, 2 * count_));
    data_ = own_.replace(count_);
  }

  std::size_t most_, count_;
  T* data_;
  HostMemory<T> own_;
};

}  // namespace revolute
