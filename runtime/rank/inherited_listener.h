#pragma once
#include "runtime/base/unique_handle.h"

/// The socket on which the agent of rank 0 listens at MASTER_PORT before there is a rank, so that
/// nobody can take the port meanwhile. Rank 0 of a dstraind serves its store there; its
/// DSTRAIN_LISTENER_FD names the descriptor.
namespace dstrain {

namespace env {
inline constexpr const char* listener_fd = "DSTRAIN_LISTENER_FD";
}  // namespace env

/// Takes the descriptor over, so that the rank's own children do not inherit it. None, and nothing
/// is touched, where it is no socket that listens at `port`.
UniqueFd inherited_listener(int port);

}  // namespace dstrain
