#pragma once
#include <cerrno>
#include <cstring>
#include <functional>
#include <span>
#include <string>

#include <linux/capability.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/base/unique_handle.h"
#include "runtime/os/fd_io.h"

namespace dstrain::test {

/// Runs `body` in a process of its own, which may change its limits, user and mounts, and returns
/// what it returns. What it throws is returned as "threw: ...".
inline std::string in_child(const std::function<std::string()>& body) {
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
  if (WIFSIGNALED(status)) return "killed by " + std::to_string(WTERMSIG(status));
  return WEXITSTATUS(status) == 0 ? text : "ended with " + std::to_string(WEXITSTATUS(status));
}

/// In a child: mounts a file system of this type at `directory`, for it alone. Returns why not, or
/// "".
inline std::string mount_for_me(const std::string& type,
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

/// In a child: it and the programs that it starts may lock this much memory, also as root. Returns
/// why not, or "".
inline std::string limit_locked_memory(rlim_t bytes) {
  // Fails only for a user who has no such right to drop.
  ::prctl(PR_CAPBSET_DROP, CAP_IPC_LOCK, 0, 0, 0);
  const rlimit limit{bytes, bytes};
  if (::setrlimit(RLIMIT_MEMLOCK, &limit) == 0) return {};
  return std::string("skip: no limit of locked memory: ") + std::strerror(errno);
}

}  // namespace dstrain::test
