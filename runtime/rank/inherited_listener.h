#pragma once
#include "runtime/base/unique_handle.h"

/// The socket on which the agent of rank 0 listens at MASTER_PORT before rank 0 starts, so that no
/// other process can take the port meanwhile. Rank 0 under dstraind serves its store on it;
/// DSTRAIN_LISTENER_FD names the descriptor.
namespace dstrain {

namespace env {
inline constexpr const char* listener_fd = "DSTRAIN_LISTENER_FD";
}  // namespace env

/// Takes ownership of the descriptor, so that the rank's own children do not inherit it. None,
/// without side effects, if it is not a socket that listens at `port`.
UniqueFd inherited_listener(int port);

}  // namespace dstrain
