#include "launcher/job/agent_handshake.h"

#include <functional>

#include "runtime/base/error.h"
#include "tests/launcher/made_up_hosts.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

using namespace dstrain;
using namespace dstrain::launcher;
using Catch::Matchers::ContainsSubstring;
using Phase = AgentHandshake::Phase;

namespace {

constexpr double begin_seconds = 100;

Frame frame(FromAgent type, std::string payload = "") {
  return {static_cast<std::uint8_t>(type), std::move(payload)};
}

Frame hello(int gpus = 0, const std::string& version = "1.2") {
  return frame(FromAgent::hello, encode_hello({protocol_version, version, "10.0.0.1", "", gpus}));
}

Frame port(int number, const std::string& reason = "") {
  WireWriter out;
  out.i32(number);
  if (number == 0) out.string(reason);
  return frame(FromAgent::port, out.take());
}

ErrorCode code_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::internal;
}

/// A handshake with two hosts.
struct GreetedHosts : test::MadeUpHosts {
  using MadeUpHosts::MadeUpHosts;
  AgentHandshake begin() { return {job, agents, begin_seconds}; }
  /// Both have said hello.
  AgentHandshake greeted(int gpus = 0) {
    AgentHandshake handshake = begin();
    handshake.take(first(), hello(gpus));
    handshake.take(second(), hello(gpus));
    return handshake;
  }
};

}  // namespace

TEST_CASE("AgentHandshake: all say hello and the first finds a port", "[launcher]") {
  GreetedHosts hosts;
  AgentHandshake handshake = hosts.begin();
  CHECK(handshake.advance(begin_seconds) == Phase::waiting);
  handshake.take(hosts.second(), hello());
  handshake.take(hosts.second(), frame(FromAgent::beat));
  CHECK(handshake.advance(begin_seconds + 29) == Phase::waiting);
  handshake.take(hosts.first(), hello());
  CHECK(handshake.advance(begin_seconds + 29) == Phase::waiting);
  handshake.take(hosts.first(), port(29501));
  // However long that took.
  CHECK(handshake.advance(begin_seconds + 100) == Phase::done);
  CHECK(handshake.port() == 29501);
  CHECK(handshake.address() == "10.0.0.1");
}

TEST_CASE("AgentHandshake: late hosts are named", "[launcher]") {
  GreetedHosts hosts;
  AgentHandshake handshake = hosts.begin();
  handshake.take(hosts.first(), hello());
  CHECK(handshake.advance(handshake.deadline()) == Phase::waiting);
  CHECK(handshake.advance(handshake.deadline() + 0.1) == Phase::failed);
  CHECK(handshake.failures() == std::vector<std::string>{"host h1: did not answer within 30 s"});
}

TEST_CASE("AgentHandshake: a host with visible GPUs that do not exist is refused", "[launcher]") {
  GreetedHosts hosts;
  AgentHandshake handshake = hosts.begin();
  handshake.take(hosts.first(), hello(2));
  Hello shows_another;
  shows_another.version = "1.2";
  shows_another.gpu_problem = "no 7";
  handshake.take(hosts.second(), frame(FromAgent::hello, encode_hello(shows_another)));
  const auto advance = [&] {
    handshake.advance(begin_seconds);
  };
  CHECK(code_of(advance) == ErrorCode::usage);
  CHECK(test::error_of(advance) == "host h1: no 7");
}

TEST_CASE("AgentHandshake: another version is refused", "[launcher]") {
  GreetedHosts hosts;
  AgentHandshake handshake = hosts.begin();
  CHECK_THAT(test::error_of([&] { handshake.take(hosts.first(), hello(0, "1.3")); }),
             ContainsSubstring("version 1.3") && ContainsSubstring("--copy_binary"));
  WireWriter other;
  other.u32(protocol_version + 1);
  const Frame unknown = frame(FromAgent::hello, other.take());
  CHECK_THAT(test::error_of([&] { handshake.take(hosts.first(), unknown); }),
             ContainsSubstring("version unknown"));
}

TEST_CASE("AgentHandshake: unexpected messages are refused", "[launcher]") {
  GreetedHosts hosts;
  const auto refuses = [](AgentHandshake& handshake, HostAgent& agent, const Frame& frame) {
    return code_of([&] { handshake.take(agent, frame); }) == ErrorCode::remote;
  };
  AgentHandshake early = hosts.begin();
  CHECK(refuses(early, hosts.first(), frame(FromAgent::beat)));
  CHECK(refuses(early, hosts.first(), frame(FromAgent::finished)));
  CHECK(refuses(early, hosts.first(), port(29501)));
  AgentHandshake handshake = hosts.greeted();
  CHECK(refuses(handshake, hosts.first(), hello()));
  CHECK(refuses(handshake, hosts.first(), port(29501)));  // not asked yet
  REQUIRE(handshake.advance(begin_seconds) == Phase::waiting);
  CHECK(refuses(handshake, hosts.second(), port(29501)));
  handshake.take(hosts.first(), port(29501));
  CHECK(refuses(handshake, hosts.first(), port(29502)));
  CHECK(handshake.port() == 29501);
}

TEST_CASE("AgentHandshake: a port in use is a usage error only if the user chose it",
          "[launcher]") {
  GreetedHosts hosts;
  const bool exactly = GENERATE(true, false);
  hosts.job.master_port = {29500, exactly ? PortRule::typed : PortRule::first_free};
  AgentHandshake handshake = hosts.greeted();
  REQUIRE(handshake.advance(begin_seconds) == Phase::waiting);
  const auto answer = [&] {
    handshake.take(hosts.first(), port(0, "it is taken"));
  };
  CHECK(code_of(answer) == (exactly ? ErrorCode::usage : ErrorCode::remote));
  CHECK_THAT(test::error_of(answer), ContainsSubstring("h0: it is taken"));
}

TEST_CASE("AgentHandshake: without rank 0 the typed port is used", "[launcher]") {
  GreetedHosts hosts(2);
  hosts.job.master_port = {29777, PortRule::typed};
  AgentHandshake handshake = hosts.greeted();
  CHECK(handshake.advance(begin_seconds) == Phase::done);
  CHECK(handshake.port() == 29777);
}

TEST_CASE("AgentHandshake: GPUs that CPU ranks would leave idle are refused", "[launcher]") {
  GreetedHosts hosts;
  hosts.job.refuses_gpus = true;
  SECTION("on other hosts") {
    AgentHandshake handshake = hosts.greeted(4);
    CHECK_THAT(test::error_of([&] { handshake.advance(begin_seconds); }),
               ContainsSubstring("host h0"));
  }
  SECTION("not here: the launcher has looked itself") {
    for (HostTask& task : hosts.job.hosts) task.remote = false;
    AgentHandshake handshake = hosts.greeted(4);
    CHECK(handshake.advance(begin_seconds) == Phase::waiting);
  }
  SECTION("not where there are none") {
    AgentHandshake handshake = hosts.greeted();
    CHECK(handshake.advance(begin_seconds) == Phase::waiting);
  }
}
