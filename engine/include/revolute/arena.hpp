// One block of memory from which a workspace takes its arrays; sizes follow from the model, nothing is freed alone.
//
// Pages are touched on first use only, so room for contacts that never happen costs nothing.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

namespace revolute {

class Arena {
 public:
  // An arena without memory measures: take() counts, pointers must not be used.
  Arena() = default;
  explicit Arena(std::size_t bytes) : block_(std::aligned_alloc(alignment, rounded(bytes + alignment))), size_(bytes) {
    if (!block_) throw std::bad_alloc();
  }

  template <class T>
  T* take(std::size_t count) {
    static_assert(alignof(T) <= alignment, "over-aligned type");
    const std::size_t offset = used_;
    used_ += rounded(count * sizeof(T));
    return block_ ? reinterpret_cast<T*>(static_cast<char*>(block_.get()) + offset) : nullptr;
  }
  std::size_t used() const { return used_; }

 private:
  static constexpr std::size_t alignment = 64;
  static std::size_t rounded(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }
  struct Free {
    void operator()(void* block) const { std::free(block); }
  };

  std::unique_ptr<void, Free> block_;
  std::size_t size_ = 0, used_ = 0;
};

}  // namespace revolute
