#include "tests/offload/io_support.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <random>

#include "tests/support/skip.h"

namespace dstrain::test {

AlignedBytes::AlignedBytes(Bytes size)
    : data_(static_cast<std::byte*>(std::aligned_alloc(
          static_cast<std::size_t>(offload::io_alignment), static_cast<std::size_t>(size)))),
      size_(static_cast<std::size_t>(size)) {
  if (data_ == nullptr) throw std::bad_alloc();
  std::memset(data_.get(), 0, size_);
}

void AlignedBytes::Free::operator()(std::byte* data) const noexcept {
  std::free(data);
}

void fill(std::span<std::byte> memory, std::uint64_t seed) {
  std::mt19937_64 numbers(seed);
  for (std::size_t at = 0; at + 8 <= memory.size(); at += 8) {
    const std::uint64_t number = numbers();
    std::memcpy(memory.data() + at, &number, 8);
  }
}

bool is_filled(std::span<const std::byte> memory, std::uint64_t seed) {
  std::mt19937_64 numbers(seed);
  for (std::size_t at = 0; at + 8 <= memory.size(); at += 8) {
    const std::uint64_t number = numbers();
    if (std::memcmp(memory.data() + at, &number, 8) != 0) return false;
  }
  return true;
}

std::unique_ptr<offload::AsyncFileIo> make_io(IoKind kind, const offload::AioOptions& options) {
  try {
    return offload::make_file_io(options, kind).io;
  } catch (const Error& error) {
    skip(error.what());
  }
}

}  // namespace dstrain::test
