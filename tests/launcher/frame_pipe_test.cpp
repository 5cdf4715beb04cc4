#include "launcher/protocol/frame_pipe.h"

#include <sys/socket.h>
#include <unistd.h>

#include "launcher/process/pipes.h"
#include "launcher/process/signals.h"
#include "launcher/protocol/protocol.h"
#include "runtime/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/largest_allocation.h"

using namespace dstrain;
using namespace dstrain::launcher;

namespace {

/// A pipe of frames to a peer that this test plays.
struct Ends {
  SocketPair sockets = make_socket_pair(SOCK_STREAM);
  FramePipe pipe{{sockets.ours.get(), sockets.ours.get()}};
};

}  // namespace

TEST_CASE("FramePipe: frames pass in both directions however they are split", "[launcher]") {
  Ends ends;
  FramePipe peer({ends.sockets.theirs.get(), ends.sockets.theirs.get()});
  constexpr int frames = 200;
  const std::string payload(50'000, 'x');
  for (int i = 0; i < frames; ++i) ends.pipe.send(FromAgent::note, payload + std::to_string(i));
  CHECK(ends.pipe.flush());
  CHECK(ends.pipe.pending_bytes() > 0);  // more than a socket holds
  int next = 0;
  while (next < frames) {
    REQUIRE(peer.receive());
    while (const auto frame = peer.next()) {
      REQUIRE(frame->payload == payload + std::to_string(next++));
    }
    REQUIRE(ends.pipe.flush());
  }
  CHECK(ends.pipe.pending_bytes() == 0);
  CHECK(peer.receive());  // nothing has come, and the stream is open
  peer.send(ToAgent::ack, "back");
  CHECK(peer.flush());
  CHECK(ends.pipe.receive());
  CHECK(ends.pipe.next()->payload == "back");
}

TEST_CASE("FramePipe: sent data is freed", "[launcher]") {
  Ends ends;
  FramePipe peer({ends.sockets.theirs.get(), ends.sockets.theirs.get()});
  const std::string payload(10'000, 'x');
  test::take_largest_allocation();
  for (int i = 0; i < 1000; ++i) {
    ends.pipe.send(FromAgent::output, payload);
    REQUIRE(ends.pipe.flush());
    REQUIRE(peer.receive());
    while (peer.next()) {
    }
  }
  CHECK(test::take_largest_allocation() < 1'000'000);
}

TEST_CASE("FramePipe: a closed peer is noticed by writing and by reading", "[launcher]") {
  ignore_broken_pipes();
  SECTION("it closed") {
    Ends ends;
    ends.pipe.send(FromAgent::note, "lost");
    ends.sockets.theirs.reset();
    CHECK_FALSE(ends.pipe.flush());
    CHECK_FALSE(ends.pipe.receive());
  }
  SECTION("it closed without reading") {
    Ends ends;
    ends.pipe.send(FromAgent::note, "unread");
    REQUIRE(ends.pipe.flush());
    ends.sockets.theirs.reset();
    CHECK_FALSE(ends.pipe.receive());
  }
  SECTION("its last words arrive") {
    Ends ends;
    FramePipe peer({ends.sockets.theirs.get(), ends.sockets.theirs.get()});
    peer.send(FromAgent::note, "good bye");
    REQUIRE(peer.flush());
    ends.sockets.theirs.reset();
    ends.pipe.receive();
    CHECK(ends.pipe.next()->payload == "good bye");
    CHECK_FALSE(ends.pipe.receive());
  }
}

TEST_CASE("Wire: a count beyond the data is refused", "[launcher]") {
  WireWriter out;
  out.count(5);
  out.u32(1);
  out.u32(2);
  const std::string bytes = out.take();
  CHECK_THROWS_AS(WireReader(bytes).count(2), Error);
  CHECK(WireReader(bytes).count(1) == 5);
}

TEST_CASE("HeartBeat: several beats are sent per silence limit", "[launcher]") {
  HeartBeat beats;
  CHECK_FALSE(beats.deadline());
  CHECK_FALSE(beats.take_turn(1000));
  CHECK_FALSE(beats.is_silent(1e9));
  beats.agree_on(6);
  beats.received(100);
  int taken = 0;
  for (double now = 100; now < 106; now += 0.25) {
    CHECK(beats.deadline().has_value());
    const bool due = now >= *beats.deadline();
    CHECK(beats.take_turn(now) == due);
    taken += due ? 1 : 0;
  }
  CHECK(taken == 6);
  for (double now = 100; now <= 106; now += 1) CHECK_FALSE(beats.is_silent(now));
  CHECK(beats.is_silent(106.1));
  beats.received(106.1);
  CHECK_FALSE(beats.is_silent(107));
}

TEST_CASE("HeartBeat: time in which this process was suspended is no silence", "[launcher]") {
  HeartBeat beats;
  beats.agree_on(6);
  beats.received(100);
  CHECK_FALSE(beats.is_silent(101));
  for (double now = 1000; now <= 1006; ++now) CHECK_FALSE(beats.is_silent(now));
  CHECK(beats.is_silent(1007));
}
