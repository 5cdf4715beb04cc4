#pragma once
#include <string>

#include "launcher/protocol/protocol.h"
#include "runtime/base/unique_handle.h"

namespace dstrain::launcher {

/// The master port of a job.
struct ReservedPort {
  int port = 0;
  /// Listens there, so that nobody else can: at the address of the request, else at all. None where
  /// this machine does not have that address, or does not know it yet: rank 0 will see.
  UniqueFd listener;
  /// Keeps the port from other launches of this user, as long as it is open: a program that listens
  /// there itself may take its time to do so.
  UniqueFd claim;
};

/// Throws Error{usage} that says what to do when another job or program has the only port that will
/// do, and Error{remote} when all are taken.
ReservedPort reserve_port(const PortRequest& request);

}  // namespace dstrain::launcher
