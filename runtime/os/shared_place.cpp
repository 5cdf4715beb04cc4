#include "runtime/os/shared_place.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/os/fd_io.h"
#include "runtime/os/file.h"
#include "runtime/os/random_bytes.h"

namespace dstrain {
namespace {

constexpr int new_file_flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;

constexpr int safe_flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;

[[noreturn]] void fail_to_open(const std::filesystem::path& path) {
  const int error = errno;
  if (error != ELOOP) fail_errno(error, "open " + path.string());
  fail(ErrorCode::io, "open {}: a symbolic link, which is not followed; remove it", path.string());
}

std::string name_of_user(uid_t user) {
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  const bool known = ::getpwuid_r(user, &entry, buffer.data(), buffer.size(), &found) == 0;
  return known && found != nullptr ? fmt::format("{} (uid {})", entry.pw_name, user)
                                   : fmt::format("uid {}", user);
}

/// Throws unless only this user and root can write the open file.
void check_trust(int fd, const std::string& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) fail_errno(errno, "look at " + path);
  if (info.st_uid != ::geteuid() && info.st_uid != 0) {
    fail(ErrorCode::input,
         "{}: belongs to {}, who could make it run any program as you; remove it, run dstrain "
         "in another directory, or chown it to yourself if you trust its contents",
         path, name_of_user(info.st_uid));
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    fail(ErrorCode::input,
         "{}: of {}, is writable by others (mode {:03o}), who could make it run any program as "
         "you; check its contents, then: chmod go-w {}",
         path, name_of_user(info.st_uid), info.st_mode & 0777U, path);
  }
}

bool is_own(const std::filesystem::path& directory) {
  try {
    open_own_directory(directory);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

UniqueFd open_to_append(const std::filesystem::path& path, Content content) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | safe_flags, 0666));
  const bool no_reader = !fd && errno == ENXIO;  // for a FIFO
  if (!fd && !no_reader) fail_to_open(path);
  struct stat info {};
  if (no_reader || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    fail(ErrorCode::io, "open {}: not a regular file; remove it", path.string());
  }
  if (content == Content::drop && ::ftruncate(fd.get(), 0) != 0) {
    fail_errno(errno, "empty " + path.string());
  }
  return fd;
}

UniqueFd open_to_read(const std::filesystem::path& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | safe_flags));
  if (!fd) fail_to_open(path);
  return fd;
}

UniqueFd open_own_directory(const std::filesystem::path& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) fail_errno(errno, "open " + path.string());
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) fail_errno(errno, "stat " + path.string());
  if (info.st_uid != ::geteuid() || (info.st_mode & 077U) != 0) {
    fail(ErrorCode::io, "{} is open to other users: remove it, or chmod 700 if it is yours",
         path.string());
  }
  return fd;
}

std::vector<std::filesystem::path> own_directories(const std::filesystem::path& directory,
                                                   const std::string& name) {
  std::vector<std::filesystem::path> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    const std::string other = entry.path().filename().string();
    if (other != name && !other.starts_with(name + "-")) continue;
    if (is_own(entry.path())) found.push_back(entry.path());
  }
  std::ranges::sort(found);
  return found;
}

std::filesystem::path own_directory(const std::filesystem::path& directory,
                                    const std::string& name) {
  std::filesystem::path usual = directory / name;
  if (::mkdir(usual.c_str(), S_IRWXU) == 0) return usual;
  if (errno != EEXIST) fail_errno(errno, "mkdir " + usual.string());
  if (const auto found = own_directories(directory, name); !found.empty()) return found.front();
  const std::filesystem::path other = usual.string() + "-" + to_hex(random_bytes<8>());
  if (::mkdir(other.c_str(), S_IRWXU) != 0) fail_errno(errno, "mkdir " + other.string());
  const auto found = own_directories(directory, name);  // the first may belong to another process
  return found.empty() ? other : found.front();
}

bool is_file_at(int fd, const std::filesystem::path& path) {
  struct stat opened {};
  struct stat named {};
  return ::fstat(fd, &opened) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

TemporaryFile make_temporary(const std::filesystem::path& path) {
  TemporaryFile made{path.string() + ".tmp", {}};
  ::unlink(made.name.c_str());
  made.fd = UniqueFd(::open(made.name.c_str(), new_file_flags, 0644));
  if (!made.fd && errno == EEXIST) {
    made.name += fmt::format("-{}", to_hex(random_bytes<8>()));
    made.fd = UniqueFd(::open(made.name.c_str(), new_file_flags, 0644));
  }
  if (!made.fd) fail_errno(errno, "create " + made.name);
  return made;
}

void refuse_foreign_link(const std::filesystem::path& path) {
  constexpr int links_max = 40;  // the kernel's own limit
  std::deque<std::filesystem::path> ahead(path.begin(), path.end());
  std::filesystem::path walked;
  for (int links = 0; !ahead.empty();) {
    const std::filesystem::path here = walked / ahead.front();
    ahead.pop_front();
    struct stat info {};
    if (::lstat(here.empty() ? "." : here.c_str(), &info) != 0) return;
    if (!S_ISLNK(info.st_mode)) {
      walked = here;
      continue;
    }
    if (info.st_uid != ::geteuid() && info.st_uid != 0) {
      fail(ErrorCode::input,
           "{} a symbolic link of {}, which is not followed; remove it, or choose another path",
           here == path ? path.string() + ":"
                        : fmt::format("{}: {} is", path.string(), here.string()),
           name_of_user(info.st_uid));
    }
    std::error_code error;
    const std::filesystem::path target = std::filesystem::read_symlink(here, error);
    if (error || ++links > links_max) return;  // the later open reports the reason
    ahead.insert(ahead.begin(), target.begin(), target.end());
  }
}

std::error_code make_directories(const std::filesystem::path& path) {
  refuse_foreign_link(path);
  std::error_code error;
  std::filesystem::create_directories(path, error);
  return error;
}

std::string read_trusted_text(const std::filesystem::path& path, Bytes bytes_max) {
  refuse_foreign_link(path);
  const UniqueFd fd = open_regular(path);
  check_trust(fd.get(), path.string());
  return read_small_text(fd.get(), bytes_max, path.string());
}

std::string other_owner(const std::filesystem::path& path) {
  struct stat info {};
  const bool other = ::lstat(path.c_str(), &info) == 0 && info.st_uid != ::geteuid();
  return other ? name_of_user(info.st_uid) : "";
}

}  // namespace dstrain
