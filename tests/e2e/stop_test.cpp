// Runs that are asked to stop.
#include <csignal>
#include <fstream>

#include <fmt/format.h>

#include "runtime/checkpoint/catalog.h"
#include "tests/e2e/resumable_run.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using test::ResumableRun;

namespace {

namespace fs = std::filesystem;

std::vector<pid_t> ranks_of(const test::Launch& launch) {
  std::vector<pid_t> ranks;
  for (const pid_t pid : launch.processes()) {
    const std::string name = test::read_bytes(fmt::format("/proc/{}/comm", pid));
    if (name == "dstraind\n") ranks.push_back(pid);
  }
  return ranks;
}

/// The signals that a process handles, as bits; bit 0 is signal 1.
std::uint64_t handled_signals(pid_t process) {
  const std::string status = test::read_bytes(fmt::format("/proc/{}/status", process));
  const std::string_view name = "SigCgt:\t";
  const std::size_t at = status.find(name);
  REQUIRE(at != status.npos);
  return std::stoull(status.substr(at + name.size(), 16), nullptr, 16);
}

}  // namespace

// A handler's frame lies below the stack pointer, where oneDNN's AVX2 kernels have the heap.
TEST_CASE("Stop: no signal is handled on a thread that computes", "[e2e][stop]") {
  const test::TempDir folder;
  const ResumableRun run{.ranks = 2};
  test::Launch launch(run.endless(folder.path() / "out"),
                      {.env = {}, .directory = test::golden_folder.string()});
  REQUIRE(launch.wait_for_output("step 3/"));
  const std::vector<pid_t> ranks = ranks_of(launch);
  REQUIRE(ranks.size() == 2);
  for (const pid_t rank : ranks) {
    const std::uint64_t handled = handled_signals(rank);
    CAPTURE(rank, handled);
    for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGHUP})
      CHECK((handled >> (signal - 1) & 1U) == 0);
  }
  launch.signal(SIGTERM);
  CHECK(launch.wait() == 75);
}

TEST_CASE("Stop: a stopped run saves and resumes with the same bits", "[e2e][stop]") {
  const auto [signal, to_rank] = GENERATE(table<int, bool>(
      {{SIGTERM, false}, {SIGINT, false}, {SIGUSR1, false}, {SIGTERM, true}, {SIGUSR1, true}}));
  CAPTURE(signal, to_rank);
  const test::TempDir folder;
  const fs::path output = folder.path() / "out";
  const ResumableRun run{.ranks = 2, .stage = signal % 4, .bf16 = to_rank};
  std::int64_t step = 0;
  {
    test::Launch launch(run.endless(output),
                        {.env = {}, .directory = test::golden_folder.string()});
    REQUIRE(launch.wait_for_output("step 3/"));
    if (to_rank) {
      const std::vector<pid_t> ranks = ranks_of(launch);
      REQUIRE(ranks.size() == 2);
      ::kill(ranks.back(), signal);
    } else {
      launch.signal(signal);
    }
    CHECK(launch.wait() == 75);
    CAPTURE(launch.err());
    CHECK_THAT(launch.err(), ContainsSubstring("stopped on request after step") &&
                                 ContainsSubstring("--resume_from_checkpoint latest") &&
                                 !ContainsSubstring("error"));
    CHECK(launch.nothing_left());
    const auto found = checkpoint::list_checkpoints(output);
    REQUIRE(found.size() == 1);
    CHECK(checkpoint::verify(found.front().path).whole());
    step = found.front().step;
  }
  const int steps = static_cast<int>(step) + 2;
  const test::TrainRun rest = run.resume(output, steps);
  REQUIRE(rest.status == 0);
  const test::TrainRun whole = run.train(folder.path() / "whole", steps);
  REQUIRE(whole.status == 0);
  CHECK(test::results_of(rest) == test::results_of(whole));
  CHECK((test::read_bytes(output / "model.safetensors") ==
         test::read_bytes(folder.path() / "whole/model.safetensors")));
}

TEST_CASE("Stop: a run saves if all of its processes get the signal", "[e2e][stop]") {
  const int signal = GENERATE(SIGTERM, SIGHUP);
  CAPTURE(signal);
  const test::TempDir folder;
  const fs::path output = folder.path() / "out";
  const ResumableRun run{.ranks = 2, .stage = 1};
  test::Launch launch(run.endless(output), {.env = {}, .directory = test::golden_folder.string()});
  REQUIRE(launch.wait_for_output("step 3/"));
  launch.signal_all(signal);
  CHECK(launch.wait() == 75);
  CAPTURE(launch.err());
  const auto found = checkpoint::list_checkpoints(output);
  REQUIRE(found.size() == 1);
  CHECK(checkpoint::verify(found.front().path).whole());
  CHECK(launch.nothing_left());
}

TEST_CASE("Stop: a resumed run that is stopped at once keeps its old checkpoint", "[e2e][stop]") {
  const test::TempDir folder;
  const fs::path output = folder.path() / "out";
  const ResumableRun run{.ranks = 2, .stage = 3};
  REQUIRE(run.train(output, 2).status == 0);
  test::Launch launch(run.endless(output, {"--resume_from_checkpoint", "latest"}),
                      {.env = {}, .directory = test::golden_folder.string()});
  REQUIRE(launch.wait_for_output("step 3/"));
  REQUIRE(ranks_of(launch).size() == 2);
  launch.signal(SIGTERM);
  CHECK(launch.wait() == 75);
  const auto found = checkpoint::list_checkpoints(output);
  REQUIRE(found.size() == 2);
  CHECK(found.back().step == 2);
}
