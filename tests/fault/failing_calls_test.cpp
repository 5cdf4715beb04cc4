// Every system call of a save fails once, on one rank: training goes on, and what was saved before
// is whole.
#include <algorithm>
#include <cerrno>
#include <fstream>
#include <map>
#include <random>

#include <fmt/format.h>

#include "runtime/rank/worker_env.h"
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
      {"flush", {std::to_string(EIO), "kill"}},
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

TEST_CASE("Faults: a run whose last checkpoint failed has its own status and still exports",
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

TEST_CASE("Faults: a file system without directory flushes is reported once and used",
          "[fault][checkpoint]") {
  const test::TempDir folder;
  const fs::path output = folder.path() / "out";
  const int error = GENERATE(EINVAL, ENOTSUP);
  const ResumableRun run = with_library({{"DSTRAIN_FAULT", fmt::format("fsync:1+:{}", error)},
                                         {"DSTRAIN_FAULT_FILES", output.string()},
                                         {"DSTRAIN_FAULT_DIRECTORIES", "1"}});
  const test::TrainRun result = run.train(output, fault_steps);
  CAPTURE(result.out, result.err);
  CHECK(result.status == status::done);
  CHECK(test::whole_steps(output) == std::vector<std::int64_t>{4, 2});
  CHECK(fs::exists(output / "model.safetensors"));
  const std::string warning = "this file system cannot flush directories";
  const std::size_t first = result.err.find(warning);
  REQUIRE(first != std::string::npos);
  CHECK(result.err.find(warning, first + 1) == std::string::npos);
}

TEST_CASE("Faults: a call that always fails ends the run before its first step",
          "[fault][checkpoint]") {
  struct Row {
    std::string call;
    int error;
  };
  const Row row = GENERATE(values<Row>({{"fsync", EINVAL},
                                        {"open", EPERM},
                                        {"mkdir", EACCES},
                                        {"rename", EXDEV},
                                        {"write", EINVAL}}));
  const test::TempDir folder;
  const fs::path output = folder.path() / "out";
  const bool first_rank_alone = row.call == "mkdir" || row.call == "rename";
  const ResumableRun run =
      with_library({{"DSTRAIN_FAULT", fmt::format("{}:1+:{}", row.call, row.error)},
                    {"DSTRAIN_FAULT_RANK", first_rank_alone ? "0" : "1"}});
  const test::TrainRun result = run.train(output, fault_steps);
  CAPTURE(row.call, result.out, result.err);
  CHECK(result.status == 2);
  CHECK_THAT(result.err,
             Catch::Matchers::ContainsSubstring("--output_dir " + output.string() +
                                                ": no checkpoint can be saved there: "));
  CHECK(result.metrics.empty());
  for (const auto& entry : fs::directory_iterator(output)) {
    CHECK_THAT(entry.path().filename().string(), !Catch::Matchers::StartsWith("checkpoint-"));
  }
}

TEST_CASE("Faults: a trial save that finds no room warns and training goes on",
          "[fault][checkpoint]") {
  const test::TempDir folder;
  const fs::path output = folder.path() / "out";
  const ResumableRun run = with_library(
      {{"DSTRAIN_FAULT", fmt::format("reserve:1:{}", ENOSPC)}, {"DSTRAIN_FAULT_RANK", "1"}});
  const test::TrainRun result = run.train(output, fault_steps);
  CAPTURE(result.out, result.err);
  CHECK(result.status == status::done);
  CHECK_THAT(result.err, Catch::Matchers::ContainsSubstring("a trial save in " + output.string()));
  CHECK(test::whole_steps(output) == std::vector<std::int64_t>{4, 2});
}

TEST_CASE("Faults: a rank that sees a checkpoint late is waited for", "[fault][checkpoint]") {
  const test::TempDir folder;
  const fs::path output = folder.path() / "out";
  REQUIRE(with_library({}).train(output, 2).status == 0);
  const bool for_good = GENERATE(false, true);
  const ResumableRun run =
      with_library({{"DSTRAIN_FAULT", fmt::format("open:1{}:{}", for_good ? "+" : "", ENOENT)},
                    {"DSTRAIN_FAULT_RANK", "1"}});
  // A rank is waited for half as long as a collective may take.
  std::vector<std::string> arguments = run.arguments(fault_steps);
  arguments.insert(arguments.end(), {"--resume_from_checkpoint", "latest"});
  const test::TrainRun result =
      test::run_train(std::vector<std::string>{"--num_gpus", "2", "--timeout", "6"}, run.config(),
                      output, arguments, run.environment);
  CAPTURE(for_good, result.out, result.err);
  CHECK(result.status == (for_good ? 2 : 0));
  CHECK_THAT(result.err, Catch::Matchers::ContainsSubstring("waiting until all hosts see") &&
                             Catch::Matchers::ContainsSubstring("(rank 1): ") &&
                             !Catch::Matchers::ContainsSubstring("damaged"));
  if (for_good) {
    CHECK_THAT(result.err, Catch::Matchers::ContainsSubstring("another host has not seen for 3 s"));
  } else {
    CHECK(test::whole_steps(output) == std::vector<std::int64_t>{4, 2});
  }
}
