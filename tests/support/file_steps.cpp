// The program's own definitions take the place of the C library's, for libstdc++ too.
#include "tests/support/file_steps.h"

#include <cerrno>
#include <cstdio>
#include <utility>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace dstrain::test {
namespace {

std::function<int()>& watcher() {
  static std::function<int()> step;
  return step;
}

}  // namespace

/// Whether it may take place. What the watcher does itself is not watched.
static bool allowed() {
  std::function<int()> step = std::exchange(watcher(), nullptr);
  if (!step) return true;
  errno = step();
  watcher() = std::move(step);
  return errno == 0;
}

FileSteps::FileSteps(std::function<int()> step) {
  watcher() = std::move(step);
}

FileSteps::~FileSteps() {
  watcher() = nullptr;
}

}  // namespace dstrain::test

using dstrain::test::allowed;

extern "C" {

int rename(const char* source, const char* target) noexcept {
  if (!allowed()) return -1;
  return static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, source, AT_FDCWD, target, 0));
}

int unlink(const char* path) noexcept {
  return allowed() ? static_cast<int>(::syscall(SYS_unlinkat, AT_FDCWD, path, 0)) : -1;
}

int remove(const char* path) noexcept {
  if (!allowed()) return -1;
  const auto done = ::syscall(SYS_unlinkat, AT_FDCWD, path, 0);
  if (done == 0 || errno != EISDIR) return static_cast<int>(done);
  return static_cast<int>(::syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR));
}

int fsync(int /*fd*/) {  // no test cuts the power
  return allowed() ? 0 : -1;
}
}
