#pragma once
#include <functional>
#include <string_view>

#include <libssh/libssh.h>

#include "runtime/base/deadline.h"

namespace dstrain::launcher {

/// How long connecting may take. Nothing waits any more once `stop_fd` has input. Of one thread.
struct ConnectTimeout {
  int stop_fd;
  double seconds;
  mutable Deadline deadline = Deadline::after(seconds);  ///< put off by standstills in its waits
};

/// Waits until the session's socket is ready. Throws Error{timeout} that names what was waited for,
/// or Error{aborted}.
void wait_for_session(ssh_session session, const ConnectTimeout& timeout, std::string_view what);

/// Waits for so long. Throws Error{timeout} where `timeout` ends first, or Error{aborted}.
void rest(const ConnectTimeout& timeout, double seconds, std::string_view what);

/// Runs `body` on a thread of its own and returns when it has, or throws what it throws. When
/// timeout ends first, that thread is left behind with the call that holds it (a name server, an
/// SSH agent that asks its user): `body` must own all that it touches.
void run_apart(const ConnectTimeout& timeout, std::string_view what, std::function<void()> body);

/// Starts a detached thread with a small stack and all signals blocked.
void start_thread(std::function<void()> body);

}  // namespace dstrain::launcher
