#pragma once
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/base/unique_handle.h"

namespace dstrain::test {

/// Lets this process open `count` more files and no others while it lives.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(rlim_t count) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const UniqueFd lowest_free(::dup(STDIN_FILENO));
    rlimit few = before_;
    few.rlim_cur = static_cast<rlim_t>(lowest_free.get()) + count;
    ::setrlimit(RLIMIT_NOFILE, &few);
  }
  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;
  DescriptorLimit(DescriptorLimit&&) = delete;
  DescriptorLimit& operator=(DescriptorLimit&&) = delete;
  ~DescriptorLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

}  // namespace dstrain::test
