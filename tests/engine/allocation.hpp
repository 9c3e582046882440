// Counts what a program takes from the heap, by standing in front of the C library's allocation functions.
//
// It defines them, so it is included once in a program. operator new of the standard library calls malloc. Sanitizers stand there
// themselves: under them nothing is counted.
#pragma once

#include <atomic>
#include <cstdlib>
#include <new>
#include <string>

#include "check.hpp"

namespace revolute::check {
inline std::atomic<long> allocations{0};
}

#if defined(__SANITIZE_ADDRESS__)
namespace revolute::check {
constexpr bool counted = false;
}
#elif defined(__GLIBC__)
namespace revolute::check {
constexpr bool counted = true;
}
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
// the standard library finds these only when they are visible
#define REVOLUTE_STAND_IN __attribute__((visibility("default")))
REVOLUTE_STAND_IN void* malloc(std::size_t size) {
  ++revolute::check::allocations;
  return __libc_malloc(size);
}
REVOLUTE_STAND_IN void* calloc(std::size_t count, std::size_t size) {
  ++revolute::check::allocations;
  return __libc_calloc(count, size);
}
REVOLUTE_STAND_IN void* realloc(void* block, std::size_t size) {
  ++revolute::check::allocations;
  return __libc_realloc(block, size);
}
REVOLUTE_STAND_IN void* aligned_alloc(std::size_t alignment, std::size_t size) {
  ++revolute::check::allocations;
  return __libc_memalign(alignment, size);
}
REVOLUTE_STAND_IN int posix_memalign(void** block, std::size_t alignment, std::size_t size) {
  ++revolute::check::allocations;
  *block = __libc_memalign(alignment, size);
  return *block ? 0 : 12;
}
#undef REVOLUTE_STAND_IN
}
#else
namespace revolute::check {
constexpr bool counted = true;
}
// other C libraries: operator new only, which is all that containers use
void* operator new(std::size_t size) {
  ++revolute::check::allocations;
  if (void* block = std::malloc(size)) return block;
  throw std::bad_alloc();
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }
#endif

namespace revolute::check {

template <class Work>
void check_no_allocation(const std::string& name, const Work& work) {
  if (!counted) {
    work();
    expect(true, "the sanitizer judges what it did", __FILE__, __LINE__);
    return;
  }
  // a count that does not count would pass everything
  long before = allocations;
  int* volatile block = new int(0);
  delete block;
  expect(allocations > before, "allocations are not counted", __FILE__, __LINE__);
  before = allocations;
  work();
  const long taken = allocations - before;
  expect(taken == 0, name + ": expected no allocation, got " + std::to_string(taken), __FILE__, __LINE__);
}

}  // namespace revolute::check
