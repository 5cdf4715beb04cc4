// Who works and who idles in an elastic job, by what hosts are left and how many ranks can share.
#include "launcher/plan/elastic_plan.h"

#include "tests/support/catch.h"

using namespace dstrain;
using namespace dstrain::launcher;
using Words = std::vector<std::string>;

namespace {

/// Hosts w0, w1, ... with so many slots each, of which the first is this machine.
Resources hosts_with(const std::vector<int>& slots) {
  std::vector<HostSlots> hosts;
  std::vector<bool> remote;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    hosts.push_back({"w" + std::to_string(i), {}});
    for (int slot = 0; slot < slots[i]; ++slot) hosts.back().slots.push_back(slot);
    remote.push_back(i > 0);
  }
  return {HostPlan(std::move(hosts)), std::move(remote), {}, {}, {}};
}

std::int64_t all_of(std::int64_t available) {
  return available;
}

/// Ranks that can share a batch of 12.
std::int64_t divisors(std::int64_t available) {
  while (available > 0 && 12 % available != 0) --available;
  return available;
}

struct Row {
  std::vector<int> slots;
  ElasticNodes nodes;
  Words absent;
  Words hosts;  ///< that work, with their slots
  Words idle;
  Words spare = {};
};

Words working(const Resources& resources) {
  Words words;
  for (const HostSlots& host : resources.plan.hosts()) {
    words.push_back(host.host + ":" + std::to_string(host.slots.size()));
  }
  return words;
}

}  // namespace

TEST_CASE("ElasticPlan: the first ranks work and the last ones idle", "[launcher][elastic]") {
  const auto row = GENERATE(values<Row>({
      {{2, 2}, {}, {}, {"w0:2", "w1:2"}, {}},
      {{2, 2}, {}, {"w1"}, {"w0:2"}, {}},
      {{2, 2}, {}, {"w0"}, {"w1:2"}, {}},
      {{2, 3}, {}, {}, {"w0:2", "w1:2"}, {"w1 slot 2"}},
      {{4, 4}, {}, {}, {"w0:4", "w1:2"}, {"w1 slot 2", "w1 slot 3"}},
      {{4, 2, 2}, {}, {}, {"w0:4", "w1:2"}, {"w2"}},
      {{4, 1, 4}, {}, {}, {"w0:4", "w1:1", "w2:1"}, {"w2 slot 1", "w2 slot 2", "w2 slot 3"}},
      {{7, 4}, {}, {}, {"w0:6"}, {"w0 slot 6", "w1"}},
      {{1, 1, 1}, {1, 2}, {}, {"w0:1", "w1:1"}, {}, {"w2"}},
      {{2, 3, 1}, {1, 2}, {}, {"w0:2", "w1:2"}, {"w1 slot 2"}, {"w2"}},
      {{1, 1, 1}, {1, 2}, {"w0"}, {"w1:1", "w2:1"}, {}},
      {{1, 1, 1}, {1, 9}, {"w0", "w1"}, {"w2:1"}, {}},
  }));
  const auto plan = plan_elastic(hosts_with(row.slots), row.nodes, row.absent, divisors);
  REQUIRE(plan.ok());
  CHECK(working(plan.value().resources) == row.hosts);
  CHECK(plan.value().idle == row.idle);
  CHECK(plan.value().spare == row.spare);
  CHECK(plan.value().resources.remote.size() == row.hosts.size());
  CHECK(plan.value().resources.remote.front() == (row.hosts.front().substr(0, 2) != "w0"));
}

TEST_CASE("ElasticPlan: every slot works or idles or is absent", "[launcher][elastic]") {
  for (int a = 1; a <= 4; ++a) {
    for (int b = 1; b <= 4; ++b) {
      for (int c = 1; c <= 4; ++c) {
        const Resources all = hosts_with({a, b, c});
        const auto plan = plan_elastic(all, {}, {}, divisors);
        REQUIRE(plan.ok());
        CHECK(plan.value().resources.plan.world_size() == divisors(a + b + c));
        CHECK(whole_ranks(all, {1, 2}) == a + b);
      }
    }
  }
}

TEST_CASE("ElasticPlan: idle and absent slots are reported with the cause", "[launcher][elastic]") {
  struct Case {
    std::vector<int> slots;
    ElasticNodes nodes;
    Words without_ranks;
    Words lines;
  };
  const std::string four = "idle, because 4 ranks share the batch: ";
  const std::string two = "spare, because --max_elastic_nodes is 2: ";
  const auto row = GENERATE_COPY(values<Case>({
      {{2, 2}, {}, {}, {}},
      {{2, 3}, {}, {"w1 slot 2"}, {four + "w1 slot 2"}},
      {{1, 1, 1}, {1, 2}, {"w2"}, {two + "w2"}},
      {{2, 3, 1, 1}, {1, 2}, {"w1 slot 2", "w2", "w3"}, {four + "w1 slot 2", two + "w2, w3"}},
  }));
  const auto plan = plan_elastic(hosts_with(row.slots), row.nodes, {}, divisors);
  REQUIRE(plan.ok());
  CHECK(plan.value().without_ranks() == row.without_ranks);
  CHECK(describe_idle(plan.value(), row.nodes) == row.lines);
  const auto one =
      plan_elastic(hosts_with({1, 1}), {}, {}, [](std::int64_t) { return std::int64_t{1}; });
  REQUIRE(one.ok());
  CHECK(describe_idle(one.value(), {}) == Words{"idle, because 1 rank has the batch: w1"});
}

TEST_CASE("ElasticPlan: says why there is no plan", "[launcher][elastic]") {
  const Resources all = hosts_with({1, 1, 1});
  const auto few = plan_elastic(all, {2, 0}, {"w0", "w2"}, all_of);
  REQUIRE_FALSE(few.ok());
  CHECK_THAT(few.error(), Catch::Matchers::ContainsSubstring(
                              "1 of 3 hosts are left, but --min_elastic_nodes is 2"));
  const auto none = plan_elastic(all, {1, 0}, {"w0", "w1", "w2"}, all_of);
  CHECK_FALSE(none.ok());
  const auto odd = plan_elastic(all, {}, {}, [](std::int64_t) { return 0; });
  REQUIRE_FALSE(odd.ok());
  CHECK_THAT(odd.error(), Catch::Matchers::ContainsSubstring("no number of ranks up to 3"));
}

TEST_CASE("Elastic plan: the host in the most unreachable pairs is left out",
          "[launcher][elastic]") {
  CHECK(host_to_leave_out(std::vector<HostPair>{{"w0", "w1"}}) == "w1");
  CHECK(host_to_leave_out(std::vector<HostPair>{{"w0", "w2"}, {"w1", "w2"}}) == "w2");
  CHECK(host_to_leave_out(std::vector<HostPair>{{"w0", "w1"}, {"w0", "w2"}}) == "w0");
  CHECK(host_to_leave_out(std::vector<HostPair>{{"w0", "w1"}, {"w2", "w3"}}) == "w1");
}
