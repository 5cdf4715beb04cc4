#include "runtime/comm/group_barrier.h"

#include <chrono>
#include <future>
#include <thread>
#include <vector>

#include "runtime/base/error.h"
#include "tests/support/catch.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;

/// The group is aborted long after the wait should have ended by itself, which then says so.
TEST_CASE("GroupBarrier: a wait times out", "[comm]") {
  constexpr double timeout_seconds = 4;
  constexpr std::chrono::seconds abort_after(35);
  comm::GroupBlock block;
  std::vector<comm::MemberBlock> members(2);
  comm::GroupBarrier waits(block, members, {.rank = 0, .timeout_seconds = timeout_seconds});
  comm::GroupBarrier stays_away(block, members, {.rank = 1, .timeout_seconds = timeout_seconds});
  std::promise<void> ended;
  const std::jthread aborts([&, ending = ended.get_future()] {
    if (ending.wait_for(abort_after) == std::future_status::timeout) stays_away.abort();
  });
  waits.announce({comm::Operation::barrier, DType::u8, 0, 0});
  CHECK_THROWS_WITH(waits.agree(), ContainsSubstring("timed out after 4 s: waiting for rank 1"));
  ended.set_value();
}
