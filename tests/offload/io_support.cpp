#include "tests/offload/io_support.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <random>

#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/fd_io.h"
#include "runtime/base/unique_handle.h"
#include "tests/support/skip.h"

namespace dstrain::test {

AlignedBytes::AlignedBytes(Bytes size)
    : data_(static_cast<std::byte*>(std::aligned_alloc(
          static_cast<std::size_t>(offload::io_alignment), static_cast<std::size_t>(size)))),
      size_(static_cast<std::size_t>(size)) {
  if (data_ == nullptr) throw std::bad_alloc();
  std::memset(data_.get(), 0, size_);
}

void AlignedBytes::Free::operator()(std::byte* data) const noexcept {
  std::free(data);
}

void fill(std::span<std::byte> memory, std::uint64_t seed) {
  std::mt19937_64 numbers(seed);
  for (std::size_t at = 0; at + 8 <= memory.size(); at += 8) {
    const std::uint64_t number = numbers();
    std::memcpy(memory.data() + at, &number, 8);
  }
}

bool is_filled(std::span<const std::byte> memory, std::uint64_t seed) {
  std::mt19937_64 numbers(seed);
  for (std::size_t at = 0; at + 8 <= memory.size(); at += 8) {
    const std::uint64_t number = numbers();
    if (std::memcmp(memory.data() + at, &number, 8) != 0) return false;
  }
  return true;
}

std::unique_ptr<offload::AsyncFileIo> make_io(IoKind kind, const offload::AioOptions& options) {
  try {
    return offload::make_file_io(options, kind).io;
  } catch (const Error& error) {
    skip(error.what());
  }
}

std::string in_child(const std::function<std::string()>& body) {
  int ends[2] = {};
  if (::pipe(ends) != 0) fail_errno(errno, "pipe");
  UniqueFd out(ends[0]);
  UniqueFd in(ends[1]);
  const pid_t pid = ::fork();
  if (pid == 0) {
    std::string text;
    try {
      text = body();
    } catch (const std::exception& error) {
      text = std::string("threw: ") + error.what();
    }
    write_fully(in.get(), std::as_bytes(std::span(text)), "pipe");
    ::_exit(0);
  }
  in.reset();
  std::string text;
  char piece[4096];
  for (ssize_t size = 0; (size = ::read(out.get(), piece, sizeof piece)) > 0;) {
    text.append(piece, static_cast<std::size_t>(size));
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFSIGNALED(status) ? "killed by " + std::to_string(WTERMSIG(status)) : text;
}

std::string mount_for_me(const std::string& type,
                         const std::string& directory,
                         const std::string& options) {
  const int spaces = CLONE_NEWNS | (::geteuid() == 0 ? 0 : CLONE_NEWUSER);
  const char* const target = directory.c_str();
  if (::unshare(spaces) == 0 && ::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
      ::mount("test", target, type.c_str(), 0, options.c_str()) == 0) {
    return {};
  }
  return "skip: no mount of " + type + " here: " + std::strerror(errno);
}

}  // namespace dstrain::test
