#include "runtime/checkpoint/output_lock.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/deadline.h"
#include "runtime/base/fd_io.h"
#include "runtime/base/log.h"
#include "runtime/checkpoint/temporary_name.h"

namespace dstrain::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr double look_seconds = 1;      // for as long as somebody may only be looking
constexpr double own_job_seconds = 60;  // twice the silence after which a host ends its ranks
constexpr std::chrono::milliseconds look_interval{20};
constexpr std::size_t text_bytes_max = 4096;
constexpr int safe_flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;

fs::path lock_path(const fs::path& directory) {
  return directory / "job.lock";
}

std::string read_text(int file, const std::string& name) {
  std::string text(text_bytes_max, '\0');
  text.resize(read_fully_at(file, 0, std::as_writable_bytes(std::span(text)), name));
  return text.substr(0, text.find('\n'));
}

/// Whether the file is still the one of that name: its last owner may have removed it.
bool is_current(int file, const fs::path& path) {
  struct stat opened {};
  struct stat named {};
  return ::fstat(file, &opened) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

[[noreturn]] void refuse(const fs::path& path, const std::string& owner) {
  fail(ErrorCode::usage,
       "--output_dir {}: {} writes there; wait for its end or end it with dstrain stop, or choose "
       "another directory",
       path.parent_path().string(), owner.empty() ? "another job" : owner);
}

/// Returns whether the lock was taken, false where there are none, or throws who has it.
bool lock(int file, int operation, const fs::path& path, std::string_view own_job) {
  const auto start = std::chrono::steady_clock::now();
  while (::flock(file, operation | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return false;
    const std::string owner = read_text(file, path.string());
    const bool own = !own_job.empty() && owner.starts_with(fmt::format("job {},", own_job));
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start;
    if (waited.count() > (own ? own_job_seconds : look_seconds)) refuse(path, owner);
    std::this_thread::sleep_for(look_interval);
  }
  return true;
}

}  // namespace

OutputLock::OutputLock(const fs::path& directory, const std::string& job)
    : path_(lock_path(directory)) {
  const Owner self = this_owner();
  const std::string name =
      job.empty() ? "a training that no launcher has started" : fmt::format("job {}", job);
  const std::string text =
      fmt::format("{}, process {} on host {}\n", name, self.process.pid, self.host);
  do {
    file_ = UniqueFd(::open(path_.c_str(), O_RDWR | O_CREAT | safe_flags, 0644));
    if (!file_) fail_errno(errno, "create " + path_.string());
    regular_bytes(file_.get(), path_.string());
    if (!lock(file_.get(), LOCK_EX, path_, job)) {
      log_warning(fmt::format("{}: {}: that no other job writes to this directory is not checked",
                              path_.string(), std::strerror(errno)));
      break;
    }
  } while (!is_current(file_.get(), path_));
  if (::ftruncate(file_.get(), 0) != 0) fail_errno(errno, "empty " + path_.string());
  write_fully_at(file_.get(), 0, std::as_bytes(std::span(text)), path_.string());
}

OutputLock::~OutputLock() {
  if (is_current(file_.get(), path_)) ::unlink(path_.c_str());
}

void refuse_locked_output(const fs::path& directory) {
  const fs::path path = lock_path(directory);
  const UniqueFd file(::open(path.c_str(), O_RDONLY | safe_flags));
  if (file) lock(file.get(), LOCK_SH, path, "");
}

}  // namespace dstrain::checkpoint
