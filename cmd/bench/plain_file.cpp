#include "cmd/bench/plain_file.h"

#include <cerrno>

#include <fcntl.h>

#include "runtime/base/units.h"
#include "runtime/os/fd_io.h"

namespace dstrain::bench {
namespace {

constexpr auto piece = static_cast<std::size_t>(4 * mebibyte);

UniqueFd open_file(const std::filesystem::path& path, int flags) {
  UniqueFd fd(::open(path.c_str(), flags | O_CLOEXEC, 0644));
  if (!fd) fail_errno(errno, "open " + path.string());
  return fd;
}

}  // namespace

void write_plainly(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  const UniqueFd fd = open_file(path, O_WRONLY | O_CREAT | O_TRUNC);
  reserve_space(fd.get(), static_cast<Bytes>(bytes.size()), path.string());
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    write_fully(fd.get(), bytes.subspan(at, std::min(piece, bytes.size() - at)), path.string());
  }
  flush_file(fd.get(), path.string());
}

void read_plainly(const std::filesystem::path& path, std::span<std::byte> bytes) {
  const UniqueFd fd = open_file(path, O_RDONLY);
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    const std::size_t size = std::min(piece, bytes.size() - at);
    if (read_fully_at(fd.get(), at, bytes.subspan(at, size), path.string()) != size) {
      fail(ErrorCode::io, "{}: shorter than it was written", path.string());
    }
  }
}

void forget_pages(const std::filesystem::path& path) {
  const UniqueFd fd = open_file(path, O_RDONLY);
  ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
}

}  // namespace dstrain::bench
