// One block of memory from which a workspace takes its arrays; sizes follow from the model, nothing is freed alone.
//
// Numbers are taken as raw memory. A Real with a constructor (one that records a tape, say) gets it called, and its
// destructor when the arena goes.
//
// Pages are touched on first use only, so room for contacts that never happen costs nothing. A robot of fifty meshes has
// room for ten thousand contact points, more than the machine has memory; on Linux the block is mapped without a
// reservation, elsewhere the system's allocator does the same by itself.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace revolute {

class Arena {
 public:
  // An arena without memory measures: take() counts, pointers must not be used.
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena(Arena&&) = default;
  Arena& operator=(const Arena&) = delete;
  ~Arena() {
    for (const Constructed& array : constructed_) array.destroy(array.first, array.count);
  }
  explicit Arena(std::size_t bytes)
      : block_(take_block(rounded(bytes + alignment)), Free{rounded(bytes + alignment)}) {
    if (!block_) throw std::bad_alloc();
  }

  template <class T>
  T* take(std::size_t count) {
    static_assert(alignof(T) <= alignment, "over-aligned type");
    const std::size_t offset = used_;
    used_ += rounded(count * sizeof(T));
    if (!block_) return nullptr;
    T* array = reinterpret_cast<T*>(static_cast<char*>(block_.get()) + offset);
    if constexpr (!std::is_trivially_default_constructible_v<T>) construct(array, count);
    return array;
  }
  std::size_t used() const { return used_; }

 private:
  static constexpr std::size_t alignment = 64;
  static std::size_t rounded(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }
  // Small blocks come from the allocator, which keeps their pages for the next one.
  static constexpr std::size_t small = std::size_t(64) << 20;

  static void* take_block(std::size_t bytes) {
#if defined(__linux__)
    if (bytes > small) {
      void* block =
          mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      return block == MAP_FAILED ? nullptr : block;
    }
#endif
    return std::aligned_alloc(alignment, bytes);
  }
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

  struct Free {
    std::size_t bytes;
    void operator()(void* block) const {
#if defined(__linux__)
      if (bytes > small) {
        munmap(block, bytes);
        return;
      }
#endif
      std::free(block);
    }
  };

  std::unique_ptr<void, Free> block_{nullptr, Free{0}};
  std::size_t used_ = 0;
  std::vector<Constructed> constructed_;
};

}  // namespace revolute
