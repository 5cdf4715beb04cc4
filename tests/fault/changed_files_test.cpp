// Files of training data that somebody writes to while ranks read them.
#include <fstream>

#include "tests/e2e/resumable_run.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
namespace fs = std::filesystem;
using Catch::Matchers::ContainsSubstring;

namespace {

/// A run on a file of its own that has taken a step, and what it says after `change`.
test::Outcome after(const std::string& change) {
  const test::TempDir folder;
  const fs::path file = folder.path() / "tokens.bin";
  fs::copy_file(test::golden_folder / "tokens.bin", file);
  const test::ResumableRun run{.train_file = {file.string()}};
  test::Launch launch(run.endless(folder.path() / "out"),
                      {.env = {{"OMP_NUM_THREADS", "1"}}, .directory = folder.path().string()});
  REQUIRE(launch.wait_for_output("step 1/"));
  if (change == "cut") {
    fs::resize_file(file, 2000);
    return {launch.wait(), launch.out(), launch.err()};
  }
  std::ofstream(file, std::ios::app) << "more";
  REQUIRE(launch.wait_for_error("was written to"));
  launch.signal(SIGTERM);
  return {launch.wait(), launch.out(), launch.err()};
}

}  // namespace

TEST_CASE("Changed files: a truncated file ends the run with its name", "[fault][data]") {
  const test::Outcome run = after("cut");
  CHECK(run.status != 0);
  CHECK(run.status < 128);
  CHECK_THAT(run.err, ContainsSubstring("tokens.bin: was cut"));
}

TEST_CASE("Changed files: a modified file is reported", "[fault][data]") {
  const test::Outcome run = after("append");
  CHECK(run.status == 75);
  CHECK_THAT(run.err, ContainsSubstring("tokens.bin: was written to while it is read"));
}
