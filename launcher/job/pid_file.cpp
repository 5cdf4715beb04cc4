#include "launcher/job/pid_file.h"

#include <cerrno>
#include <string>
#include <system_error>

#include <fcntl.h>

#include "runtime/base/error.h"
#include "runtime/base/unique_handle.h"
#include "runtime/os/shared_place.h"

namespace dstrain::launcher {

namespace {

/// TMPDIR, else /tmp.
std::filesystem::path temporary_directory() {
  std::error_code error;
  std::filesystem::path path = std::filesystem::temp_directory_path(error);
  if (error) fail(ErrorCode::io, "--save_pid: TMPDIR is not a directory");
  return path;
}

}  // namespace

PidFile::PidFile() : path_(temporary_directory() / fmt::format("{}.deepspeed", getpid())) {
  // Scripts find the file by DeepSpeed's name, so no other name is tried.
  if (const std::string owner = other_owner(path_); !owner.empty()) {
    fail(ErrorCode::io,
         "--save_pid: {} belongs to {}; ask for its removal, or set TMPDIR to a directory of your "
         "own",
         path_.string(), owner);
  }
  // The number is ours now: a file of that name was left by a launcher that was killed.
  unlink(path_.c_str());
  // O_EXCL: in a directory anyone may write to, never follow a link that someone placed there.
  const UniqueFd fd(open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  const std::string text = fmt::format("{}\n", getpid());
  if (!fd || write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    fail_errno(errno, "write " + path_.string());
  }
}

PidFile::~PidFile() {
  unlink(path_.c_str());
}

}  // namespace dstrain::launcher
