#include "runtime/preprocess/plain_bytes.h"

#include <fcntl.h>

#include "runtime/os/fd_io.h"
#include "runtime/os/file.h"

namespace dstrain::preprocess {

PlainBytes::PlainBytes(const std::string& path) : path_(path), fd_(open_regular(path)) {
  static_cast<void>(::posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_SEQUENTIAL));
}

std::size_t PlainBytes::read(std::span<char> bytes) {
  const std::size_t count = read_fully_at(fd_.get(), static_cast<std::uint64_t>(place_),
                                          std::as_writable_bytes(bytes), path_);
  place_ += static_cast<std::int64_t>(count);
  return count;
}

}  // namespace dstrain::preprocess
