#pragma once
#include <string>

#include "runtime/base/unique_handle.h"

namespace dstrain::launcher {

/// The master port of a job. The reservation (an abstract unix socket, so that nothing is left
/// behind) lives as long as this object: two jobs started together never choose the same port.
struct ReservedPort {
  int port = 0;
  UniqueFd reservation;
};

/// A port that was typed: exactly this one. Throws Error{usage} when another job or program has it.
ReservedPort reserve_port(int port);

/// The first free port from `first` on. Throws Error{remote} when a thousand are taken.
ReservedPort reserve_free_port(int first);

}  // namespace dstrain::launcher
