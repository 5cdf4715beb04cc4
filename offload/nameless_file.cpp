#include "offload/nameless_file.h"

#include <cerrno>
#include <cstdlib>

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/base/fd_io.h"

namespace dstrain::offload {
namespace {

/// File systems without nameless files get a name for a moment.
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

}  // namespace

UniqueFd make_nameless_file(const std::filesystem::path& directory, Bytes bytes) {
  UniqueFd fd = open_nameless(directory);
  if (!fd) fail_errno(errno, "swap file in " + directory.string());
  int error = take_space(fd.get(), bytes);
  // By writing, then: the space must be there when memory is mapped to it.
  if (error == EOPNOTSUPP) error = ::posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes));
  if (error != 0) refuse_space(error, directory, bytes);
  return fd;
}

}  // namespace dstrain::offload
