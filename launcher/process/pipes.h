#pragma once
#include "runtime/base/unique_handle.h"

namespace dstrain::launcher {

struct PipeEnds {
  UniqueFd read;
  UniqueFd write;
};

/// Both ends are closed by exec. Throws Error{io}.
PipeEnds make_pipe();

struct SocketPair {
  UniqueFd ours;
  UniqueFd theirs;
};

/// Two connected Unix sockets of this type, SOCK_STREAM for one, that exec closes. Throws
/// Error{io}.
SocketPair make_socket_pair(int type);

/// Throws Error{io}.
void make_non_blocking(int fd);

}  // namespace dstrain::launcher
