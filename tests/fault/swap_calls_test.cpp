// Calls that swap fail or stop short once, on one rank: the job ends and says why, or its results
// are those of a run that swaps nothing.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <random>

#include <fmt/format.h>

#include "tests/fault/saved_steps.h"
#include "tests/fault/swapping_run.h"
#include "tests/support/catch.h"
#include "tests/support/count_from.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using test::ResumableRun;
using test::TrainRun;

namespace {

namespace fs = std::filesystem;

constexpr int swap_steps = 4;
const std::vector<std::string> saving{"--save_steps", "2"};

struct SwapFault {
  std::string call;
  int number;
  int error;  ///< 0: the call stops short
  int rank;
  bool overlap;
};

/// Each save also gathers the whole model.
ResumableRun with_library(const fs::path& disk,
                          bool early,
                          std::vector<launcher::EnvVar> variables) {
  ResumableRun run = test::swapping_run(disk, early);
  run.zero["stage3_gather_16bit_weights_on_model_save"] = true;
  variables.push_back({"LD_PRELOAD", DSTRAIN_FAULT_LIBRARY});
  variables.push_back({"DSTRAIN_FAULT_FILES", disk.string()});
  variables.push_back({"DSTRAIN_IO", "threads"});
  run.environment.insert(run.environment.end(), variables.begin(), variables.end());
  return run;
}

std::map<std::string, int> count_calls(const fs::path& folder, const fs::path& disk, bool early) {
  const fs::path log = folder / "calls";
  const ResumableRun run = with_library(disk, early, {{"DSTRAIN_FAULT_LOG", log.string()}});
  REQUIRE(run.train(folder / "counted", swap_steps, saving).status == 0);
  std::map<std::string, int> calls;
  std::ifstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    calls[line.substr(2, line.find('\t') - 2)] += line[0] == '0';
  }
  return calls;
}

/// The moments are spread over a run, `count` for each call and way to fail.
std::vector<SwapFault> spread_faults(const std::map<std::string, int>& calls,
                                     std::span<const int> errors,
                                     int count) {
  std::mt19937 random(11);
  std::vector<SwapFault> faults;
  for (const std::string call : {"read", "write"}) {
    const int all = calls.at(call);
    REQUIRE(all > 100);
    for (const int error : errors) {
      for (int part = 0; part < count; ++part) {
        const int number = 1 + part * all / count +
                           static_cast<int>(random() % static_cast<unsigned>(all / count));
        faults.push_back({call, number, error, part % 2, random() % 2 == 0});
      }
    }
  }
  return faults;
}

TrainRun run_with(const SwapFault& fault,
                  bool early,
                  const fs::path& output,
                  const fs::path& disk) {
  const std::string way = fault.error == 0 ? "short" : std::to_string(fault.error);
  ResumableRun run =
      with_library(disk, early,
                   {{"DSTRAIN_FAULT", fmt::format("{}:{}:{}", fault.call, fault.number, way)},
                    {"DSTRAIN_FAULT_RANK", std::to_string(fault.rank)}});
  run.zero["overlap_comm"] = fault.overlap;
  return run.train(output, swap_steps, saving);
}

/// Of a run that may have ended early.
void check_checkpoints(const TrainRun& run, const fs::path& output) {
  const std::vector<std::int64_t> whole = test::whole_steps(output);
  for (const std::int64_t step : test::acknowledged_steps(run.out)) {
    CHECK(std::count(whole.begin(), whole.end(), step) == 1);
  }
}

void check_end(const SwapFault& fault, const TrainRun& run, const fs::path& disk) {
  CHECK(run.status == 1);
  CHECK_THAT(run.err,
             ContainsSubstring(fmt::format("[rank {}]: dstrain: error: swap file in {}: {} ",
                                           fault.rank, disk.string(), fault.call)) &&
                 ContainsSubstring(std::strerror(fault.error)) &&
                 ContainsSubstring(fmt::format("error: rank {} on localhost", fault.rank)));
}

}  // namespace

TEST_CASE("SwapFaults: a call that fails ends the job and a resume goes on", "[fault][offload]") {
  const bool early = GENERATE(false, true);
  const test::TempDir folder;
  const fs::path disk = folder.path() / "disk";
  fs::create_directory(disk);
  const TrainRun reference = test::plain_run().train(folder.path() / "plain", swap_steps);
  const std::vector<int> errors{EIO, ENOSPC};
  int ended = 0;
  int round = 0;
  for (const SwapFault& fault : spread_faults(count_calls(folder.path(), disk, early), errors,
                                              test::count_from("DSTRAIN_SWAP_FAULTS", 2))) {
    CAPTURE(early, fault.call, fault.number, fault.error, fault.rank, fault.overlap);
    const fs::path output = folder.path() / std::to_string(++round);
    const TrainRun run = run_with(fault, early, output, disk);
    CAPTURE(run.out, run.err);
    CHECK(fs::is_empty(disk));
    check_checkpoints(run, output);
    if (run.status == 0) {  // of a write at the end, nothing is read again
      CHECK(fault.call == "write");
      CHECK(results_of(run) == results_of(reference));
      continue;
    }
    ++ended;
    check_end(fault, run, disk);
    if (test::whole_steps(output).empty()) continue;
    const TrainRun rest = test::swapping_run(disk).resume(output, swap_steps);
    CHECK(rest.status == 0);
    CHECK(results_of(rest) == results_of(reference));
  }
  CHECK(ended >= round - round / 6);
}

TEST_CASE("SwapFaults: a short transfer changes no result", "[fault][offload]") {
  const bool early = GENERATE(false, true);
  const test::TempDir folder;
  const fs::path disk = folder.path() / "disk";
  fs::create_directory(disk);
  const TrainRun reference = test::plain_run().train(folder.path() / "plain", swap_steps);
  const std::vector<int> no_error{0};
  int round = 0;
  for (const SwapFault& fault : spread_faults(count_calls(folder.path(), disk, early), no_error,
                                              test::count_from("DSTRAIN_SWAP_FAULTS", 2))) {
    CAPTURE(early, fault.call, fault.number, fault.rank, fault.overlap);
    const fs::path output = folder.path() / std::to_string(++round);
    const TrainRun run = run_with(fault, early, output, disk);
    CAPTURE(run.err);
    REQUIRE(run.status == 0);
    CHECK(results_of(run) == results_of(reference));
    CHECK(test::read_bytes(output / "model.safetensors") ==
          test::read_bytes(folder.path() / "plain/model.safetensors"));
  }
}
