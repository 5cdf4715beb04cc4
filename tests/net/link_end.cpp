#include "tests/net/link_end.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <poll.h>
#include <sys/socket.h>

#include "tests/support/skip.h"

namespace dstrain::test {

using launcher::AgentLink;
using launcher::SshTarget;

void need_sshd() {
  if (const auto reason = SshServer::refusal()) skip(*reason);
}

KnownNode::KnownNode(const SshServer::Settings& settings) : server((need_sshd(), settings)) {
  user.befriend(server, "node");
}

LinkEnd finish(AgentLink& link, std::string_view input) {
  LinkEnd ended;
  std::array<char, 65536> buffer{};
  bool open = true;
  while (open) {
    pollfd fd{link.read_fd(), static_cast<short>(POLLIN | (input.empty() ? 0 : POLLOUT)), 0};
    if (poll(&fd, 1, -1) < 0) break;
    if ((fd.revents & POLLOUT) != 0) {
      const ssize_t put =
          send(link.write_fd(), input.data(), std::min<std::size_t>(input.size(), 50'000),
               MSG_NOSIGNAL | MSG_DONTWAIT);
      if (put > 0) input.remove_prefix(static_cast<std::size_t>(put));
      if (input.empty()) shutdown(link.write_fd(), SHUT_WR);
    }
    if ((fd.revents & (POLLIN | POLLHUP)) == 0) continue;
    const ssize_t got = recv(link.read_fd(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    open = got > 0 || (got < 0 && errno == EAGAIN);
    if (got > 0) ended.output.append(buffer.data(), static_cast<std::size_t>(got));
  }
  ended.reason = link.end_reason();
  return ended;
}

LinkEnd run(const SshTarget& target, std::string_view input) {
  return finish(*launcher::connect_ssh_agent(target), input);
}

SshTarget target(const std::string& host, const std::string& command) {
  SshTarget target;
  target.host = host;
  target.remote_command = command;
  return target;
}

}  // namespace dstrain::test
