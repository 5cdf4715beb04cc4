#include "launcher/agent/rank_messages.h"

#include <sys/socket.h>

#include "launcher/process/pipes.h"
#include "launcher/protocol/frame_pipe.h"
#include "runtime/rank/rank_control.h"
#include "tests/support/catch.h"

using namespace dstrain;
using namespace dstrain::launcher;

namespace {

struct TestClock final : Clock {
  double now = 0;
  [[nodiscard]] double now_seconds() const override { return now; }
};

/// The messages of two ranks without processes: this test has their ends of the control sockets.
struct TwoRanks {
  std::vector<AgentRank> ranks = std::vector<AgentRank>(2);
  UniqueFd first = ranks[0].channel().open();
  UniqueFd second = ranks[1].channel().open();
  SocketPair sockets = make_socket_pair(SOCK_STREAM);
  FramePipe pipe{{sockets.ours.get(), sockets.ours.get()}};
  FramePipe launcher{{sockets.theirs.get(), sockets.theirs.get()}};
  AgentSender sender{pipe};
  TestClock clock;
  RankMessages messages{ranks, sender, clock};

  /// What the launcher hears now.
  std::vector<std::string> heard() {
    pipe.flush();
    launcher.receive();
    std::vector<std::string> texts;
    while (const auto frame = launcher.next()) {
      texts.push_back(decode_rank_message(frame->payload).text);
    }
    return texts;
  }
};

void say(const UniqueFd& rank, const std::string& text) {
  REQUIRE(::send(rank.get(), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0);
}

std::string progress(int step) {
  return encode_progress({.step = step, .steps = 100});
}

std::string answer(std::uint32_t request) {
  return encode_save_answer({.request = request, .step = 1, .checkpoint = "/c", .failure = ""});
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("RankMessages: only the newest progress is passed on and at a limited rate",
          "[launcher]") {
  TwoRanks two;
  two.messages.report_first();
  CHECK_FALSE(two.messages.deadline());
  two.clock.now = 100;
  for (const int step : {1, 2, 3}) say(two.first, progress(step));
  two.messages.pass_on();
  CHECK(two.heard() == Texts{progress(3)});
  say(two.first, progress(4));
  two.messages.pass_on();
  CHECK(two.heard().empty());
  REQUIRE(two.messages.deadline());
  CHECK(*two.messages.deadline() > 100);
  say(two.first, progress(5));
  two.clock.now = *two.messages.deadline();
  two.messages.pass_on();
  CHECK(two.heard() == Texts{progress(5)});
  CHECK_FALSE(two.messages.deadline());
}

TEST_CASE("RankMessages: answers are passed on at once", "[launcher]") {
  TwoRanks two;
  two.messages.report_first();
  say(two.first, progress(1));
  two.messages.pass_on();
  CHECK(two.heard() == Texts{progress(1)});
  say(two.first, progress(2));
  say(two.first, answer(7));
  say(two.second, encode_awaited("rank 5"));
  say(two.second, answer(8));
  two.messages.pass_on();
  CHECK(two.heard() == Texts{answer(7), encode_awaited("rank 5"), answer(8)});
}

TEST_CASE("RankMessages: the last step of a rank is passed on when it ends", "[launcher]") {
  TwoRanks two;
  two.messages.report_first();
  say(two.second, progress(1));
  two.messages.pass_on();
  CHECK(two.heard().empty());
  say(two.second, progress(2));
  two.messages.rank_ended(two.ranks[1]);
  CHECK(two.heard() == Texts{progress(2)});
}

TEST_CASE("RankChannel: the memory for a rank's messages is bounded", "[launcher]") {
  RankChannel channel;
  const UniqueFd rank = channel.open();
  for (std::uint32_t i = 1; i <= 100; ++i) {
    say(rank, answer(i));
    say(rank, "nonsense");
    say(rank, progress(static_cast<int>(i)));
    channel.receive();
  }
  const Texts kept = channel.take(RankChannel::Which::all);
  REQUIRE(kept.size() == 17);
  CHECK(kept.front() == answer(1));
  CHECK(kept.back() == progress(100));
  CHECK(channel.take(RankChannel::Which::all).empty());
}
