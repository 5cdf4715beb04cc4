#include "launcher/hosts/relay_channel.h"

#include <algorithm>
#include <array>

#include <sys/socket.h>

#include "launcher/process/pipes.h"
#include "launcher/process/signals.h"
#include "launcher/protocol/frame_pipe.h"
#include "launcher/protocol/protocol.h"
#include "tests/support/catch.h"

using namespace dstrain;
using namespace dstrain::launcher;

namespace {

/// A link whose far end this test holds.
class FarLink final : public AgentLink {
 public:
  explicit FarLink(UniqueFd fd) : fd_(std::move(fd)) {}
  [[nodiscard]] int read_fd() const override { return fd_.get(); }
  [[nodiscard]] int write_fd() const override { return fd_.get(); }
  std::string end_reason() override { return "the test ended it"; }
  void abandon() override { shutdown(fd_.get(), SHUT_RDWR); }

 private:
  UniqueFd fd_;
};

/// A channel between two ends that this test plays.
class Host {
 public:
  explicit Host(double silence_seconds) : channel(std::move(to_launcher_.theirs), silence_seconds) {
    channel.open(std::make_unique<FarLink>(std::move(to_agent_.theirs)), 0);
  }
  /// As the relay's loop does once.
  void turn(double now) {
    std::vector<pollfd> fds;
    channel.add_polls(fds);
    poll(fds.data(), fds.size(), 0);
    channel.advance(fds, now);
  }

 private:
  SocketPair to_launcher_ = make_socket_pair(SOCK_STREAM);
  SocketPair to_agent_ = make_socket_pair(SOCK_STREAM);

 public:
  RelayChannel channel;
  FramePipe launcher{{to_launcher_.ours.get(), to_launcher_.ours.get()}};
  FramePipe agent{{to_agent_.ours.get(), to_agent_.ours.get()}};
  void close_agent() { to_agent_.ours.reset(); }
  void close_launcher() { to_launcher_.ours.reset(); }
};

/// How many bytes one side may send while the other does not read.
template <class Type>
std::size_t swallowed(Host& host, FramePipe& from, Type type, std::size_t most) {
  const std::string payload(1U << 16, 'x');
  std::size_t sent = 0;
  for (int idle = 0; idle < 3 && sent < most; host.turn(0)) {
    if (from.pending_bytes() == 0) from.send(type, payload);
    const std::size_t before = from.pending_bytes();
    from.flush();
    const std::size_t now = before - from.pending_bytes();
    idle = now == 0 ? idle + 1 : 0;
    sent += now;
  }
  return sent;
}

}  // namespace

TEST_CASE("RelayChannel: a reader that does not read blocks the writer", "[launcher][relay]") {
  constexpr std::size_t most = 64U << 20;
  Host to_agent(0);
  CHECK(swallowed(to_agent, to_agent.launcher, ToAgent::rank_message, most) < most / 4);
  Host to_launcher(0);
  CHECK(swallowed(to_launcher, to_launcher.agent, FromAgent::output, most) < most / 4);
}

TEST_CASE("RelayChannel: what an agent said before its end is passed on to the last byte",
          "[launcher][relay]") {
  Host host(0);
  // More than a socket takes, so that something is left when the agent is gone.
  const std::size_t sent = swallowed(host, host.agent, FromAgent::output, 64U << 20);
  host.close_agent();
  std::size_t received = 0;
  for (int turns = 0; turns < 1000 && !host.channel.ended(); ++turns) {
    host.turn(0);
    REQUIRE((host.launcher.receive() || host.channel.ended()));
    while (const auto frame = host.launcher.next()) received += 5 + frame->payload.size();
  }
  CHECK(host.channel.ended());
  for (int reads = 0; reads < 100; ++reads) host.launcher.receive();  // a MiB each
  while (const auto frame = host.launcher.next()) received += 5 + frame->payload.size();
  constexpr std::size_t last_frame = (1U << 16) + 5;
  CHECK(received + last_frame > sent);
  CHECK(received <= sent);
}

TEST_CASE("RelayChannel: beats are inserted between frames", "[launcher][relay]") {
  Host host(6);
  const std::string payload(30'000, 'x');
  int jobs = 0;
  int beats = 0;
  double now = 0;
  for (int i = 0; i < 200; ++i) {
    host.launcher.send(ToAgent::rank_message, payload);
    REQUIRE(host.launcher.flush());
    host.agent.send(FromAgent::beat, "");
    REQUIRE(host.agent.flush());
    host.turn(now += 0.1);
    REQUIRE(host.agent.receive());
    while (const auto frame = host.agent.next()) {
      const auto type = static_cast<ToAgent>(frame->type);
      REQUIRE((type == ToAgent::beat || frame->payload == payload));
      ++(type == ToAgent::beat ? beats : jobs);
    }
  }
  CHECK(beats >= 15);
  CHECK(jobs == 200);
  CHECK_FALSE(host.channel.ended());
}

TEST_CASE("RelayChannel: an agent that has sent data may not fall silent", "[launcher][relay]") {
  Host host(6);
  host.turn(100);  // connecting takes what it takes
  CHECK_FALSE(host.channel.ended());
  host.agent.send(FromAgent::hello, "");
  REQUIRE(host.agent.flush());
  host.turn(100);
  host.launcher.send(ToAgent::job, "");
  REQUIRE(host.launcher.flush());
  for (double now = 101; now <= 105; ++now) host.turn(now);
  host.turn(500);  // a relay that was stopped has heard nothing meanwhile
  for (double now = 501; now <= 504; ++now) host.turn(now);
  CHECK_FALSE(host.channel.ended());
  for (double now = 505; now <= 508; ++now) host.turn(now);
  CHECK(host.channel.ended());
  CHECK(host.channel.take_end_reason() == "it sent nothing for 6 s");
}

TEST_CASE("RelayChannel: the last output arrives before the end", "[launcher][relay]") {
  ignore_broken_pipes();  // as the relay does
  Host host(6);
  host.agent.send(FromAgent::note, "good bye");
  REQUIRE(host.agent.flush());
  host.close_agent();
  for (int i = 0; i < 3; ++i) host.turn(1);
  CHECK(host.channel.ended());
  CHECK(host.channel.take_end_reason() == "the test ended it");
  host.launcher.receive();
  CHECK(host.launcher.next()->payload == "good bye");

  Host left(6);
  left.close_launcher();
  left.turn(1);
  CHECK(left.channel.ended());
}
