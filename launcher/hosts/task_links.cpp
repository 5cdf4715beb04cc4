#include "launcher/hosts/task_links.h"

#include <algorithm>

#include <sys/socket.h>

#include <climits>

#include "launcher/protocol/protocol.h"
#include "runtime/base/error.h"
#include "runtime/os/random_bytes.h"
#include "runtime/os/socket.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::launcher {
namespace {

constexpr double proof_seconds = 10;
constexpr std::size_t strangers_max = 128;  // in addition to one connection per rank

/// A connection that an agent has made.
class SocketLink final : public AgentLink {
 public:
  SocketLink(UniqueFd socket, const TaskStarter& starter)
      : socket_(std::move(socket)), starter_(starter) {}
  [[nodiscard]] int read_fd() const override { return socket_.get(); }
  [[nodiscard]] int write_fd() const override { return socket_.get(); }
  std::string end_reason() override {
    if (starter_.ended()) return starter_.end_reason();
    const std::string output = starter_.output();
    return output.empty() ? "" : "the connection was closed; " + output;
  }
  void abandon() override { shutdown(socket_.get(), SHUT_RDWR); }

 private:
  UniqueFd socket_;
  const TaskStarter& starter_;
};

std::vector<EnvVar> starter_environment(const TaskStart& start, const std::string& address) {
  return {{std::string(agents_variable), address}, {env::job, start.job_id}};
}

}  // namespace

/// Listens on loopback if no rank runs elsewhere; else at all addresses, and an agent uses one that
/// it can reach.
TaskLinks::OpenListener TaskLinks::open_listener(const TaskCommand& command) {
  std::vector<std::string> addresses{"127.0.0.1"};
  if (!command.here_only) addresses = own_addresses();
  if (addresses.empty()) {
    fail(ErrorCode::remote, "this machine has no address that other hosts can reach");
  }
  const bool any_v4 = addresses.front().find(':') == std::string::npos;
  const std::string place = command.here_only ? "127.0.0.1" : any_v4 ? "0.0.0.0" : "::";
  Result<UniqueFd> listener = listen_within(place, command.ports);
  if (!listener.ok()) fail(ErrorCode::remote, "{}", listener.error());
  OpenListener open{std::move(listener.value()), to_hex(random_bytes<32>()), ""};
  open.address = open.secret;
  const int port = bound_port(open.socket.get());
  for (const std::string& address : addresses) {
    open.address += fmt::format(" {} {}", address, port);
  }
  return open;
}

TaskLinks::TaskLinks(const TaskStart& start, OpenListener open, int ranks)
    : ranks_(ranks),
      listener_({.listener = std::move(open.socket),
                 .magic = agents_magic,
                 .token = open.secret,
                 .name = "agents",
                 .unproved_max = static_cast<std::size_t>(ranks) + strangers_max,
                 .proof_seconds = proof_seconds}),
      starter_(start.command, starter_environment(start, open.address), start.signal_mask) {}

void TaskLinks::add_polls(std::vector<pollfd>& fds) {
  starter_.add_polls(fds);
  listener_.add_polls(fds);
}

std::vector<TaskLinks::Arrival> TaskLinks::advance(std::span<const pollfd> fds) {
  starter_.advance(fds.data());
  std::vector<Arrival> arrivals;
  for (auto& [number, socket] : listener_.advance(fds.subspan(TaskStarter::polls))) {
    const int rank = static_cast<int>(std::min(number, std::uint32_t{INT_MAX}));
    if (rank >= ranks_) continue;
    arrivals.push_back({rank, std::make_unique<SocketLink>(std::move(socket), starter_)});
  }
  return arrivals;
}

}  // namespace dstrain::launcher
