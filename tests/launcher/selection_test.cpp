#include "launcher/plan/selection.h"

#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/base/error.h"
#include "tests/support/catch.h"

using namespace dstrain;
using launcher::HostSlots;
using launcher::select_slots;

namespace {

using Hosts = std::vector<HostSlots>;

const Hosts one_host{{"worker-0", {0, 1, 2, 3}}};
const Hosts two_hosts{{"worker-0", {0, 1, 2, 3}}, {"worker-1", {0, 1, 2, 3}}};

std::string text_of(const Hosts& hosts) {
  std::string text;
  for (const HostSlots& host : hosts) {
    text += fmt::format("{}{}:{}", text.empty() ? "" : "@", host.host, fmt::join(host.slots, ","));
  }
  return text;
}

std::string error_of(const std::string& include, const std::string& exclude) {
  try {
    select_slots(two_hosts, {include, exclude});
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::usage);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("Selection: DeepSpeed's vectors", "[launcher]") {
  enum Pool { one, two, six };
  const std::array<Hosts, 3> pools{one_host, two_hosts, Hosts{{"::1", {0, 1}}}};
  struct Row {
    Pool pool;
    const char* include;
    const char* exclude;
    const char* expected;
  };
  const auto row = GENERATE(values<Row>({
      {one, "", "", "worker-0:0,1,2,3"},
      {one, "", "worker-0:1", "worker-0:0,2,3"},
      {one, "", "worker-0:1,2", "worker-0:0,3"},
      {one, "worker-0:1", "", "worker-0:1"},
      {one, "worker-0:1,1", "", "worker-0:1"},
      {one, "worker-0:1@worker-0:0,1", "", "worker-0:0,1"},
      {one, "worker-0", "", "worker-0:0,1,2,3"},
      {one, "", "worker-0", ""},
      {one, "", "worker-0:0,1,2,3", ""},
      {two, "worker-1:0,3", "", "worker-1:0,3"},
      {two, "", "worker-1", "worker-0:0,1,2,3"},
      {two, "", "worker-0:0,1@worker-1:3", "worker-0:2,3@worker-1:0,1,2"},
      {two, "worker-1@worker-0", "", "worker-0:0,1,2,3@worker-1:0,1,2,3"},
      {two, "worker-1:3,0@worker-0", "", "worker-0:0,1,2,3@worker-1:0,3"},
      {two, "worker-0:1@worker-0", "", "worker-0:1"},
      {two, "worker-0@worker-0:1", "", "worker-0:1"},
      {two, "", "worker-0:1,1", "worker-0:0,2,3@worker-1:0,1,2,3"},
      {two, "", "worker-0@worker-0:1", "worker-0:0,2,3@worker-1:0,1,2,3"},
      {two, "", "worker-0:0,1,2,3@worker-1", ""},
      {two, "worker-0: 1", "", "worker-0:1"},
      {two, "worker-0:0-2", "", "worker-0:0,1,2"},
      {two, "worker-0:0,2-3@worker-1:1-1", "", "worker-0:0,2,3@worker-1:1"},
      {six, "::1", "", "::1:0,1"},
      {six, "[::1]:1", "", "::1:1"},
  }));
  CAPTURE(row.include, row.exclude);
  CHECK(text_of(select_slots(pools.at(row.pool), {row.include, row.exclude})) == row.expected);
}

TEST_CASE("Selection: hosts and slots outside of the pool are refused", "[launcher]") {
  CHECK(error_of("a", "b") == "--include and --exclude exclude each other; give one of them");
  struct Row {
    const char* text;
    const char* message;
  };
  const auto row = GENERATE(values<Row>({
      {"jeff", "host \"jeff\" is not in the hostfile"},
      {"worker-1:4", "no slot 4 on host \"worker-1\"; it has 4 slots"},
      {"worker-0:-1", "no slot -1 on host \"worker-0\""},
      {"worker-1@worker-0:1@5", "host \"5\" is not in the hostfile"},
      {"worker-0:", "\"\" is not a slot number"},
      {"worker-0:a", "\"a\" is not a slot number"},
      {"worker-0:1:2", "\"1:2\" is not a slot number"},
      {"worker-0:3-1", "\"3-1\" is not a range"},
      {"worker-0:0-99999", "is not a range of at most 1024 slots"},
      {"worker-0:99999999999", "is not a slot number"},
      {"@worker-0", "host \"\" is not in the hostfile"},
      {"worker-0@", "host \"\" is not in the hostfile"},
      {"worker-0,worker-1", "host \"worker-0,worker-1\" is not in the hostfile"},
      {":", "host \"\" is not in the hostfile"},
  }));
  CAPTURE(row.text);
  CHECK_THAT(error_of(row.text, ""), Catch::Matchers::ContainsSubstring(row.message));
  CHECK_THAT(error_of("", row.text), Catch::Matchers::ContainsSubstring(row.message));
}

TEST_CASE("Selection: a list of slots ascends and has each once", "[launcher]") {
  CHECK(launcher::parse_slot_list("3,1-2,2,3", "x") == std::vector<int>{1, 2, 3});
}
