#include "runtime/rank/port_range.h"

#include <cstdlib>

#include "runtime/base/error.h"
#include "runtime/os/socket.h"
#include "tests/support/catch.h"

using namespace dstrain;

TEST_CASE("PortRange: two ports with a dash or one port", "[base]") {
  CHECK(to_string(parse_port_range("40000-40099").value()) == "40000-40099");
  CHECK(to_string(parse_port_range("1-65535").value()) == "1-65535");
  CHECK(to_string(parse_port_range("40000").value()) == "40000-40000");
  for (const char* const bad : {"", "-", "5-", "-5", "0-5", "5-4", "1-65536", "a-b", "1-2-3"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_port_range(bad).ok());
  }
  ::setenv(env::port_range, "9-8", 1);
  CHECK_THROWS_WITH(read_port_range(),
                    "environment variable DSTRAIN_PORT_RANGE: must be FIRST-LAST, ports of "
                    "1..65535, got \"9-8\"");
  ::unsetenv(env::port_range);
  CHECK_FALSE(read_port_range());
}

TEST_CASE("PortRange: only the first free port is opened", "[base]") {
  const UniqueFd first = std::move(listen_within("127.0.0.1", {}).value());
  const int port = bound_port(first.get());
  const PortRange range{port, std::min(port + 50, 65535)};
  const Result<UniqueFd> second = listen_within("127.0.0.1", range);
  REQUIRE(second.ok());
  CHECK(bound_port(second.value().get()) > port);
  CHECK(bound_port(second.value().get()) <= range.last);
  const Result<UniqueFd> none = listen_within("127.0.0.1", PortRange{port, port});
  REQUIRE_FALSE(none.ok());
  CHECK_THAT(none.error(), Catch::Matchers::ContainsSubstring("widen --port_range"));
}
