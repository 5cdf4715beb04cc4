#pragma once
#include <unistd.h>

#include "runtime/base/unique_handle.h"

namespace dstrain {

struct FdTraits {
  using Raw = int;
  static constexpr int null() noexcept { return -1; }
  static void release(int fd) noexcept { ::close(fd); }
};

/// Sole owner of a file descriptor.
using UniqueFd = UniqueHandle<FdTraits>;

}  // namespace dstrain
