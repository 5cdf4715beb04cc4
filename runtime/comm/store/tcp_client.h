#pragma once
#include <string>

#include "runtime/base/socket.h"

namespace dstrain::comm {

/// Connects to the store's server, trying again until it is there, and proves the token. Throws
/// Error{timeout}, or Error{comm} when the server refuses or is none of ours.
UniqueFd connect_to_store(const Endpoint& endpoint, const std::string& token, double seconds);

}  // namespace dstrain::comm
