#pragma once
#include <string>

#include "launcher/protocol/protocol.h"
#include "runtime/base/unique_handle.h"

namespace dstrain::launcher {

/// The master port of a job.
struct ReservedPort {
  int port = 0;
  /// Listens there, so that no other program can: at the address of the request, else at all. None
  /// if this machine does not have that address, or not yet: rank 0 reports it.
  UniqueFd listener;
  /// Keeps the port from other launches of this user, as long as it is open: a program that itself
  /// listens there may start to do so late.
  UniqueFd claim;
};

/// Throws Error{usage} with a remedy if another job or program has the requested port, and
/// Error{remote} if all ports are taken.
ReservedPort reserve_port(const PortRequest& request);

}  // namespace dstrain::launcher
