#include "runtime/os/fd_io.h"

#include <cerrno>
#include <mutex>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/base/log.h"

namespace dstrain {
namespace {

/// Returns how many bytes a call transferred; 0 if it was interrupted.
std::size_t counted(ssize_t result, const char* action, const std::string& name) {
  if (result >= 0) return static_cast<std::size_t>(result);
  if (errno != EINTR) fail_errno(errno, action + name);
  return 0;
}

}  // namespace

void write_fully(int fd, std::span<const std::byte> bytes, const std::string& name) {
  while (!bytes.empty()) {
    bytes = bytes.subspan(counted(::write(fd, bytes.data(), bytes.size()), "write ", name));
  }
}

void write_fully_at(int fd,
                    std::uint64_t offset,
                    std::span<const std::byte> bytes,
                    const std::string& name) {
  while (!bytes.empty()) {
    const ssize_t result = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    const std::size_t done = counted(result, "write ", name);
    offset += done;
    bytes = bytes.subspan(done);
  }
}

std::size_t read_fully_at(int fd,
                          std::uint64_t offset,
                          std::span<std::byte> bytes,
                          const std::string& name) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t result =
        ::pread(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (result == 0) break;
    done += counted(result, "read ", name);
  }
  return done;
}

Bytes regular_bytes(int fd, const std::string& name) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) fail_errno(errno, "stat " + name);
  if (!S_ISREG(info.st_mode)) fail(ErrorCode::input, "{}: not a regular file", name);
  return info.st_size;
}

int take_space(int fd, Bytes bytes) noexcept {
  if (bytes == 0) return 0;
  int error = 0;
  do {
    error = ::fallocate(fd, 0, 0, static_cast<off_t>(bytes)) == 0 ? 0 : errno;
  } while (error == EINTR);
  return error == ENOSYS ? EOPNOTSUPP : error;
}

void reserve_space(int fd, Bytes bytes, const std::string& name) {
  const int error = take_space(fd, bytes);
  if (error != 0 && error != EOPNOTSUPP) {
    fail_errno(error, fmt::format("reserve {} for {}", format_bytes(bytes), name));
  }
}

void flush_file(int fd, const std::string& name) {
  if (::fsync(fd) != 0) fail_errno(errno, "fsync " + name);
}

void flush_directory(const std::filesystem::path& directory) {
  const std::string name = directory.empty() ? "." : directory.string();
  const UniqueFd fd(::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) fail_errno(errno, "open " + name);
  if (::fsync(fd.get()) == 0) return;
  if (errno != EINVAL && errno != ENOTSUP) fail_errno(errno, "fsync " + name);
  static std::once_flag told;
  std::call_once(told, [&] {
    log_warning(
        fmt::format("fsync {}: {}: this file system cannot flush directories; after a power cut "
                    "the newest files "
                    "there may be missing",
                    name, std::generic_category().message(errno)));
  });
}

void close_file(UniqueFd fd, const std::string& name) {
  if (::close(fd.detach()) != 0) fail_errno(errno, "close " + name);
}

std::string read_small_text(int fd, Bytes bytes_max, const std::string& name) {
  const Bytes bytes = regular_bytes(fd, name);
  if (bytes > bytes_max) {
    fail(ErrorCode::input, "{}: {} is more than the {} allowed for such a file", name,
         format_bytes(bytes), format_bytes(bytes_max));
  }
  std::string text(static_cast<std::size_t>(bytes), '\0');
  text.resize(read_fully_at(fd, 0, std::as_writable_bytes(std::span(text)), name));
  return text;
}

}  // namespace dstrain
