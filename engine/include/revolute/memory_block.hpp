// A block of raw memory. On Linux a large block is mapped by itself: without a reservation, since much of it may never be
// touched, and in pages that can be given back one by one. All other blocks come from the system's allocator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace revolute {

class MemoryBlock {
 public:
  static constexpr std::size_t alignment = 64;

  // No memory: data() is null.
  MemoryBlock() = default;
  // Blocks of more than `mapped_from` bytes are mapped.
  MemoryBlock(std::size_t bytes, std::size_t mapped_from)
      : block_(take(rounded(bytes), mapped_from), Free{rounded(bytes), rounded(bytes) > mapped_from}) {
    if (!block_) throw std::bad_alloc();
  }

  char* data() const { return static_cast<char*>(block_.get()); }

  // Gives back the pages that start in bytes begin .. end - 1, if the block has its own pages. Any bytes after `end` in the
  // last page were given back before. The bytes must not be read again.
  void give_back(std::size_t begin, std::size_t end) {
#if defined(__linux__)
    if (!block_.get_deleter().mapped) return;
    const std::size_t page = std::size_t(sysconf(_SC_PAGESIZE));
    const std::size_t first = (begin + page - 1) / page * page;
    const std::size_t last = (end + page - 1) / page * page;
    if (first < last) madvise(data() + first, last - first, MADV_DONTNEED);
#else
    (void)begin, (void)end;
#endif
  }

 private:
  static std::size_t rounded(std::size_t bytes) {
    return (bytes / alignment + 1) * alignment;  // never zero
  }
  static void* take(std::size_t bytes, std::size_t mapped_from) {
#if defined(__linux__)
    if (bytes > mapped_from) {
      void* block =
          mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      return block == MAP_FAILED ? nullptr : block;
    }
#else
    (void)mapped_from;
#endif
    return std::aligned_alloc(alignment, bytes);
  }
  struct Free {
    std::size_t bytes;
    bool mapped;
    void operator()(void* block) const {
#if defined(__linux__)
      if (mapped) {
        munmap(block, bytes);
        return;
      }
#endif
      std::free(block);
    }
  };

  std::unique_ptr<void, Free> block_{nullptr, Free{0, false}};
};

}  // namespace revolute
