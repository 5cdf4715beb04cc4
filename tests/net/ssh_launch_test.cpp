// One launch over hosts that are reached through libssh.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <random>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "launcher/process/children.h"
#include "tests/e2e/train_run.h"
#include "tests/net/link_end.h"
#include "tests/net/ssh_hosts.h"
#include "tests/net/two_nodes.h"
#include "tests/support/catch.h"
#include "tests/support/count_from.h"
#include "tests/support/skip.h"

using namespace dstrain;
using namespace dstrain::test;
using Catch::Matchers::ContainsSubstring;
using Words = std::vector<std::string>;

namespace fs = std::filesystem;

namespace {

/// Ranks with children of every kind: in the group, in a session of their own, orphaned.
const std::string family =
    "sleep 1001 & setsid sleep 1002 & (setsid sleep 1003 &) & echo ready; "
    "trap '' TERM INT HUP; while :; do sleep 0.05; done";

std::string need_shell(const std::string& shell) {
  if (!fs::exists(shell)) skip("there is no " + shell);
  if (shell != "/bin/bash" && ::geteuid() != 0) skip("only root may give a user another shell");
  return shell;
}

/// Bytes of every kind but 0, and all that shells do something with.
std::string hostile_text(std::mt19937& random) {
  static const Words pieces{"$(touch /tmp/pwned)",
                            "`id`",
                            "'",
                            "\"",
                            "\\",
                            "\n",
                            "\r",
                            "\t",
                            " ",
                            ";",
                            "&",
                            "|",
                            ">",
                            "<",
                            "*",
                            "?",
                            "~",
                            "#",
                            "!",
                            "!!",
                            "$HOME",
                            "${x}",
                            "-",
                            "--",
                            "=",
                            "%s",
                            "\xff\xfe",
                            "\xc3\xa9",
                            "\xf0\x9f\x90\x9a",
                            "a",
                            "\x1e",
                            "\x1b[31m",
                            "{a,b}",
                            "(",
                            ")",
                            "[",
                            "]",
                            "^",
                            "@"};
  std::string text;
  for (auto left = random() % 8; left > 0; --left) text += pieces[random() % pieces.size()];
  return text;
}

/// The shell that a rank is.
void kill_rank(const Launch& launch, int rank) {
  const std::string entry = fmt::format("RANK={}", rank);
  for (const pid_t pid : launch.processes()) {
    std::ifstream name(fmt::format("/proc/{}/comm", pid));
    std::string command;
    name >> command;
    if (command == "sh" && launcher::has_environment_entry(pid, entry.c_str())) kill(pid, SIGKILL);
  }
}

/// SIGKILL for the launcher, an agent or its guard, a rank, or a connection. Returns what must be
/// said of it; nothing when nobody is left to say it.
std::string kill_somebody(const Launch& launch, const SshHosts& hosts, std::mt19937& random) {
  const int host = static_cast<int>(random() % 2);
  switch (random() % 4) {
    case 0:
      launch.signal(SIGKILL);
      return "";
    case 1: {
      const auto agents = hosts.agents_of(host);
      if (!agents.empty()) kill(agents[random() % agents.size()], SIGKILL);
      return fmt::format("the agent on h{} is lost", host);
    }
    case 2: {
      const int rank = static_cast<int>(random() % 4);
      kill_rank(launch, rank);
      return fmt::format("rank {} on h{} (pid ", rank, rank / 2);
    }
    default:
      hosts.server(host).kill_connections();
      return fmt::format("the agent on h{} is lost", host);
  }
}

}  // namespace

TEST_CASE("SshLaunch: values and paths of every kind arrive byte for byte", "[net][ssh]") {
  need_sshd();
  const std::string shell = need_shell(GENERATE("/bin/bash", "/bin/dash", "/usr/bin/zsh"));
  const SshHosts hosts(shell);
  std::ofstream(hosts.server(1).home() / ".bashrc") << "echo Welcome; echo careful >&2\n";
  std::ofstream(hosts.server(1).home() / ".zshenv") << "echo Welcome\n";
  std::mt19937 random(7);
  const TempDir folder;
  const std::string here = (folder.path() / "a b'\"$(x)`y`\n\xff-").string();
  fs::create_directories(here);
  const std::string program = here + "/-print it";
  std::ofstream(program) << "#!/bin/sh\n{ pwd; printf '%s\\0' \"$@\"; env -0 | grep -z ^NCCL_ | "
                            "sort -z; } >\"$OUT.$RANK\"\n";
  fs::permissions(program, fs::perms::owner_all);
  Launch::Options options;
  options.directory = here;
  Words words{"--env", "OUT=" + (folder.path() / "out").string(), program};
  std::string expected = here + "\n";
  for (int i = 0; i < 200; ++i) {
    words.push_back(hostile_text(random));
    expected += words.back() + '\0';
  }
  for (int i = 0; i < 200; ++i) {
    options.env.push_back({fmt::format("NCCL_{:03}", i), hostile_text(random)});
    expected += options.env.back().name + "=" + options.env.back().value + '\0';
  }
  Launch launch(hosts.words(words), options);
  CHECK(launch.wait() == 0);
  CHECK(launch.err() == "");
  CHECK(launch.out() == "");
  for (int rank = 0; rank < 4; ++rank) {
    const std::string got = read_bytes(folder.path() / fmt::format("out.{}", rank));
    CHECK((got == expected));
  }
  CHECK_FALSE(fs::exists("/tmp/pwned"));
  CHECK(hosts.nothing_left());
}

TEST_CASE("SshLaunch: each unreachable host is reported in one line", "[net][ssh]") {
  need_sshd();
  const SshHosts hosts;
  hosts.user().configure(fmt::format(
      "Host refused\n  HostName 127.0.0.1\n  Port 1\nHost stranger\n  HostName 127.0.0.1\n  Port "
      "{}\n  User {}\n  UserKnownHostsFile /dev/null\n",
      hosts.server(0).port(), hosts.server(0).user()));
  const TempDir folder;
  const std::string file = folder.path() / "hosts";
  std::ofstream(file) << "h0 slots=1\nrefused slots=1\nstranger slots=1\nnone.invalid slots=1\n";
  Launch launch({"-q", "-H", file, "sh", "-c", "echo ran"});
  CHECK(launch.wait() == 3);
  CHECK(launch.out() == "");
  CHECK(std::count(launch.err().begin(), launch.err().end(), '\n') == 3);
  for (const char* part :
       {"host refused: Connection refused at 127.0.0.1:1",
        "host stranger: the host's key is not known", "host none.invalid: cannot"}) {
    CHECK_THAT(launch.err(), ContainsSubstring(part));
  }
  CHECK(hosts.nothing_left());
}

TEST_CASE("SshLaunch: programs are copied to hosts that lack them", "[net][ssh]") {
  need_sshd();
  if (::geteuid() != 0) skip("only root may make hosts with homes of their own");
  const SshHosts hosts;
  for (int times = 0; times < 2; ++times) {
    Launch launch(hosts.words({"--copy_binary", "sh", "-c", "readlink /proc/$PPID/exe"}));
    CHECK(launch.wait() == 0);
    CHECK(launch.err() == "");
    CHECK_THAT(launch.out(),
               ContainsSubstring(hosts.server(0).home().string() + "/.cache/dstrain/") &&
                   ContainsSubstring(hosts.server(1).home().string() + "/.cache/dstrain/"));
  }
}

TEST_CASE("SshLaunch: a connection that is killed is named and leaves nothing", "[net][ssh]") {
  need_sshd();
  const SshHosts hosts;
  Launch launch(hosts.shell(family));
  REQUIRE(launch.wait_for_output("ready", 4));
  hosts.server(1).kill_connections();
  CHECK(launch.wait() == 1);
  CHECK_THAT(launch.err(), ContainsSubstring("the agent on h1 is lost") &&
                               ContainsSubstring("connection was lost"));
  CHECK(launch.nothing_left());
  CHECK(hosts.nothing_left());
}

/// DSTRAIN_STORM: how many times.
TEST_CASE("SshLaunch: any killed process is named and leaves nothing", "[net][ssh]") {
  need_sshd();
  const int rounds = test::count_from("DSTRAIN_STORM", 8);
  std::mt19937 random(static_cast<unsigned>(std::time(nullptr)));
  const SshHosts hosts;
  for (int round = 0; round < rounds; ++round) {
    Launch launch(hosts.shell(family));
    const bool early = round % 4 == 0;  // in the middle of coming up
    if (early) {
      wait_for_random_moment(launch.pid(), random, 300);
    } else {
      REQUIRE(launch.wait_for_output("ready", 4));
    }
    const std::string named = kill_somebody(launch, hosts, random);
    if (early) launch.signal(SIGKILL);  // what was to be killed may not have been there yet
    CAPTURE(round, named);
    if (early || named.empty()) {
      launch.wait_without_reading();
    } else {
      CHECK(launch.wait() != 0);
      CHECK_THAT(launch.err(), ContainsSubstring(named));
    }
    CHECK(launch.nothing_left());
    CHECK(hosts.nothing_left());
  }
}

/// One thread per rank: the bits of oneDNN's products may depend on how many there are.
TEST_CASE("SshLaunch: training over two hosts gives the losses of one machine", "[net][ssh]") {
  need_sshd();
  if (const auto reason = TwoNodes::refusal()) skip(*reason);
  const TwoNodes nodes;
  const SshUser user;
  std::vector<std::unique_ptr<SshServer>> servers;
  const TempDir folder;
  std::ofstream hostfile(folder.path() / "hosts");
  for (const int node : {0, 1}) {
    SshServer::Settings settings;
    settings.within = nodes.on(node, {});
    settings.address = TwoNodes::address(node);
    settings.port = 22;
    servers.push_back(std::make_unique<SshServer>(settings));
    user.befriend(*servers.back(), TwoNodes::address(node));
    hostfile << TwoNodes::address(node) << " slots=1\n";
  }
  hostfile.close();
  const auto golden = read_json(golden_folder / "everything.json");
  const TrainRun local = run_train(2, golden.at("ds_config"), folder.path() / "local",
                                   golden.at("arguments"), {{"OMP_NUM_THREADS", "1"}});
  nodes.enter(0);
  const TrainRun spread =
      run_train({"--device", "cpu", "-H", folder.path() / "hosts"}, golden.at("ds_config"),
                folder.path() / "spread", golden.at("arguments"), {{"OMP_NUM_THREADS", "1"}});
  CAPTURE(local.err, spread.err);
  REQUIRE(local.status == 0);
  REQUIRE(spread.status == 0);
  REQUIRE(local.metrics.size() > 5);
  REQUIRE(spread.metrics.size() == local.metrics.size());
  for (std::size_t step = 0; step < local.metrics.size(); ++step) {
    for (const char* const key : {"loss", "grad_norm"}) {
      CHECK(spread.metrics[step].at(key) == local.metrics[step].at(key));
    }
  }
}

TEST_CASE("SshLaunch: many hosts behind one jump host start", "[net][ssh]") {
  need_sshd();
  if (const auto refusal = TwoNodes::refusal()) skip(*refusal);
  if (find_program("ssh").empty()) skip("there is no ssh (Debian: openssh-client)");
  const int count = count_from("DSTRAIN_HOSTS_BEHIND_JUMP", 16);
  const TwoNodes nodes;
  const auto settings = [&](int node, int port) {
    SshServer::Settings there;
    there.port = port;
    there.within = nodes.on(node, {});
    there.address = TwoNodes::address(node);
    return there;
  };
  SshServer::Settings usual = settings(0, 22);
  usual.options = {"MaxStartups 10:30:100"};  // what sshd has by itself
  const SshServer gate(usual);
  const SshUser user;
  user.befriend(gate, "gate");
  const TempDir folder;
  std::vector<std::unique_ptr<SshServer>> servers;
  std::ofstream hostfile(folder.path() / "hosts");
  for (int i = 0; i < count; ++i) {
    servers.push_back(std::make_unique<SshServer>(settings(1, 2000 + i)));
    user.befriend(*servers.back(), fmt::format("h{}", i));
    hostfile << fmt::format("h{} slots=1\n", i);
  }
  hostfile.close();
  const std::string config = folder.path() / "config";
  fs::copy_file(user.ssh() / "config", config);
  std::ofstream(config, std::ios::app)
      << user.for_program_ssh("gate") << "Host h*\n  ProxyJump gate\n";
  Launch::Options options;
  options.wrapper = nodes.on(0, {});
  Launch launch({"-q", "-H", folder.path() / "hosts", "--ssh_config", config, "--master_addr",
                 TwoNodes::address(1), "sh", "-c", "echo in $RANK"},
                options);
  CHECK(launch.wait() == 0);
  CHECK(launch.err() == "");
  const std::string out = launch.out();
  CHECK(std::ranges::count(out, '\n') == count);
  for (int rank = 0; rank < count; ++rank) {
    CHECK_THAT(out, ContainsSubstring(fmt::format("in {}\n", rank)));
  }
}
