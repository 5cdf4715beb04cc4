#include "launcher/job/job_directory.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "runtime/base/error.h"
#include "runtime/os/shared_place.h"

namespace dstrain::launcher {
namespace {

constexpr std::string_view suffix = ".sock";
constexpr int backlog = 64;

/// Where directories of sockets may lie, and what they are called there.
struct SocketDirectory {
  std::string directory;
  std::string name;
};

/// Best first. systemd's own is for finding jobs alone: a login that is not the user's last one, as
/// by su or cron, does not name it, and it goes with the last of those that do.
std::vector<SocketDirectory> socket_directories(bool for_finding) {
  std::vector<SocketDirectory> all;
  const char* const named = std::getenv("XDG_RUNTIME_DIR");
  const bool has_name = named != nullptr && *named == '/';
  const std::string usual = fmt::format("/run/user/{}", geteuid());
  if (has_name) all.push_back({named, "dstrain"});
  if (for_finding && (!has_name || usual != named)) all.push_back({usual, "dstrain"});
  all.push_back({"/tmp", fmt::format("dstrain-{}", geteuid())});
  return all;
}

/// Through the descriptor: a path may be longer than an address has room for.
sockaddr_un address_of(int directory, const std::string& name) {
  const std::string path = fmt::format("/proc/self/fd/{}/{}", directory, name);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    fail(ErrorCode::usage, "\"{}\" is not a job: the name is too long", name);
  }
  std::memcpy(address.sun_path, path.c_str(), path.size());
  return address;
}

/// `flags`: SOCK_NONBLOCK or 0.
UniqueFd open_socket(int flags) {
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
  if (!fd) fail_errno(errno, "make a socket");
  return fd;
}

/// At least a moment: 0 would be without end.
void set_send_timeout(int socket, Deadline deadline) {
  const int milliseconds = std::max(deadline.remaining_ms(), 1);
  const timeval limit{milliseconds / 1000, milliseconds % 1000 * 1000L};
  if (setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) != 0) {
    fail_errno(errno, "set the timeout of a connection");
  }
}

std::string socket_name(const std::string& job) {
  return job + std::string(suffix);
}

}  // namespace

JobDirectory JobDirectory::make() {
  std::string reason;
  for (const SocketDirectory& candidate : socket_directories(false)) {
    try {
      return JobDirectory(open_own_directory(own_directory(candidate.directory, candidate.name)));
    } catch (const Error& error) {
      reason = error.what();
    }
  }
  fail(ErrorCode::io, "{}", reason);
}

std::vector<JobDirectory> JobDirectory::find_all() {
  std::vector<JobDirectory> found;
  for (const SocketDirectory& candidate : socket_directories(true)) {
    for (const auto& path : own_directories(candidate.directory, candidate.name)) {
      try {
        found.push_back(JobDirectory(open_own_directory(path)));
      } catch (const Error&) {  // it has gone meanwhile
      }
    }
  }
  return found;
}

UniqueFd JobDirectory::listen(const std::string& job) const {
  const std::string early = job + ".new";  // a socket nobody listens on yet looks dead
  unlinkat(fd_.get(), early.c_str(), 0);
  UniqueFd fd = open_socket(SOCK_NONBLOCK);
  const sockaddr_un address = address_of(fd_.get(), early);
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(fd.get(), backlog) != 0 ||
      renameat(fd_.get(), early.c_str(), fd_.get(), socket_name(job).c_str()) != 0) {
    fail_errno(errno, "listen on the socket of job " + job);
  }
  return fd;
}

void JobDirectory::remove(const std::string& job) const noexcept {
  unlinkat(fd_.get(), socket_name(job).c_str(), 0);
}

UniqueFd JobDirectory::connect(const std::string& job, Deadline deadline) const {
  UniqueFd fd = open_socket(0);
  const sockaddr_un address = address_of(fd_.get(), socket_name(job));
  // While too many are waiting, connect() waits for the time that sends may take.
  set_send_timeout(fd.get(), deadline);
  while (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (errno == ECONNREFUSED) remove(job);
    if (errno != EINTR || deadline.passed()) return {};
    set_send_timeout(fd.get(), deadline);
  }
  return fd;
}

std::vector<std::string> JobDirectory::jobs() const {
  std::vector<std::string> names;
  std::error_code error;
  const auto path = fmt::format("/proc/self/fd/{}/", fd_.get());
  for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(suffix)) names.push_back(name.substr(0, name.size() - suffix.size()));
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace dstrain::launcher
