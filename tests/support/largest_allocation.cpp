#include "tests/support/largest_allocation.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::size_t> largest{0};

}  // namespace

namespace dstrain::test {

std::size_t take_largest_allocation() {
  return largest.exchange(0);
}

}  // namespace dstrain::test

void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
  if (size > largest) largest = size;
  return std::malloc(size > 0 ? size : 1);
}

void* operator new(std::size_t size) {
  void* const memory = ::operator new(size, std::nothrow);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void operator delete(void* memory) noexcept {
  std::free(memory);
}

void operator delete(void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}
