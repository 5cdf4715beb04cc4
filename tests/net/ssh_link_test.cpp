// Links over real OpenSSH servers.
#include <array>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <fmt/format.h>

#include "runtime/os/socket.h"
#include "tests/net/link_end.h"
#include "tests/net/ssh_server.h"
#include "tests/support/catch.h"
#include "tests/support/process_end.h"

using namespace dstrain;
using namespace dstrain::test;
using Catch::Matchers::ContainsSubstring;
using launcher::AgentLink;

namespace fs = std::filesystem;

TEST_CASE_METHOD(KnownNode,
                 "SshLink: bytes come through both ways and none is lost",
                 "[net][ssh]") {
  std::string bytes;
  for (int i = 0; i < 8'000'000; ++i) bytes += static_cast<char>(i * 7 + i / 251);
  const LinkEnd ended = run(target("node", "cat"), bytes);
  CHECK((ended.output == bytes));
  CHECK(ended.reason == "");
}

TEST_CASE_METHOD(KnownNode, "SshLink: how the remote command ended is told", "[net][ssh]") {
  CHECK(run(target("node", "echo bad luck >&2; exit 3")).reason ==
        "the remote command ended with status 3: bad luck");
  CHECK_THAT(run(target("node", "/no/such/dstrain agent")).reason,
             ContainsSubstring("status 127") && ContainsSubstring("/no/such/dstrain"));
  CHECK_THAT(run(target("node", "kill -9 $$")).reason, ContainsSubstring("killed by SIGKILL"));
}

TEST_CASE_METHOD(KnownNode, "SshLink: a server that is lost in the middle", "[net][ssh]") {
  const auto link = launcher::connect_ssh_agent(target("node", "echo up; exec cat"));
  std::array<char, 3> buffer{};
  REQUIRE(recv(link->read_fd(), buffer.data(), buffer.size(), MSG_WAITALL) == 3);
  server.kill_connections();
  CHECK_THAT(finish(*link).reason, ContainsSubstring("the connection was lost"));
}

TEST_CASE_METHOD(KnownNode, "SshLink: the remote command ends with the link", "[net][ssh]") {
  const std::string command = GENERATE("exec cat", "exec yes");
  CAPTURE(command);
  const fs::path held = server.home() / "held";  // by every process of the command
  REQUIRE(::mkfifo(held.c_str(), 0600) == 0);
  const UniqueFd fd(::open(held.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  auto link = launcher::connect_ssh_agent(
      target("node", "exec 9>" + held.string() + "; echo up; " + command));
  std::array<char, 3> buffer{};
  REQUIRE(recv(link->read_fd(), buffer.data(), buffer.size(), MSG_WAITALL) == 3);
  link.reset();
  CHECK(wait_until_ready(fd.get(), POLLIN, Deadline::after(hang_seconds)));
  CHECK(::read(fd.get(), buffer.data(), 1) == 0);
}

TEST_CASE("SshLink: many hosts at once", "[net][ssh]") {
  need_sshd();
  const SshServer server({});
  const SshUser user;
  user.befriend(server, "node*");
  std::vector<std::unique_ptr<AgentLink>> links;
  for (int i = 0; i < 32; ++i) {
    links.push_back(launcher::connect_ssh_agent(target(fmt::format("node{}", i), "echo in")));
  }
  for (const auto& link : links) {
    const LinkEnd ended = finish(*link);
    CHECK(ended.output == "in\n");
    CHECK(ended.reason == "");
  }
}

TEST_CASE("SshLink: more hosts than may log in at once", "[net][ssh]") {
  need_sshd();
  // Of four that have not logged in the fourth is dropped, and so are those after it.
  SshServer::Settings settings;
  settings.options = {"MaxStartups 3:100:3"};
  const SshServer server(std::move(settings));
  const SshUser user;
  user.befriend(server, "node*");
  std::vector<std::unique_ptr<AgentLink>> links;
  for (int i = 0; i < 24; ++i) {
    links.push_back(launcher::connect_ssh_agent(target(fmt::format("node{}", i), "echo in")));
  }
  for (const auto& link : links) {
    const LinkEnd ended = finish(*link);
    CHECK(ended.output == "in\n");
    CHECK(ended.reason == "");
  }
}
