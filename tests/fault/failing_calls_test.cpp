// Every system call of a save fails once, on one rank: training goes on, and what was saved before
// is whole.
#include <algorithm>
#include <cerrno>
#include <fstream>
#include <map>
#include <random>

#include <fmt/format.h>

#include "runtime/base/worker_env.h"
#include "tests/e2e/resumable_run.h"
#include "tests/fault/saved_steps.h"
#include "tests/support/catch.h"
#include "tests/support/count_from.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using test::ResumableRun;

namespace {

namespace fs = std::filesystem;

constexpr int fault_steps = 4;
constexpr int save_steps = 2;

struct Fault {
  int rank;
  std::string call;
  int number;
  std::string what;
};

ResumableRun with_library(std::vector<launcher::EnvVar> variables) {
  variables.push_back({"LD_PRELOAD", DSTRAIN_FAULT_LIBRARY});
  variables.push_back({"OMP_NUM_THREADS", "1"});
  return {.ranks = 2,
          .stage = 2,
          .more = {"--save_steps", std::to_string(save_steps)},
          .environment = std::move(variables)};
}

/// How often each rank makes each call in a run: {"0 write", 12}, ...
std::map<std::string, int> count_calls(const fs::path& folder) {
  const fs::path log = folder / "calls";
  const ResumableRun run = with_library({{"DSTRAIN_FAULT_LOG", log.string()}});
  REQUIRE(run.train(folder / "counted", fault_steps).status == 0);
  std::map<std::string, int> calls;
  std::ifstream lines(log);
  for (std::string line; std::getline(lines, line);) ++calls[line.substr(0, line.find('\t'))];
  return calls;
}

std::vector<Fault> faults_of(const std::map<std::string, int>& calls) {
  const std::map<std::string, std::vector<std::string>> ways{
      {"open", {std::to_string(EMFILE), "kill"}},
      {"write", {std::to_string(ENOSPC), std::to_string(EIO), "short", "kill"}},
      {"read", {std::to_string(EIO), "short", "kill"}},
      {"fsync", {std::to_string(EIO), "kill"}},
      {"rename", {std::to_string(EIO), "kill"}},
      {"mkdir", {std::to_string(ENOSPC), "kill"}},
      {"reserve", {std::to_string(ENOSPC), "kill"}}};
  std::vector<Fault> faults;
  for (const auto& [name, count] : calls) {
    for (const std::string& way : ways.at(name.substr(2))) {
      for (int number = 1; number <= count; ++number) {
        faults.push_back({name.front() - '0', name.substr(2), number, way});
      }
    }
  }
  return faults;
}

void check_fault(const Fault& fault, const fs::path& output) {
  CAPTURE(fault.rank, fault.call, fault.number, fault.what);
  ResumableRun run = with_library(
      {{"DSTRAIN_FAULT", fmt::format("{}:{}:{}", fault.call, fault.number, fault.what)},
       {"DSTRAIN_FAULT_RANK", std::to_string(fault.rank)}});
  const test::TrainRun result = run.train(output, fault_steps);
  CAPTURE(result.out, result.err);
  const std::vector<std::int64_t> acknowledged = test::acknowledged_steps(result.out);
  const std::vector<std::int64_t> whole = test::whole_steps(output);
  for (const std::int64_t step : acknowledged) {
    CHECK(std::count(whole.begin(), whole.end(), step) == 1);
  }
  if (fault.what == "kill") {
    CHECK(result.status == 128 + 9);
  } else {
    // A later checkpoint makes up for one that failed, but for the last.
    const bool last = std::ranges::find(acknowledged, fault_steps) != acknowledged.end();
    CHECK(result.status == (last ? status::done : status::unsaved));
    CHECK(result.metrics.size() == fault_steps);
    CHECK(fs::exists(output / "model.safetensors"));
  }
  run.environment = {{"OMP_NUM_THREADS", "1"}};
  const test::TrainRun rest = run.resume(output, fault_steps + 1);
  CAPTURE(rest.err);
  if (whole.empty()) {
    CHECK(rest.status == 2);
  } else {
    REQUIRE(rest.status == 0);
    CHECK(rest.metrics.size() == fault_steps + 1);
    CHECK(test::whole_steps(output).front() == fault_steps + 1);
  }
}

}  // namespace

TEST_CASE("Faults: each call of a save fails once and no checkpoint is lost",
          "[fault][checkpoint]") {
  const test::TempDir folder;
  std::vector<Fault> faults = faults_of(count_calls(folder.path()));
  REQUIRE(faults.size() > 100);
  const auto all = static_cast<int>(faults.size());
  const int rounds = std::min(all, test::count_from("DSTRAIN_FAULTS", 24));
  std::shuffle(faults.begin(), faults.end(), std::mt19937(7));
  for (int round = 0; round < rounds; ++round) {
    check_fault(faults[static_cast<std::size_t>(round)], folder.path() / fmt::format("{}", round));
  }
}

TEST_CASE("Faults: a run whose last checkpoint is not saved has a status of its own and its model",
          "[fault][checkpoint]") {
  const test::TempDir folder;
  const fs::path output = folder.path() / "out";
  const ResumableRun run = with_library({{"DSTRAIN_FAULT", "reserve:1+:28"},  // ENOSPC
                                         {"DSTRAIN_FAULT_RANK", "0"}});
  const test::TrainRun result = run.train(output, fault_steps);
  CAPTURE(result.out, result.err);
  CHECK(result.status == status::unsaved);
  CHECK_THAT(result.err,
             Catch::Matchers::ContainsSubstring((output / "checkpoint-4").string() +
                                                " could not be saved: ") &&
                 Catch::Matchers::ContainsSubstring("the model is in " + output.string()));
  CHECK(fs::exists(output / "model.safetensors"));
  CHECK(result.metrics.size() == fault_steps);
}
