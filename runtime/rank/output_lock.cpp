#include "runtime/rank/output_lock.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/deadline.h"
#include "runtime/base/log.h"
#include "runtime/base/printable.h"
#include "runtime/os/fd_io.h"
#include "runtime/os/shared_place.h"
#include "runtime/os/visibility.h"

namespace dstrain {
namespace {

namespace fs = std::filesystem;
using Holder = OutputLock::Holder;

constexpr double own_job_seconds = 60;  // twice the silence after which a host ends its ranks
constexpr double look_seconds = 0.02;
constexpr std::size_t text_bytes_max = 4096;
constexpr int lock_flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;

/// Returns the byte of the file for each holder.
struct flock byte_of(Holder holder) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = holder == Holder::launcher ? 0 : 1;
  lock.l_len = 1;
  return lock;
}

/// Makes the file private: any user who can read it could hold a lock that blocks its writers.
void close_to_readers(int file) {
  struct stat info {};
  if (::fstat(file, &info) != 0 || info.st_uid != ::geteuid()) return;
  const mode_t writers = info.st_mode & 0222U;
  const mode_t mode = writers | writers << 1U;
  if ((info.st_mode & 0777U) != mode) static_cast<void>(::fchmod(file, mode));
}

/// Whether another process holds it.
bool is_held(int file, Holder holder) {
  struct flock lock = byte_of(holder);
  return ::fcntl(file, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

std::string owner_of(int file, const fs::path& path) {
  std::string text(text_bytes_max, '\0');
  text.resize(read_fully_at(file, 0, std::as_writable_bytes(std::span(text)), path.string()));
  return text.substr(0, text.find('\n'));
}

bool is_own(const std::string& owner, const std::string& job) {
  return !job.empty() && owner.starts_with(fmt::format("job {},", job));
}

[[noreturn]] void refuse(const fs::path& path, const std::string& owner) {
  fail(ErrorCode::usage,
       "--output_dir {}: {} writes there; wait for its end or end it with dstrain stop, or choose "
       "another directory",
       path.parent_path().string(), owner.empty() ? "another job" : printable(owner));
}

/// Returns whether the lock was taken: false if the file system has none. Throws an error that
/// names the owner.
bool take(int file, Holder holder, const fs::path& path, const std::string& job) {
  Deadline deadline = Deadline::after(own_job_seconds);
  struct flock lock = byte_of(holder);
  while (::fcntl(file, F_OFD_SETLK, &lock) != 0) {
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EACCES) return false;
    const std::string owner = owner_of(file, path);
    const bool waits = holder == Holder::rank && is_own(owner, job) && !deadline.passed();
    if (!waits) refuse(path, owner);
    deadline.rest(look_seconds);
  }
  return true;
}

std::string text_of(const std::string& job) {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return fmt::format("{}, process {} on host {}\n",
                     job.empty() ? "a training that no launcher has started" : "job " + job,
                     ::getpid(), host.data());
}

}  // namespace

OutputLock::OutputLock(const fs::path& directory, Holder holder, const std::string& job)
    : path_(directory / file_name) {
  const Holder other = holder == Holder::launcher ? Holder::rank : Holder::launcher;
  do {
    int error = 0;
    await_visible(directory, holder == Holder::rank ? visible_seconds : 0, [&] {
      file_ = UniqueFd(::open(path_.c_str(), O_RDWR | O_CREAT | lock_flags, 0660));
      error = file_ ? 0 : errno;
      return error != ENOENT;
    });
    if (error != 0) fail_errno(error, "create " + path_.string());
    regular_bytes(file_.get(), path_.string());
    close_to_readers(file_.get());
    if (!take(file_.get(), holder, path_, job)) {
      log_warning(fmt::format("{}: {}: cannot check whether another job writes to this directory",
                              path_.string(), std::strerror(errno)));
      break;
    }
  } while (!is_in_place());
  if (is_held(file_.get(), other)) {
    const std::string owner = owner_of(file_.get(), path_);
    if (!is_own(owner, job)) refuse(path_, owner);
    return;
  }
  const std::string text = text_of(job);
  write_fully_at(file_.get(), 0, std::as_bytes(std::span(text)), path_.string());
  if (::ftruncate(file_.get(), static_cast<off_t>(text.size())) != 0) {
    fail_errno(errno, "write " + path_.string());
  }
  wrote_ = true;
}

bool OutputLock::is_in_place() const {
  return is_file_at(file_.get(), path_);
}

OutputLock::~OutputLock() {
  if (wrote_ && is_in_place()) ::unlink(path_.c_str());
}

void refuse_locked_output(const fs::path& directory) {
  const fs::path path = directory / OutputLock::file_name;
  const UniqueFd file(::open(path.c_str(), O_RDONLY | lock_flags));
  if (!file || (!is_held(file.get(), Holder::launcher) && !is_held(file.get(), Holder::rank))) {
    return;
  }
  refuse(path, owner_of(file.get(), path));
}

}  // namespace dstrain
