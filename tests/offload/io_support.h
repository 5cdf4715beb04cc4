#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "offload/make_file_io.h"
#include "tests/support/child_process.h"

namespace dstrain::test {

/// Memory for I/O, zeroed.
class AlignedBytes {
 public:
  explicit AlignedBytes(Bytes size);
  [[nodiscard]] std::span<std::byte> all() const noexcept { return {data_.get(), size_}; }
  [[nodiscard]] std::span<std::byte> part(Bytes at, Bytes size) const {
    return all().subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(size));
  }

 private:
  struct Free {
    void operator()(std::byte* data) const noexcept;
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t size_;
};

/// Fills memory with numbers that depend on the seed and on where they stand.
void fill(std::span<std::byte> memory, std::uint64_t seed);
/// Whether fill() was the last to write there.
bool is_filled(std::span<const std::byte> memory, std::uint64_t seed);

/// The implementation asked for; ends the test as skipped where this machine has none.
std::unique_ptr<offload::AsyncFileIo> make_io(IoKind kind, const offload::AioOptions& options);

}  // namespace dstrain::test
