// A disk that is too small: file systems of a few MiB, which only the child sees that mounts them.
#include <csignal>

#include <fmt/format.h>

#include "runtime/rank/worker_env.h"
#include "tests/fault/swapping_run.h"
#include "tests/offload/io_support.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using nlohmann::json;
using test::ResumableRun;
using test::TrainRun;

namespace {

namespace fs = std::filesystem;

/// Trains with a disk of this size; ends the test as skipped where none can be mounted. The
/// metrics lie in `output`.
json train_on(const std::string& size, const fs::path& disk, const fs::path& output) {
  fs::create_directory(disk);
  const std::string told = test::in_child([&] {
    const std::string refused = test::mount_for_me("tmpfs", disk.string(), "size=" + size);
    if (!refused.empty()) return refused;
    const TrainRun run = test::swapping_run(disk).train(output, 3, {"--save_steps", "2"});
    return json{{"status", run.status}, {"out", run.out}, {"err", run.err}}.dump();
  });
  if (told.starts_with("skip")) test::skip(told);
  INFO(told);
  REQUIRE(told.starts_with("{"));
  return json::parse(told);
}

}  // namespace

TEST_CASE("SwapSpace: a disk without room is refused before any rank starts", "[fault][offload]") {
  const test::TempDir folder;
  const fs::path disk = folder.path() / "disk";
  const json run = train_on("1m", disk, folder.path() / "out");
  CHECK(run.at("status") == 2);
  CHECK_THAT(run.at("err").get<std::string>(),
             ContainsSubstring("nvme_path: " + disk.string() +
                               ": 2 ranks of this machine would need 1.") &&
                 ContainsSubstring(" MiB there, and 1.00 MiB are free; make room"));
  CHECK(run.at("out") == "");
}

TEST_CASE("SwapSpace: without room for its copy a save is given up and training goes on",
          "[fault][offload]") {
  const test::TempDir folder;
  const fs::path output = folder.path() / "out";
  const json run = train_on("1600k", folder.path() / "disk", output);
  const std::string err = run.at("err");
  CAPTURE(err);
  CHECK(run.at("status") == status::unsaved);
  // Of the disk, and one for each save; then the launcher repeats the last lines.
  CHECK(test::count_in(err.substr(0, err.find("error: rank 0")), "warning: ") == 3);
  CHECK_THAT(err, ContainsSubstring("lies in memory: offloading to it saves none") &&
                      ContainsSubstring("checkpoint-2 is not saved: swap file in ") &&
                      ContainsSubstring(" are wanted, "));
  CHECK_FALSE(fs::exists(output / "checkpoint-2"));
  const TrainRun reference = test::plain_run().train(folder.path() / "plain", 3);
  CHECK(test::results_in(output) == results_of(reference));
}

TEST_CASE("SwapSpace: the space of a rank that is killed is free again", "[fault][offload]") {
  const test::TempDir folder;
  const fs::path disk = folder.path() / "disk";
  fs::create_directory(disk);
  const std::string told = test::in_child([&]() -> std::string {
    const std::string refused = test::mount_for_me("tmpfs", disk.string(), "size=8m");
    if (!refused.empty()) return refused;
    const auto before = fs::space(disk).available;
    test::Launch launch(test::swapping_run(disk).endless(folder.path() / "out"),
                        {.env = {}, .directory = test::golden_folder.string()});
    if (!launch.wait_for_output("step 2/")) return "no step: " + launch.err();
    const bool taken = fs::space(disk).available < before;
    ::kill(test::rank_pid(launch, 1), SIGKILL);
    const int status = launch.wait();
    if (!launch.nothing_left()) return "left: processes";
    return fmt::format("{} {} {}", taken, status, fs::space(disk).available == before);
  });
  if (told.starts_with("skip")) test::skip(told);
  CHECK(told == "true 137 true");
}
