#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "offload/make_file_io.h"

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

/// Runs `body` in a process of its own, which may change its limits, user and mounts, and returns
/// what it returns. What it throws is returned as "threw: ...".
std::string in_child(const std::function<std::string()>& body);

/// In a child: mounts a file system of this type at `directory`, for it alone. Returns why not, or
/// "".
std::string mount_for_me(const std::string& type,
                         const std::string& directory,
                         const std::string& options);

}  // namespace dstrain::test
