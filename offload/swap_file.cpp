#include "offload/swap_file.h"

#include <array>

#include <fcntl.h>

#include "offload/nameless_file.h"
#include "runtime/base/error.h"

namespace dstrain::offload {
namespace {

constexpr auto piece = static_cast<std::size_t>(io_alignment);

bool go_past_cache(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && ::fcntl(fd, F_SETFL, flags | O_DIRECT) == 0;
}

std::size_t piece_index(Bytes offset) {
  return static_cast<std::size_t>(offset / io_alignment);
}

}  // namespace

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
