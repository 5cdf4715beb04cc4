// Runs whose output directory goes, or takes no more.
#include <csignal>

#include <unistd.h>

#include <fmt/format.h>

#include "runtime/checkpoint/catalog.h"
#include "runtime/rank/worker_env.h"
#include "tests/e2e/resumable_run.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using test::ResumableRun;
namespace fs = std::filesystem;

TEST_CASE("Lost output: a directory that is removed while a training runs is told", "[e2e]") {
  const test::TempDir folder;
  const fs::path output = folder.path() / "out";
  const ResumableRun run{.ranks = 2, .more = {"--logging_steps", "1"}};
  std::vector<std::string> command = run.endless(output);
  // The last one typed counts.
  command.insert(command.end(), {"--max_steps", "1000"});
  test::Launch launch(command, {.env = {}, .directory = test::golden_folder.string()});
  REQUIRE(launch.wait_for_output("step 3/"));
  fs::remove_all(output);
  CHECK(launch.wait() == 1);
  CAPTURE(launch.err());
  CHECK_THAT(launch.err(),
             ContainsSubstring("metrics.jsonl: the file was removed") &&
                 ContainsSubstring("--output_dir " + output.string() + ": it was removed"));
  CHECK(fs::exists(output / "model.safetensors"));  // what is there is not thrown away
}

TEST_CASE("Lost output: a path that is too long for its checkpoints is refused at once", "[e2e]") {
  const test::TempDir folder;
  // Long enough for metrics.jsonl and the model, but not for what a save writes.
  std::string output = folder.path().string();
  while (output.size() < 3800) output += "/" + std::string(200, 'd');
  output += "/" + std::string(4040 - output.size(), 'd');
  const test::Outcome run = test::run_command(
      test::train_command(output), {.env = {}, .directory = test::golden_folder.string()});
  CHECK(run.status == 2);
  CHECK_THAT(run.err, ContainsSubstring("too many for the paths of checkpoints"));
  CHECK(fs::is_empty(folder.path()));
}

TEST_CASE("Lost output: a thread limit is named instead of OpenMP's message", "[e2e]") {
  if (::geteuid() != 0) test::skip("only root can run a program as another user");
  for (fs::path at = DSTRAIN_PROGRAM; at.has_relative_path(); at = at.parent_path()) {
    if ((fs::status(at).permissions() & fs::perms::others_exec) == fs::perms::none) {
      test::skip("another user cannot reach the program");
    }
  }
  const test::TempDir folder;
  std::vector<std::string> command = test::train_command(folder.path() / "out");
  command.insert(command.begin(), {"--num_gpus", "1", "--device", "cpu"});
  fs::permissions(folder.path(), fs::perms::all);
  const test::Outcome run = test::run_command(
      command,
      {.env = {{"OMP_NUM_THREADS", "32"}},
       .directory = test::golden_folder.string(),
       .wrapper = {"prlimit", "--nproc=20", "setpriv", "--reuid=54321", "--clear-groups"}});
  CAPTURE(run.err);
  CHECK(run.status == 1);
  CHECK_THAT(run.err, ContainsSubstring("the system starts no more threads; raise ulimit -u, which "
                                        "allows 20 processes and threads of this user") &&
                          !ContainsSubstring("libgomp"));
}

TEST_CASE("Lost output: files that may not grow fail the save and kill no rank", "[e2e]") {
  const test::TempDir folder;
  const fs::path output = folder.path() / "out";
  const ResumableRun run{.ranks = 1};  // memory that ranks share would be such a file, too
  std::vector<std::string> command = run.endless(output, {"--save_steps", "2"});
  command.insert(command.end(), {"--max_steps", "4"});
  test::Launch launch(command, {.env = {},
                                .directory = test::golden_folder.string(),
                                .wrapper = {"sh", "-c", "ulimit -f 16; exec \"$@\"", "sh"}});
  CHECK(launch.wait() == status::unsaved);
  CAPTURE(launch.out(), launch.err());
  CHECK_THAT(launch.err(), ContainsSubstring("File too large") &&
                               ContainsSubstring((output / "checkpoint-2").string()) &&
                               !ContainsSubstring("SIGXFSZ"));
  CHECK(checkpoint::list_checkpoints(output).empty());
  CHECK(launch.nothing_left());
}
