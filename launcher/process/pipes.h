#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "runtime/base/function_ref.h"
#include "runtime/base/unique_handle.h"

namespace dstrain::launcher {

struct PipeEnds {
  UniqueFd read;
  UniqueFd write;
};

/// Both ends are closed by exec. Throws Error{io}.
PipeEnds make_pipe();

/// A file without a name that holds `text`, to be read from its beginning: as a child's stdin, or
/// by way of /proc/self/fd. Closed by exec. Throws Error{io}.
UniqueFd make_text_file(const std::string& text);

struct SocketPair {
  UniqueFd ours;
  UniqueFd theirs;
};

/// Two connected Unix sockets of this type, SOCK_STREAM for one, that exec closes. Throws
/// Error{io}.
SocketPair make_socket_pair(int type);

/// Throws Error{io}.
void make_non_blocking(int fd);

/// Reads the content of a non-blocking `pipe`, in parts. Closes it at its end.
void read_available(UniqueFd& pipe, FunctionRef<void(std::string_view)> on_part);

/// Appends the content of a non-blocking `pipe` to `tail` and keeps its last `bytes_max`. Closes
/// the pipe at its end.
void read_tail(UniqueFd& pipe, std::string& tail, std::size_t bytes_max);

}  // namespace dstrain::launcher
