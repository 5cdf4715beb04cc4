// Directories that cannot be used or are used twice, and memory that may not be locked.
#include <fstream>
#include <future>

#include <fmt/format.h>

#include "tests/fault/swapping_run.h"
#include "tests/offload/io_support.h"
#include "tests/support/catch.h"
#include "tests/support/child_process.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using test::ResumableRun;
using test::TrainRun;

namespace fs = std::filesystem;

TEST_CASE("SwapPlaces: a path that is a file is refused", "[fault][offload]") {
  const test::TempDir folder;
  const fs::path file = folder.path() / "file";
  std::ofstream(file) << "mine";
  const TrainRun run = test::swapping_run(file).train(folder.path() / "out", 2);
  CHECK(run.status == 2);
  CHECK_THAT(run.err,
             ContainsSubstring("offload_param.nvme_path: " + file.string() + ": is no directory"));
  CHECK(run.out.empty());
  CHECK(test::read_bytes(file) == "mine");
}

TEST_CASE("SwapPlaces: a directory that is read-only is refused", "[fault][offload]") {
  const test::TempDir folder;
  const fs::path disk = folder.path() / "disk";
  fs::create_directory(disk);
  const std::string told = test::in_child([&] {
    const std::string refused = test::mount_for_me("tmpfs", disk.string(), "ro");
    if (!refused.empty()) return refused;
    const TrainRun run = test::swapping_run(disk).train(folder.path() / "out", 2);
    return fmt::format("{} {} {}", run.status, run.out, run.err);
  });
  if (told.starts_with("skip")) test::skip(told);
  CHECK_THAT(told, Catch::Matchers::StartsWith("2 ") &&
                       ContainsSubstring("nvme_path: " + disk.string() +
                                         ": cannot be written to: Read-only file system") &&
                       !ContainsSubstring("step 1/"));
}

TEST_CASE("SwapPlaces: two jobs in one directory keep apart", "[fault][offload]") {
  const test::TempDir folder;
  const fs::path disk = folder.path() / "disk";
  fs::create_directory(disk);
  const TrainRun reference = test::plain_run().train(folder.path() / "plain", 8);
  const auto train = [&](const std::string& port) {
    const ResumableRun run = test::swapping_run(disk);
    return test::run_train(std::vector<std::string>{"--num_gpus", "2", "--master_port", port},
                           run.config(), folder.path() / port, run.arguments(8), run.environment);
  };
  auto first = std::async(std::launch::async, train, "29731");
  auto second = std::async(std::launch::async, train, "29732");
  for (auto* job : {&first, &second}) {
    const TrainRun run = job->get();
    CAPTURE(run.err);
    CHECK(run.status == 0);
    CHECK(results_of(run) == results_of(reference));
  }
  CHECK(fs::is_empty(disk));
}

TEST_CASE("SwapPlaces: a lock limit is reported once and only if pin_memory was given",
          "[fault][offload]") {
  const bool given = GENERATE(false, true);
  const rlim_t kibibytes = GENERATE(64U, 242U);  // the run wants 240
  const test::TempDir folder;
  const fs::path disk = folder.path() / "disk";
  fs::create_directory(disk);
  ResumableRun run = test::swapping_run(disk);
  if (given) run.zero["offload_optimizer"]["pin_memory"] = true;
  if (given) run.zero["offload_param"]["pin_memory"] = true;
  const fs::path output = folder.path() / "out";
  const std::string told = test::in_child([&]() -> std::string {
    const std::string refused = test::limit_locked_memory(kibibytes << 10U);
    if (!refused.empty()) return refused;
    const TrainRun limited = run.train(output, 3);
    return fmt::format("{} {} ", limited.status, test::count_in(limited.err, "pin_memory: ")) +
           limited.err;
  });
  if (told.starts_with("skip")) test::skip(told);
  CHECK_THAT(told, Catch::Matchers::StartsWith(given ? "0 1 " : "0 0 "));
  const TrainRun reference = test::plain_run().train(folder.path() / "plain", 3);
  CHECK(test::results_in(output) == results_of(reference));
}
