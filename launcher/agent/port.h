#pragma once
#include <string>

#include "launcher/protocol/protocol.h"
#include "runtime/base/unique_handle.h"

namespace dstrain::launcher {

/// The master port of a job. The reservation (an abstract unix socket, so that nothing is left
/// behind) lives as long as this object: two jobs started together never choose the same port.
struct ReservedPort {
  int port = 0;
  UniqueFd reservation;
};

/// Throws Error{usage} that says what to do when another job or program has the only port that will
/// do, and Error{remote} when a thousand are taken.
ReservedPort reserve_port(const PortRequest& request);

}  // namespace dstrain::launcher
