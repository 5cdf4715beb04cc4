#pragma once
#include <cstddef>
#include <string_view>

#include <libssh/libssh.h>

namespace dstrain::launcher {

/// The most that one call moves.
inline constexpr std::size_t channel_chunk_bytes = 32U << 10;

/// How much the channel may be given now: none while its window is closed, or while libssh holds
/// what it has not sent: it would queue all that one gives it.
std::size_t writable_bytes(ssh_session session, ssh_channel channel);

/// How much of `bytes`, of which there are some, the channel took now; negative when nobody there
/// reads them any more.
int write_some(ssh_session session, ssh_channel channel, std::string_view bytes);

}  // namespace dstrain::launcher
