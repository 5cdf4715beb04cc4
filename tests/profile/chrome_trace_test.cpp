#include "runtime/profile/chrome_trace.h"

#include <fstream>

#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/os/file.h"
#include "tests/support/catch.h"
#include "tests/support/file_limit.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using namespace dstrain::profile;

namespace {

nlohmann::json read(const std::filesystem::path& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file);
}

}  // namespace

TEST_CASE("ChromeTrace: ranks are processes and lanes are threads", "[profile]") {
  const test::TempDir folder;
  const auto path = folder.path() / "profile.json";
  ChromeTrace trace(path, {"embedding", "block \"0\""});
  RankProfile profile;
  profile.lanes[0] = {{1, 1.5, 1, Activity::backward}, {0, 2, 3, Activity::step}};
  profile.lanes[1] = {{0.5, 0.75, 4096, Activity::all_gather}};
  profile.lanes[4] = {{0.5, 1, 8192, Activity::write}};
  profile.lanes[5] = {{0.25, 1, 7, Activity::update}};
  profile.steps = {{3, 2, 0.5, 0.25, 0.125, 0, 0.5, 0.375, {1, 0.75, 0, 0.5}}};
  profile.total = {1, 2, 0.5, 0.25, 0.125};
  profile.gpu_samples = {{0.5, 345.67, 98}, {0.75, {}, 50}, {1, {}, {}}};
  trace.add_rank(0, profile);
  trace.add_rank(1, profile);
  trace.finish();

  const nlohmann::json json = read(path);
  std::vector<nlohmann::json> spans;
  std::vector<nlohmann::json> counters;
  std::vector<std::string> names;
  for (const auto& event : json.at("traceEvents")) {
    if (event.at("ph") == "X" && event.at("pid") == 1) spans.push_back(event);
    if (event.at("ph") == "C" && event.at("pid") == 1) counters.push_back(event);
    if (event.at("ph") == "M") names.push_back(event.at("args").at("name"));
  }
  const std::vector<std::string> lanes{"compute",    "communication", "data",
                                       "disk reads", "disk writes",   "early updates"};
  std::vector<std::string> expected;
  for (const char* rank : {"rank 0", "rank 1"}) {
    expected.emplace_back(rank);
    expected.insert(expected.end(), lanes.begin(), lanes.end());
  }
  CHECK(names == expected);
  REQUIRE(counters.size() == 2);
  CHECK(counters[1].at("args") == nlohmann::json{{"busy_percent", 50}});
  CHECK(counters[0].at("ts") == 5e5);
  CHECK(counters[0].at("args") == nlohmann::json{{"watts", 345.7}, {"busy_percent", 98}});
  REQUIRE(spans.size() == 5);
  CHECK(spans[0].at("name") == "backward block \"0\"");
  CHECK(spans[0].at("ts") == 1e6);
  CHECK(spans[0].at("dur") == 5e5);
  CHECK(spans[1].at("name") == "step 3");
  CHECK(spans[2].at("tid") == 1);
  CHECK(spans[2].at("args").at("bytes") == 4096);
  CHECK(spans[3].at("name") == "write");
  CHECK(spans[3].at("tid") == 4);
  CHECK(spans[3].at("args").at("bytes") == 8192);
  CHECK(spans[4].at("tid") == 5);
  CHECK(spans[4].at("args").at("segment") == 7);
  const auto& rank = json.at("metadata").at("ranks").at(1);
  CHECK(rank.at("rank") == 1);
  CHECK(rank.at("steps") == 1);
  CHECK(rank.at("exposed_communication_seconds") == 0.125);
  CHECK(rank.at("per_step").at(0).at("step") == 3);
  const auto& step = rank.at("per_step").at(0);
  CHECK(step.at("communication_seconds") == 0.25);
  CHECK(step.at("disk_write_seconds") == 0.5);
  CHECK(step.at("early_update_seconds") == 0.375);
  CHECK(step.at("optimizer_step").at("seconds") == 1);
  CHECK(step.at("optimizer_step").at("update_seconds") == 0.75);
}

TEST_CASE("ChromeTrace: a timeline without spans is still a trace", "[profile]") {
  const test::TempDir folder;
  const auto path = folder.path() / "profile.json";
  ChromeTrace trace(path, {});
  trace.finish();
  CHECK(read(path).at("traceEvents").empty());
}

TEST_CASE("ChromeTrace: no link is followed", "[profile]") {
  const test::TempDir folder;
  const std::filesystem::path path = folder.path() / "trace.json";
  std::ofstream(folder.path() / "victim") << "precious";
  std::filesystem::create_symlink("victim", path);
  CHECK_THROWS_WITH(ChromeTrace(path, {}), Catch::Matchers::ContainsSubstring("a symbolic link"));
  CHECK(read_text_file(folder.path() / "victim", mebibyte) == "precious");
}

TEST_CASE("ChromeTrace: a file that cannot be written is an error", "[profile]") {
  const test::TempDir folder;
  CHECK_THROWS_AS(ChromeTrace(folder.path() / "absent/profile.json", {}), Error);
  CHECK_THROWS_AS(ChromeTrace("/dev/full", {}), Error);
  ChromeTrace full(folder.path() / "profile.json", {});
  const test::FileLimit limit(10);
  CHECK_THROWS_AS(full.finish(), Error);
}
