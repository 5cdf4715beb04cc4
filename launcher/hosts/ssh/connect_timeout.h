#pragma once
#include <functional>
#include <string_view>

#include <libssh/libssh.h>

#include "runtime/base/deadline.h"

namespace dstrain::launcher {

/// How long connecting may take. All waits end once `stop_fd` has input. For one thread.
struct ConnectTimeout {
  int stop_fd;
  double seconds;
  mutable Deadline deadline = Deadline::after(seconds);  ///< put off by standstills in its waits
};

/// Waits until the session's socket is ready. Throws Error{timeout} that names `what`, or
/// Error{aborted}.
void wait_for_session(ssh_session session, const ConnectTimeout& timeout, std::string_view what);

/// Waits for so long. Throws Error{timeout} if `timeout` ends first, or Error{aborted}.
void rest(const ConnectTimeout& timeout, double seconds, std::string_view what);

/// Runs `body` on a separate thread and returns when it has ended, or throws what it throws. If
/// `timeout` ends first, leaves the thread behind in the call that blocks it (a name server, an SSH
/// agent that asks its user), so `body` must own all that it touches.
void run_apart(const ConnectTimeout& timeout, std::string_view what, std::function<void()> body);

/// Starts a detached thread with a small stack and all signals blocked.
void start_thread(std::function<void()> body);

}  // namespace dstrain::launcher
