#include "launcher/hosts/host_agent.h"

#include <sys/socket.h>

#include "launcher/agent/agent_sender.h"
#include "launcher/process/pipes.h"
#include "runtime/base/error.h"
#include "tests/support/catch.h"

using namespace dstrain;
using namespace dstrain::launcher;

namespace {

class BorrowedLink final : public AgentLink {
 public:
  explicit BorrowedLink(int fd) : fd_(fd) {}
  [[nodiscard]] int read_fd() const override { return fd_; }
  [[nodiscard]] int write_fd() const override { return fd_; }
  std::string end_reason() override { return ""; }
  void abandon() override {}

 private:
  int fd_;
};

/// An agent of ranks 4 to 6, whose part this test plays.
struct Played {
  HostTask task{"h", true, {}};
  SocketPair sockets = make_socket_pair(SOCK_STREAM);
  FramePipe agent{{sockets.theirs.get(), sockets.theirs.get()}};
  std::unique_ptr<HostAgent> host;

  Played() {
    for (const int rank : {4, 5, 6}) task.spec.ranks.push_back({rank, rank - 4, {}});
    host = std::make_unique<HostAgent>(task, std::make_unique<BorrowedLink>(sockets.ours.get()));
  }
  /// What the launcher has sent.
  std::vector<Frame> sent() {
    host->flush();
    agent.receive();
    std::vector<Frame> frames;
    while (auto frame = agent.next()) frames.push_back(std::move(*frame));
    return frames;
  }
};

}  // namespace

TEST_CASE("HostAgent: ranks of others are refused", "[launcher]") {
  const Played played;
  for (const int rank : {4, 5, 6}) CHECK(played.host->check_rank(rank) == rank);
  for (const int rank : {-1, 0, 3, 7, 1 << 30}) {
    CAPTURE(rank);
    CHECK_THROWS_AS(played.host->check_rank(rank), Error);
  }
}

TEST_CASE("HostAgent: every byte of output is acknowledged once", "[launcher]") {
  Played played;
  played.host->owed_acks = 1000;
  played.host->acknowledge();
  played.host->acknowledge();
  played.host->owed_acks = 7;
  played.host->acknowledge();
  const std::vector<Frame> frames = played.sent();
  REQUIRE(frames.size() == 2);
  CHECK(WireReader(frames[0].payload).u32() == 1000);
  CHECK(WireReader(frames[1].payload).u32() == 7);
}

TEST_CASE("AgentSender: unacknowledged output is limited by a window", "[launcher]") {
  Played played;
  AgentSender sender(played.agent);
  CHECK_FALSE(sender.may_output());
  sender.set_window(100);
  CHECK(sender.may_output());
  sender.output({4, OutputStream::out, std::string(99, 'x')});
  CHECK(sender.may_output());
  sender.output({4, OutputStream::out, "x"});
  CHECK_FALSE(sender.may_output());
  sender.acknowledged(1);
  CHECK(sender.may_output());
  sender.acknowledged(1'000'000);  // more than there was
  CHECK(sender.may_output());
  sender.output({4, OutputStream::out, std::string(100, 'x')});
  CHECK_FALSE(sender.may_output());
}
