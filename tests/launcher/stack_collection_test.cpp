#include "launcher/job/stack_collection.h"

#include "tests/support/catch.h"

using namespace dstrain::launcher;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("StackCollection: equal stacks are shown once and silent agents are named",
          "[launcher]") {
  StackCollection stacks;
  CHECK_FALSE(stacks.take_end(1e9));
  const std::uint32_t request = stacks.begin({{0, "w0"}, {1, "w1"}, {5, "w2"}}, 100);
  stacks.take(0, {request,
                  "\x1e"
                  "0\n  main\n\x1e"
                  "2\n  other\n"});
  stacks.take(1, {request,
                  "\x1e"
                  "1\n  main\n"});
  stacks.take(1, {request + 1,
                  "\x1e"
                  "7\n  late\n"});
  CHECK_FALSE(stacks.take_end(105));
  CHECK(stacks.take_end(112));
  CHECK_FALSE(stacks.take_end(113));
  REQUIRE(stacks.groups().size() == 2);
  CHECK(stacks.groups()[0].ranks == std::vector{0, 1});
  CHECK(stacks.groups()[0].text == "  main\n");
  CHECK_THAT(stacks.text(), ContainsSubstring("  the agent on w2 has not answered\n"));
  stacks.begin({{5, "w2"}}, 200);
  stacks.take(5, {request + 1, "no program"});
  CHECK(stacks.take_end(200));
  CHECK(stacks.text() == "  w2: no program\n");
}

TEST_CASE("StackCollection: ends when the remaining agents are abandoned", "[launcher]") {
  StackCollection stacks;
  const std::uint32_t request = stacks.begin({{0, "w0"}, {1, "w1"}, {2, "w1"}, {3, "w3"}}, 100);
  stacks.take(3, {request,
                  "\x1e"
                  "3\n  main\n"});
  for (const int agent : {2, 2, 1}) stacks.give_up(agent);
  CHECK_FALSE(stacks.take_end(101));
  stacks.give_up(0);
  stacks.take(0, {request,
                  "\x1e"
                  "0\n  late\n"});
  CHECK(stacks.take_end(101));
  CHECK(stacks.text() == "stacks of rank 3:\n  main\n  the agents on w0, w1 have not answered\n");
}
