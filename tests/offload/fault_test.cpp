// A write of ThreadIo fails or stops half-way, as the disk would have it.
#include <cerrno>

#include "tests/support/catch.h"
#include "tests/support/rank_process.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;

namespace {

struct Run {
  std::filesystem::path directory;
  std::string output;
};

Run run_with(const std::filesystem::path& folder, const std::string& fault) {
  const std::filesystem::path directory = folder / "checkpoint-1";  // what the library looks for
  std::filesystem::create_directory(directory);
  test::RankProcess process(
      {{DSTRAIN_FAULT_RANK_PROGRAM, directory.string()},
       {"RANK=0", "DSTRAIN_FAULT=" + fault, std::string("LD_PRELOAD=") + DSTRAIN_FAULT_LIBRARY}});
  Run run{directory, process.read_all()};
  CHECK(process.wait() == 0);
  return run;
}

}  // namespace

TEST_CASE("ThreadIo: a write that fails once is named and the next one works", "[offload][fault]") {
  const test::TempDir folder;
  const auto [error, text] = GENERATE(
      table<int, std::string>({{EIO, "Input/output error"}, {ENOSPC, "No space left on device"}}));
  const Run run = run_with(folder.path(), fmt::format("write:3:{}", error));
  CHECK(run.output == fmt::format("first: swap file in {}: write 65536 bytes at 131072: {}\n"
                                  "second: true\n",
                                  run.directory.string(), text));
}

TEST_CASE("ThreadIo: a write that stops half-way goes on", "[offload][fault]") {
  const test::TempDir folder;
  const int number = GENERATE(1, 5, 8);
  CHECK(run_with(folder.path(), fmt::format("write:{}:short", number)).output ==
        "first: true\nsecond: true\n");
}
