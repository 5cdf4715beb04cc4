#pragma once
#include <optional>

#include <sys/types.h>

namespace dstrain {

/// Returns the user who made the other end of a connected TCP socket, from the kernel (proc(5),
/// /proc/net/tcp). None if that is unknown: the other end is on another machine or in another
/// network namespace, is closed, or was not accepted yet.
std::optional<uid_t> tcp_peer_user(int socket);

/// Whether that is the user of this process, or root.
bool is_own_tcp_peer(int socket);

}  // namespace dstrain
