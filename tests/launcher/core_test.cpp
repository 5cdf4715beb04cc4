#include <algorithm>
#include <cstdlib>
#include <string>

#include <sched.h>

#include "launcher/plan/core_binding.h"
#include "runtime/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/skip.h"

using namespace dstrain;
using namespace dstrain::launcher;
using Cores = std::vector<int>;

TEST_CASE("Cores: a list is numbers and ranges that ascend", "[launcher][cores]") {
  CHECK(parse_core_list("0,2-4,6,8-9") == Cores{0, 2, 3, 4, 6, 8, 9});
  CHECK(parse_core_list("5") == Cores{5});
  CHECK(parse_core_list("3-3") == Cores{3});
  CHECK(parse_core_list("1, 2") == Cores{1, 2});
  for (const char* const bad : {"0,2-6,5-9", "8,2-6", "1,1", "1,6-2", "0-1-2", "a", "", "-1",
                                "0,-2", "0-", "0,", ",0", "1 2", "0x1", "99999999999", "70000"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(parse_core_list(bad), Error);
  }
}

TEST_CASE("Cores: shares are equal and disjoint", "[launcher][cores]") {
  for (int count = 1; count <= 17; ++count) {
    for (int ranks = 1; ranks <= 40; ++ranks) {
      CAPTURE(count, ranks);
      std::vector<int> uses(static_cast<std::size_t>(count));
      for (int rank = 0; rank < ranks; ++rank) {
        const CoreShare share = share_of_cores(count, rank, ranks);
        REQUIRE(share.end - share.begin == std::max(1, count / ranks));
        REQUIRE((share.begin >= 0 && share.end <= count));
        for (int core = share.begin; core < share.end; ++core) {
          ++uses[static_cast<std::size_t>(core)];
        }
      }
      const auto [least, most] = std::ranges::minmax(uses);
      CHECK(most <= (ranks <= count ? 1 : least + 1));
    }
  }
}

namespace {

void need_hwloc() {
  const std::string missing = test::error_of(check_can_bind_cores);
  if (!missing.empty()) test::skip(missing);
}

/// A machine that hwloc only imagines.
class Imagined {
 public:
  explicit Imagined(const char* description) { ::setenv("HWLOC_SYNTHETIC", description, 1); }
  Imagined(const Imagined&) = delete;
  Imagined& operator=(const Imagined&) = delete;
  Imagined(Imagined&&) = delete;
  Imagined& operator=(Imagined&&) = delete;
  ~Imagined() { ::unsetenv("HWLOC_SYNTHETIC"); }
};

}  // namespace

TEST_CASE("Cores: whole cores in the order of nodes and memory beside them", "[launcher][cores]") {
  need_hwloc();
  // Numbered as firmware often does: neighbours lie on different nodes.
  const Imagined machine("node:2(indexes=0,1) core:3 pu:2(indexes=0,6,2,8,4,10,1,7,3,9,5,11)");
  const auto two = bind_cores({}, 2);
  CHECK(two[0].cpus == Cores{0, 6, 2, 8, 4, 10});
  CHECK(two[1].cpus == Cores{1, 7, 3, 9, 5, 11});
  CHECK(two[0].cores == 3);
  CHECK(two[0].nodes == Cores{0});
  CHECK(two[1].nodes == Cores{1});
  const auto four = bind_cores({}, 4);  // two cores are left over
  CHECK(four[3].cpus == Cores{1, 7});
  CHECK(bind_cores({}, 1)[0].nodes.empty());  // on both
  CHECK(bind_cores({}, 7)[6].cpus == four[0].cpus);
  const auto listed = bind_cores({0, 1, 2, 3}, 2);
  CHECK(listed[0].cpus == Cores{0, 1});
  CHECK(listed[0].nodes.empty());
  CHECK_THAT(test::error_of([] {
               bind_cores({0, 12}, 1);
             }),
             Catch::Matchers::ContainsSubstring("core 12 is not one of"));
}

TEST_CASE("Cores: only those this process may use", "[launcher][cores]") {
  need_hwloc();
  cpu_set_t before;
  REQUIRE(::sched_getaffinity(0, sizeof before, &before) == 0);
  std::size_t last = 0;
  for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &before)) last = cpu;
  }
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(last, &one);
  REQUIRE(::sched_setaffinity(0, sizeof one, &one) == 0);
  const auto bindings = bind_cores({}, 2);
  ::sched_setaffinity(0, sizeof before, &before);
  CHECK(bindings[0].cpus == Cores{static_cast<int>(last)});
  CHECK(bindings[1].cpus == Cores{static_cast<int>(last)});
}
