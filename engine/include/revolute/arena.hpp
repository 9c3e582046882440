// One block of memory from which a workspace takes its arrays. Sizes follow from the model; arrays are freed together.
//
// Numbers are taken as raw memory. If a Real has a constructor (one that records a tape, say), the arena calls it, and calls
// the destructor when the arena is destroyed.
//
// Pages are touched on first use only, so room for contacts that never happen costs nothing. A robot of fifty meshes has room
// for ten thousand contact points, which is more than the machine's memory.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <vector>

#include "revolute/memory_block.hpp"

namespace revolute {

class Arena {
 public:
  // An arena without memory only measures: take() counts, and its pointers must not be used.
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena(Arena&&) = default;
  Arena& operator=(const Arena&) = delete;
  ~Arena() {
    for (const Constructed& array : constructed_) array.destroy(array.first, array.count);
  }
  explicit Arena(std::size_t bytes) : block_(rounded(bytes), mapped_from) {}

  template <class T>
  T* take(std::size_t count) {
    static_assert(alignof(T) <= alignment, "over-aligned type");
    const std::size_t offset = used_;
    used_ += rounded(count * sizeof(T));
    if (!block_.data()) return nullptr;
    T* array = reinterpret_cast<T*>(block_.data() + offset);
    if constexpr (!std::is_trivially_default_constructible_v<T>) construct(array, count);
    return array;
  }
  std::size_t used() const { return used_; }

 private:
  static constexpr std::size_t alignment = MemoryBlock::alignment;
  static std::size_t rounded(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }
  // Smaller blocks come from the allocator, which keeps their pages for later blocks.
  static constexpr std::size_t mapped_from = std::size_t(64) << 20;

  struct Constructed {
    void* first;
    std::size_t count;
    void (*destroy)(void* first, std::size_t count);
  };
  template <class T>
  void construct(T* array, std::size_t count) {
    std::uninitialized_default_construct_n(array, count);
    constructed_.push_back(
        {array, count, [](void* first, std::size_t n) { std::destroy_n(static_cast<T*>(first), n); }});
  }

  MemoryBlock block_;
  std::size_t used_ = 0;
  std::vector<Constructed> constructed_;
};

}  // namespace revolute
