// Who a host is, and whom it lets in.
#include <fstream>

#include <sys/socket.h>
#include <sys/un.h>

#include <fmt/format.h>

#include "runtime/os/socket.h"
#include "tests/net/known_server.h"
#include "tests/net/link_end.h"
#include "tests/net/ssh_server.h"
#include "tests/support/catch.h"
#include "tests/support/process_end.h"
#include "tests/support/skip.h"

using namespace dstrain;
using namespace dstrain::test;
using Catch::Matchers::ContainsSubstring;
using launcher::SshTarget;

namespace fs = std::filesystem;

namespace {

/// A socket that takes what comes and never answers. It stays open until the process has ended: the
/// thread that was left waiting for it must not wake while libssh's memory is looked at.
void listen_for_ever(const std::string& path) {
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(static_cast<char*>(address.sun_path), sizeof address.sun_path - 1);
  REQUIRE(::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(::listen(listener, 1) == 0);
}

}  // namespace

TEST_CASE_METHOD(KnownNode, "SshLink: keys come from files and from the SSH agent", "[net][ssh]") {
  const TempDir folder;
  fs::rename(user.key(), folder.path() / "elsewhere");
  CHECK_THAT(run(target("node", "echo in")).reason,
             ContainsSubstring("does not let " + server.user()));
  SECTION("a file that the configuration names") {
    user.configure("IdentityFile " + (folder.path() / "elsewhere").string() + "\n");
    CHECK(run(target("node", "echo in")).output == "in\n");
  }
  SECTION("an agent") {
    const std::string socket = folder.path() / "agent";
    RankProcess agent({{find_program("ssh-agent"), "-D", "-a", socket}, {}});
    REQUIRE_THAT(agent.read_line(), ContainsSubstring(socket));
    ::setenv("SSH_AUTH_SOCK", socket.c_str(), 1);
    RankProcess add({{find_program("ssh-add"), "-q", folder.path() / "elsewhere"},
                     {"SSH_AUTH_SOCK=" + socket}});
    REQUIRE(add.wait() == 0);
    CHECK(run(target("node", "echo in")).output == "in\n");
  }
}

TEST_CASE_METHOD(KnownNode,
                 "SshLink: a key that needs a passphrase is not asked for one",
                 "[net][ssh]") {
  const std::string format = GENERATE("RFC4716", "PEM");
  fs::remove(user.key());
  run_program({find_program("ssh-keygen"), "-q", "-t", "rsa", "-b", "2048", "-m", format, "-N",
               "open sesame", "-f", user.ssh() / "id_rsa"});
  server.let_in(user.ssh() / "id_rsa.pub");
  if (GENERATE(true, false)) fs::remove(user.ssh() / "id_rsa.pub");
  CHECK_THAT(run(target("node", "echo in")).reason,
             ContainsSubstring("id_rsa (it has a passphrase"));
}

TEST_CASE_METHOD(KnownNode, "SshLink: an SSH agent that never answers holds nobody", "[net][ssh]") {
  const TempDir folder;
  const std::string path = folder.path() / "agent";
  listen_for_ever(path);
  ::setenv("SSH_AUTH_SOCK", path.c_str(), 1);
  SshTarget stuck = target("node", "cat");
  stuck.connect_timeout_seconds = 0.5;
  // A busy machine may be that slow before the agent is asked.
  for (std::string reason; reason.find("waiting for the host to accept") == reason.npos;) {
    stuck.connect_timeout_seconds *= 2;
    reason = run(stuck).reason;
    REQUIRE_THAT(reason, ContainsSubstring(fmt::format("no answer within {} s while waiting for",
                                                       stuck.connect_timeout_seconds)));
    REQUIRE(stuck.connect_timeout_seconds < hang_seconds);
  }
}

TEST_CASE_METHOD(KnownNode,
                 "SshLink: an unknown key is shown and accepted only when told to",
                 "[net][ssh]") {
  user.configure(GENERATE("", "StrictHostKeyChecking yes\n",
                          "Match all\nStrictHostKeyChecking ask\nStrictHostKeyChecking no\n"));
  fs::remove(user.known_hosts());
  if (GENERATE(true, false)) std::ofstream(user.known_hosts()) << "other ssh-ed25519 AAAA";
  SshTarget node = target("node", "echo in");
  const LinkEnd refused = run(node);
  CHECK(refused.output == "");
  CHECK_THAT(refused.reason, ContainsSubstring(server.fingerprint()) &&
                                 ContainsSubstring("--accept_new_host_keys") &&
                                 ContainsSubstring("ssh " + server.user() + "@node"));
  node.accept_new_host_keys = true;
  CHECK(run(node).output == "in\n");
  node.accept_new_host_keys = false;
  CHECK(run(node).output == "in\n");
}

TEST_CASE_METHOD(KnownNode,
                 "SshLink: the configuration may accept new keys of a host",
                 "[net][ssh]") {
  fs::remove(user.known_hosts());
  const std::string included = user.ssh() / "more.conf";
  std::ofstream(included) << "stricthostkeychecking = accept-new\n";
  const auto [text, accepts] = GENERATE(table<std::string, bool>(
      {{"StrictHostKeyChecking accept-new\n", true},
       {"StrictHostKeyChecking no\nProxyJump none\n", true},
       {"Host other\nStrictHostKeyChecking no\nHost node\n", false},
       {"Host n*\n  StrictHostKeyChecking=off\nHost *\n  StrictHostKeyChecking yes\n", true},
       {"Include more.conf\n", true},
       {"Host other\nInclude more.conf\n", false}}));
  CAPTURE(text);
  user.configure(text);
  const LinkEnd end = run(target("node", "echo in"));
  CAPTURE(end.reason);
  CHECK((end.output == "in\n") == accepts);
  CHECK(fs::exists(user.known_hosts()) == accepts);
  if (!accepts) CHECK_THAT(end.reason, ContainsSubstring("StrictHostKeyChecking accept-new"));
}

TEST_CASE_METHOD(KnownNode,
                 "SshLink: a changed key is fatal whatever was asked for",
                 "[net][ssh]") {
  user.configure(GENERATE("", "StrictHostKeyChecking no\n"));
  if (GENERATE(true, false))
    run_program({find_program("ssh-keygen"), "-q", "-H", "-f", user.known_hosts()});
  const std::string before = server.fingerprint();
  server.restart_with_new_key();
  SshTarget node = target("node", "echo in");
  node.accept_new_host_keys = GENERATE(true, false);
  const LinkEnd refused = run(node);
  CHECK(refused.output == "");
  CHECK_THAT(refused.reason, ContainsSubstring("CHANGED") && ContainsSubstring(before) &&
                                 ContainsSubstring(server.fingerprint()) &&
                                 ContainsSubstring(user.known_hosts().string() + ":1"));
}

TEST_CASE_METHOD(KnownNode,
                 "SshLink: the machine's known hosts count beside the user's",
                 "[net][ssh]") {
  const fs::path global = user.home() / "global";
  fs::rename(user.known_hosts(), global);
  user.configure("GlobalKnownHostsFile " + global.string() + "\n");
  CHECK(run(target("node", "echo in")).output == "in\n");
  const std::string before = server.fingerprint();
  server.restart_with_new_key();
  SshTarget node = target("node", "echo in");
  node.accept_new_host_keys = GENERATE(true, false);
  const LinkEnd refused = run(node);
  CHECK(refused.output == "");
  CHECK_THAT(refused.reason, ContainsSubstring("CHANGED") && ContainsSubstring(before) &&
                                 ContainsSubstring(global.string() + ":1"));
  CHECK_FALSE(fs::exists(user.known_hosts()));
}

TEST_CASE_METHOD(KnownNode,
                 "SshLink: a key that only libssh finds to differ is fatal too",
                 "[net][ssh]") {
  fs::remove(user.known_hosts());
  SshTarget node = target("node", "echo in");
  node.accept_new_host_keys = GENERATE(true, false);
  say_of_servers(GENERATE(KnownServer::changed, KnownServer::other));
  const LinkEnd refused = run(node);
  say_of_servers({});
  CHECK(refused.output == "");
  CHECK_THAT(refused.reason, ContainsSubstring("CHANGED") &&
                                 ContainsSubstring(server.fingerprint()) &&
                                 ContainsSubstring("ssh-keygen -R"));
  CHECK_FALSE(fs::exists(user.known_hosts()));
}

TEST_CASE_METHOD(KnownNode, "SshLink: a known key of another type is a change", "[net][ssh]") {
  const fs::path other = user.home() / "other";
  run_program({find_program("ssh-keygen"), "-q", "-t", "ecdsa", "-N", "", "-f", other});
  std::ifstream file(other.string() + ".pub");
  std::string key;
  std::getline(file, key);
  std::ofstream(user.known_hosts())
      << fmt::format("[{}]:{} {}\n", server.address(), server.port(), key);
  SshTarget node = target("node", "echo in");
  node.accept_new_host_keys = GENERATE(true, false);
  const LinkEnd refused = run(node);
  CHECK(refused.output == "");
  CHECK_THAT(refused.reason,
             ContainsSubstring("CHANGED") && ContainsSubstring(user.known_hosts().string() + ":1"));
}

TEST_CASE_METHOD(KnownNode, "SshLink: a key that the host does not know", "[net][ssh]") {
  std::ofstream(server.home() / ".ssh/authorized_keys", std::ios::trunc);
  CHECK_THAT(run(target("node", "cat")).reason, ContainsSubstring("tried " + user.key().string()) &&
                                                    ContainsSubstring("it accepts publickey") &&
                                                    ContainsSubstring("ssh-copy-id"));
  fs::remove(user.key());
  fs::remove(user.public_key());
  CHECK_THAT(run(target("node", "cat")).reason,
             ContainsSubstring("no SSH agent (SSH_AUTH_SOCK) and no key"));
  user.configure("HostKeyAlias other\n");
  CHECK_THAT(run(target("node", "cat")).reason,
             ContainsSubstring("ignores HostKeyAlias") && ContainsSubstring("--ssh_command"));
}

TEST_CASE_METHOD(KnownNode,
                 "SshLink: a condition that libssh does not know is refused, not passed over",
                 "[net][ssh]") {
  user.configure("Match final all\n  ForwardAgent no\nMatch host other\n  Port 1\n");
  CHECK(run(target("node", "echo in")).output == "in\n");
  user.configure("Match originalhost node\n  ProxyJump gate\n");
  CHECK_THAT(run(target("node", "cat")).reason,
             ContainsSubstring("\"Match originalhost\"") && ContainsSubstring("--ssh_command"));
}

TEST_CASE_METHOD(KnownNode,
                 "SshLink: the configuration file and the port may be given",
                 "[net][ssh]") {
  const TempDir folder;
  const std::string other = folder.path() / "100% mine";
  std::ofstream(other) << "Host other\n  HostName 127.0.0.1\n  Port 1\n  User " << server.user()
                       << "\n";
  CHECK_THAT(run(target("other", "cat")).reason, ContainsSubstring("cannot resolve"));
  SshTarget node = target("other", "echo in");
  node.config_file = other;
  CHECK_THAT(run(node).reason, ContainsSubstring("refused at 127.0.0.1:1;"));
  node.port = server.port();
  CHECK(run(node).output == "in\n");
  node.config_file = "/no/such/file";
  CHECK_THAT(run(node).reason,
             ContainsSubstring("--ssh_config /no/such/file: cannot read the file"));
}

TEST_CASE("SshLink: through a jump host", "[net][ssh]") {
  need_sshd();
  if (find_program("ssh").empty()) skip("there is no ssh (Debian: openssh-client)");
  const SshServer gate({});
  const SshServer server({});
  const SshUser user;
  user.befriend(gate, "gate");
  user.befriend(server, "node");
  const TempDir folder;
  const std::string config = folder.path() / "config";
  fs::copy_file(user.ssh() / "config", config);
  std::ofstream(config, std::ios::app)
      << user.for_program_ssh("gate") << "Host node\n  ProxyJump gate\n";
  SshTarget node = target("node", "echo $SSH_CONNECTION");
  node.config_file = config;
  const LinkEnd ended = run(node);
  CHECK(ended.reason == "");
  CHECK_THAT(ended.output, ContainsSubstring(fmt::format("127.0.0.1 {}", server.port())));
  std::ofstream(gate.home() / ".ssh/authorized_keys", std::ios::trunc);
  CHECK_THAT(run(node).reason,
             ContainsSubstring("ProxyJump printed") && ContainsSubstring("Permission denied"));
}

TEST_CASE_METHOD(KnownNode, "SshLink: through a command, which no shell reads", "[net][ssh]") {
  if (find_program("ssh").empty()) skip("there is no ssh (Debian: openssh-client)");
  const SshServer gate({});
  user.befriend(gate, "gate");
  user.configure(user.for_program_ssh("gate"));
  const std::string ssh = fmt::format("ssh -F '{}' ", (user.ssh() / "config").string());
  const auto proxy = [&](const std::string& command) {
    user.configure("Host node\n  ProxyCommand " + command + "\n");
    return run(target("node", "echo in"));
  };
  SECTION("words and quotes") {
    const LinkEnd ended = proxy("exec " + ssh + "-W \"%h\":%p gate");
    CHECK(ended.reason == "");
    CHECK(ended.output == "in\n");
  }
  SECTION("a percent sign is written twice") {
    const fs::path program = user.home() / "to%gate";
    std::ofstream(program) << "#!/bin/sh\nexec " << ssh << "-W \"$1:$2\" gate\n";
    fs::permissions(program, fs::perms::owner_all);
    CHECK(proxy((user.home() / "to%%gate").string() + " %h %p").output == "in\n");
  }
  SECTION("what is for a shell is refused with the remedy") {
    const std::string asks = GENERATE("2>/dev/null", "| cat", "\"$HOME\"", "`true`", "& true");
    CHECK_THAT(proxy(ssh + "-W %h:%p gate " + asks).reason,
               ContainsSubstring("needs a shell") && ContainsSubstring("--ssh_command ssh"));
  }
  SECTION("a program that is not there") {
    CHECK_THAT(proxy("no-such-proxy %h %p").reason,
               ContainsSubstring("no-such-proxy was not found on PATH"));
  }
  SECTION("a program that says nothing") {
    user.configure("Host node\n  ProxyCommand sleep 600\n");
    SshTarget node = target("node", "echo in");
    node.connect_timeout_seconds = 0.5;
    CHECK_THAT(
        run(node).reason,
        ContainsSubstring("through a jump host or proxy that printed nothing; try it by hand: "
                          "sleep 600"));
  }
  SECTION("a quote that is not closed") {
    CHECK_THAT(proxy("nc \"%h %p").reason, ContainsSubstring("a quote is not closed"));
  }
}

TEST_CASE("SshLink: an address of IPv6", "[net][ssh]") {
  need_sshd();
  if (!listen_tcp({"::1", 0}).ok()) skip("this machine has no IPv6");
  SshServer::Settings settings;
  settings.address = "::1";
  const SshServer server(settings);
  const SshUser user;
  user.befriend(server, "unused");
  user.configure("Host *\n  User " + server.user() + "\n");
  SshTarget node = target("::1", "echo in");
  node.port = server.port();
  const LinkEnd ended = run(node);
  CHECK(ended.reason == "");
  CHECK(ended.output == "in\n");
}
