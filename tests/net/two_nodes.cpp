#include "tests/net/two_nodes.h"

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <stdexcept>

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "runtime/base/error.h"
#include "tests/support/rank_process.h"

namespace dstrain::test {
namespace {

constexpr const char* nsenter = "/usr/bin/nsenter";
constexpr const char* ip = "/usr/sbin/ip";

/// Tells once it is in a namespace of its own, or that it may not, and stays.
[[noreturn]] void hold_namespace(int teller) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const char word = ::unshare(CLONE_NEWNET) == 0 ? 'y' : 'n';
  if (::write(teller, &word, 1) == 1) ::close(teller);
  while (true) ::pause();
}

/// A process that holds a new namespace; 0 when that is not allowed.
pid_t start_holder() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail_errno(errno, "pipe");
  const UniqueFd listener(ends[0]);
  UniqueFd teller(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) fail_errno(errno, "fork");
  if (pid == 0) hold_namespace(teller.get());
  teller.reset();
  char word = 'n';
  if (::read(listener.get(), &word, 1) == 1 && word == 'y') return pid;
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  return 0;
}

void end(pid_t holder) {
  if (holder == 0) return;
  ::kill(holder, SIGKILL);
  ::waitpid(holder, nullptr, 0);
}

}  // namespace

std::optional<std::string> TwoNodes::refusal() {
  for (const char* const program : {nsenter, ip}) {
    if (!std::filesystem::exists(program)) {
      return fmt::format("there is no {} (Debian: util-linux, iproute2)", program);
    }
  }
  const pid_t holder = start_holder();
  end(holder);
  if (holder == 0) return "this user may not make network namespaces: run as root";
  return std::nullopt;
}

TwoNodes::TwoNodes() {
  for (pid_t& holder : holders_) holder = start_holder();
  run_on(0, {ip, "link", "add", "veth0", "type", "veth", "peer", "name", "veth0", "netns",
             std::to_string(holders_[1])});
  for (const int node : {0, 1}) {
    run_on(node, {ip, "link", "set", "lo", "up"});
    run_on(node, {ip, "address", "add", address(node) + "/24", "dev", "veth0"});
    run_on(node, {ip, "link", "set", "veth0", "up"});
  }
}

TwoNodes::~TwoNodes() {
  for (const pid_t holder : holders_) end(holder);
}

std::string TwoNodes::address(int node) {
  return fmt::format("10.231.7.{}", node + 1);
}

std::vector<std::string> TwoNodes::on(int node, std::vector<std::string> command) const {
  std::vector<std::string> whole{
      nsenter, fmt::format("--net=/proc/{}/ns/net", holders_.at(static_cast<std::size_t>(node)))};
  whole.insert(whole.end(), command.begin(), command.end());
  return whole;
}

void TwoNodes::enter(int node) const {
  const pid_t holder = holders_.at(static_cast<std::size_t>(node));
  const UniqueFd network(
      ::open(fmt::format("/proc/{}/ns/net", holder).c_str(), O_RDONLY | O_CLOEXEC));
  if (!network || ::setns(network.get(), CLONE_NEWNET) != 0) fail_errno(errno, "enter a node");
}

void TwoNodes::cut() const {
  run_on(1, {ip, "link", "set", "veth0", "down"});
}

/// The other node sends its packets to a device that is not there.
void TwoNodes::deafen(int node) const {
  run_on(1 - node, {ip, "neighbour", "replace", address(node), "lladdr", "02:00:00:00:00:99", "dev",
                    "veth0", "nud", "permanent"});
}

void TwoNodes::run_on(int node, const std::vector<std::string>& command) const {
  RankProcess process({on(node, command), {}});
  const std::string output = process.read_all();
  if (process.wait() != 0) {
    throw std::runtime_error(fmt::format("{} {}: {}", command[0], command[1], output));
  }
}

}  // namespace dstrain::test
