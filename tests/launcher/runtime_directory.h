#pragma once
#include <cstdlib>

#include "tests/support/temp_dir.h"

namespace dstrain::test {

/// Where the sockets of jobs are while it lives.
class RuntimeDirectory {
 public:
  RuntimeDirectory() { ::setenv("XDG_RUNTIME_DIR", folder_.path().c_str(), 1); }
  RuntimeDirectory(const RuntimeDirectory&) = delete;
  RuntimeDirectory& operator=(const RuntimeDirectory&) = delete;
  RuntimeDirectory(RuntimeDirectory&&) = delete;
  RuntimeDirectory& operator=(RuntimeDirectory&&) = delete;
  ~RuntimeDirectory() { ::unsetenv("XDG_RUNTIME_DIR"); }

 private:
  TempDir folder_;
};

}  // namespace dstrain::test
