#pragma once
#include <string>
#include <string_view>

#include "launcher/hosts/ssh/ssh_link.h"
#include "tests/net/ssh_server.h"

namespace dstrain::test {

/// Skips the test where there is no sshd.
void need_sshd();

/// A server that the user reaches as "node" and that lets the user in. Skips where there is no
/// sshd.
struct KnownNode {
  explicit KnownNode(const SshServer::Settings& settings = {});
  SshServer server;
  SshUser user;
};

/// What came through a link until its end, and why it ended.
struct LinkEnd {
  std::string output;
  std::string reason;
};

/// Sends `input` and its end, and reads until the link has ended.
LinkEnd finish(launcher::AgentLink& link, std::string_view input = "");

launcher::SshTarget target(const std::string& host, const std::string& command);

/// A link to the target from its beginning to its end.
LinkEnd run(const launcher::SshTarget& target, std::string_view input = "");

}  // namespace dstrain::test
