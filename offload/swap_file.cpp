#include "offload/swap_file.h"

#include <array>
#include <cerrno>
#include <cstdlib>

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/os/fd_io.h"

namespace dstrain::offload {
namespace {

/// File systems without unnamed files need a name for a moment.
UniqueFd open_nameless(const std::filesystem::path& directory) {
  UniqueFd fd(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (fd || (errno != EOPNOTSUPP && errno != EISDIR)) return fd;
  std::string path = (directory / "dstrain-swap-XXXXXX").string();
  fd = UniqueFd(::mkostemp(path.data(), O_CLOEXEC));
  if (fd) ::unlink(path.c_str());
  return fd;
}

[[noreturn]] void refuse_space(int error, const std::filesystem::path& directory, Bytes bytes) {
  struct statvfs space {};
  ::statvfs(directory.c_str(), &space);
  const auto free = static_cast<Bytes>(space.f_bavail * space.f_frsize);
  fail_errno(error,
             fmt::format("swap file in {}: {} bytes ({}) are wanted, {} ({}) are free there",
                         directory.string(), bytes, format_bytes(bytes), free, format_bytes(free)));
}

constexpr auto piece = static_cast<std::size_t>(io_alignment);

bool go_past_cache(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && ::fcntl(fd, F_SETFL, flags | O_DIRECT) == 0;
}

std::size_t piece_index(Bytes offset) {
  return static_cast<std::size_t>(offset / io_alignment);
}

}  // namespace

UniqueFd make_nameless_file(const std::filesystem::path& directory, Bytes bytes) {
  UniqueFd fd = open_nameless(directory);
  if (!fd) fail_errno(errno, "swap file in " + directory.string());
  int error = take_space(fd.get(), bytes);
  // Then allocate by writing: the space must exist before memory is mapped to it.
  if (error == EOPNOTSUPP) error = ::posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes));
  if (error != 0) refuse_space(error, directory, bytes);
  return fd;
}

SwapFile::SwapFile(const std::filesystem::path& directory, Bytes bytes)
    : name_("swap file in " + directory.string()), bytes_(bytes) {
  DSTRAIN_CHECK(bytes > 0 && bytes % io_alignment == 0, "{} bytes", bytes);
  fd_ = make_nameless_file(directory, bytes);
  direct_ = go_past_cache(fd_.get());
  constexpr std::array<std::byte, piece> zeros{};
  checksums_.assign(piece_index(bytes), checksum_of(zeros));
}

void SwapFile::note(Bytes offset, std::span<const std::byte> written) noexcept {
  std::size_t index = piece_index(offset);
  for (std::size_t at = 0; at < written.size(); at += piece) {
    checksums_[index++] = checksum_of(written.subspan(at, piece));
  }
}

std::optional<FileRange> SwapFile::damage(Bytes offset,
                                          std::span<const std::byte> read) const noexcept {
  std::optional<FileRange> range;
  std::size_t index = piece_index(offset);
  for (std::size_t at = 0; at < read.size(); at += piece) {
    const Bytes begin = offset + static_cast<Bytes>(at);
    if (checksum_of(read.subspan(at, piece)) == checksums_[index++]) {
      if (range) break;
    } else {
      range = FileRange{range ? range->begin : begin, begin + io_alignment};
    }
  }
  return range;
}

}  // namespace dstrain::offload
