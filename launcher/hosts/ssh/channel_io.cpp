#include "launcher/hosts/ssh/channel_io.h"

#include <algorithm>

namespace dstrain::launcher {

std::size_t writable_bytes(ssh_session session, ssh_channel channel) {
  if ((ssh_get_poll_flags(session) & SSH_WRITE_PENDING) != 0) return 0;
  return std::min<std::size_t>(ssh_channel_window_size(channel), channel_chunk_bytes);
}

int write_some(ssh_session session, ssh_channel channel, std::string_view bytes) {
  const std::size_t count = std::min(bytes.size(), writable_bytes(session, channel));
  if (count == 0) return 0;
  const int put = ssh_channel_write(channel, bytes.data(), static_cast<std::uint32_t>(count));
  return put == SSH_AGAIN ? 0 : put;
}

}  // namespace dstrain::launcher
