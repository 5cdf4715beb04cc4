// Links to servers that misbehave.
#include <thread>

#include <poll.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include "runtime/os/socket.h"
#include "tests/net/link_end.h"
#include "tests/net/ssh_server.h"
#include "tests/support/catch.h"
#include "tests/support/process_end.h"

using namespace dstrain;
using namespace dstrain::test;
using Catch::Matchers::ContainsSubstring;
using launcher::SshTarget;

namespace {

/// A listener that this process serves; whoever connects gets `opening`, then `greeting`, `times`,
/// and then silence or the end.
class OddServer {
 public:
  struct Habits {
    std::string greeting;
    int times = 1;
    bool hangs_up = false;
    std::string opening{};
  };
  explicit OddServer(Habits habits) : habits_(std::move(habits)) {
    thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
  }
  [[nodiscard]] int port() const { return bound_port(listener_.get()); }

 private:
  void serve(const std::stop_token& stop) {
    std::vector<UniqueFd> guests;
    while (!stop.stop_requested()) {
      if (!wait_until_ready(listener_.get(), POLLIN, Deadline::after(0.01))) continue;
      UniqueFd guest(accept(listener_.get(), nullptr, nullptr));
      send(guest.get(), habits_.opening.data(), habits_.opening.size(), MSG_NOSIGNAL);
      for (int i = 0; i < habits_.times && !stop.stop_requested(); ++i) {
        if (send(guest.get(), habits_.greeting.data(), habits_.greeting.size(), MSG_NOSIGNAL) < 0) {
          break;
        }
      }
      if (!habits_.hangs_up) guests.push_back(std::move(guest));
    }
  }

  Habits habits_;
  Result<UniqueFd> made_ = listen_tcp({"127.0.0.1", 0});
  UniqueFd listener_ = std::move(made_.value());
  std::jthread thread_;
};

LinkEnd knock(const OddServer& server, double timeout_seconds) {
  SshTarget odd = target("127.0.0.1", "cat");
  odd.port = server.port();
  odd.connect_timeout_seconds = timeout_seconds;
  return run(odd);
}

}  // namespace

TEST_CASE("SshLink: misbehaving servers give a one-line error", "[net][ssh]") {
  const SshUser user;
  const auto one_line = [](const LinkEnd& ended) {
    return ended.reason.find('\n') == std::string::npos;
  };
  SECTION("nothing resolves") {
    const LinkEnd ended = run(target("no-such-host.invalid", "cat"));
    CHECK_THAT(ended.reason, ContainsSubstring("cannot resolve host \"no-such-host.invalid\""));
  }
  SECTION("refused") {
    SshTarget refused = target("127.0.0.1", "cat");
    refused.port = free_port();
    CHECK_THAT(run(refused).reason,
               ContainsSubstring("Connection refused") && ContainsSubstring("--ssh_port"));
  }
  SECTION("says nothing") {
    const LinkEnd ended = knock(OddServer({.greeting = ""}), 0.5);
    CHECK_THAT(ended.reason,
               ContainsSubstring("within 0.5 s while waiting for the host to speak SSH"));
  }
  SECTION("hangs up") {
    const LinkEnd ended = knock(OddServer({.greeting = "", .hangs_up = true}), 1);
    CHECK_THAT(ended.reason, ContainsSubstring("before speaking SSH") &&
                                 ContainsSubstring("MaxStartups allows (10 at once by default"));
  }
  SECTION("hangs up after its banner") {
    const OddServer server({.greeting = "SSH-2.0-Odd\r\n", .hangs_up = true});
    CHECK_THAT(knock(server, hang_seconds).reason, ContainsSubstring("cannot speak SSH with "));
  }
  SECTION("stalls in the key exchange") {
    const OddServer server({.greeting = "SSH-2.0-Odd\r\n"});
    CHECK_THAT(knock(server, 0.5).reason, ContainsSubstring("within 0.5 s"));
  }
  SECTION("talks for ever before its banner") {
    const OddServer server({.greeting = std::string(100, 'x') + "\r\n", .times = 1 << 30});
    CHECK_THAT(knock(server, 0.5).reason, ContainsSubstring("within 0.5 s"));
  }
  SECTION("talks for ever after its banner") {
    // SSH_MSG_IGNORE (RFC 4253, 6 and 11.2): 12 bytes, of which 6 pad, type 2, an empty string.
    const std::string ignore("\0\0\0\x0c\x06\x02\0\0\0\0pad...", 16);
    std::string many;  // in one piece, so that something is always there to be read
    for (int i = 0; i < 1 << 14; ++i) many += ignore;
    const OddServer server({.greeting = many, .times = 1 << 30, .opening = "SSH-2.0-Odd\r\n"});
    CHECK_THAT(knock(server, 0.5).reason, ContainsSubstring("within 0.5 s"));
  }
  SECTION("floods") {
    const OddServer server({.greeting = std::string(1 << 16, 'x'), .times = 1 << 30});
    const LinkEnd ended = knock(server, hang_seconds);
    CHECK_THAT(ended.reason, ContainsSubstring("cannot speak SSH with "));
    CHECK(one_line(ended));
  }
  SECTION("garbage after its banner") {
    const OddServer server({.greeting = "SSH-2.0-Odd\r\n" + std::string(1 << 20, '\xff')});
    CHECK(!knock(server, hang_seconds).reason.empty());
  }
}

TEST_CASE("SshLink: a host that never answers times out", "[net][ssh]") {
  const SshUser user;
  Result<UniqueFd> listener = listen_tcp({"127.0.0.1", 0});
  ::listen(listener.value().get(), 0);
  const int port = bound_port(listener.value().get());
  std::vector<UniqueFd> guests;  // they fill its queue; the kernel drops what comes then
  for (Result<UniqueFd> guest = connect_tcp({"127.0.0.1", port}, Deadline::after(0.2)); guest.ok();
       guest = connect_tcp({"127.0.0.1", port}, Deadline::after(0.2))) {
    guests.push_back(std::move(guest.value()));
  }
  SshTarget hole = target("127.0.0.1", "cat");
  hole.port = port;
  hole.connect_timeout_seconds = 0.5;
  CHECK_THAT(run(hole).reason, ContainsSubstring("timed out") || ContainsSubstring("within 0.5 s"));
  hole.connect_timeout_seconds = 600;
  const auto link = launcher::connect_ssh_agent(hole);
  link->abandon();
  CHECK(finish(*link).reason == "the connection was abandoned");
}
