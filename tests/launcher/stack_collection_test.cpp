#include "launcher/job/stack_collection.h"

#include <catch2/catch.hpp>

using namespace dstrain::launcher;
using Catch::Matchers::Contains;

TEST_CASE("StackCollection: like stacks are shown once and silent agents are counted",
          "[launcher]") {
  StackCollection stacks;
  CHECK_FALSE(stacks.take_end(1e9));
  const std::uint32_t request = stacks.begin(3, 100);
  stacks.take("w0", {request,
                     "\x1e"
                     "0\n  main\n\x1e"
                     "2\n  other\n"});
  stacks.take("w1", {request,
                     "\x1e"
                     "1\n  main\n"});
  stacks.take("w1", {request + 1,
                     "\x1e"
                     "7\n  late\n"});
  CHECK_FALSE(stacks.take_end(105));
  CHECK(stacks.take_end(112));
  CHECK_FALSE(stacks.take_end(113));
  REQUIRE(stacks.groups().size() == 2);
  CHECK(stacks.groups()[0].ranks == std::vector{0, 1});
  CHECK(stacks.groups()[0].text == "  main\n");
  CHECK_THAT(stacks.text(), Contains("1 agents have not answered"));
  stacks.begin(1, 200);
  stacks.take("w2", {request + 1, "no program"});
  CHECK(stacks.take_end(200));
  CHECK(stacks.text() == "  w2: no program\n");
}
