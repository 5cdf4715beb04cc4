#pragma once
#include <string>

#include "runtime/base/socket.h"

namespace dstrain::comm {

/// Connects to the store's server, trying again until it is there or `deadline` passes, and proves
/// the token. Throws
/// Error{timeout}, or Error{comm} when the server refuses or is none of ours.
UniqueFd connect_to_store(const Endpoint& endpoint, const std::string& token, Deadline deadline);

}  // namespace dstrain::comm
