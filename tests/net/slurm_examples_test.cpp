// The batch scripts of examples/slurm, as sbatch runs them.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include <unistd.h>

#include <fmt/ranges.h>

#include "tests/e2e/resumable_run.h"
#include "tests/support/catch.h"
#include "tests/support/count_from.h"
#include "tests/support/process_end.h"
#include "tests/support/slurm_cluster.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using test::output_of;
using Words = std::vector<std::string>;

namespace {

namespace fs = std::filesystem;

/// The words behind `train --output_dir OUTPUT` of a run of so many ranks and steps.
Words training(int ranks, const fs::path& output, int steps) {
  const Words words =
      test::ResumableRun{.ranks = ranks}.endless(output, {"--max_steps", std::to_string(steps)});
  return {std::find(words.begin(), words.end(), output.string()) + 1, words.end()};
}

struct Change {
  std::string from;
  std::string to;
};

/// A copy of an example that finds our programs, with these places of it changed.
fs::path changed_example(const std::string& name,
                         const fs::path& folder,
                         std::vector<Change> changes) {
  std::string text = test::read_bytes(fs::path(DSTRAIN_SOURCE_DIR) / "examples/slurm" / name);
  const std::string programs = fs::path(DSTRAIN_PROGRAM).parent_path().string();
  const std::size_t options_end = text.find("\n\n");
  text.insert(
      options_end + 1,
      fmt::format("export HOME={} OMP_NUM_THREADS=1 ASAN_OPTIONS=detect_leaks=0 PATH={}:$PATH\n",
                  folder.string(), programs));
  for (const Change& change : changes) {
    const std::size_t at = text.find(change.from);
    REQUIRE(at != text.npos);
    text.replace(at, change.from.size(), change.to);
  }
  std::ofstream(folder / name) << text;
  return folder / name;
}

/// A submitted script and the file of what it prints.
struct Batch {
  std::string id;
  fs::path log;
  [[nodiscard]] std::string printed() const { return test::read_bytes(log); }
  [[nodiscard]] bool wait_for(const std::string& text) const {
    return test::look_until(::getpid(), [&] { return printed().find(text) != std::string::npos; });
  }
  /// SLURM's word for how it is.
  [[nodiscard]] std::string state() const {
    const std::string job = output_of({"/usr/bin/scontrol", "--oneliner", "show", "job", id});
    const std::size_t at = job.find("JobState=") + 9;
    return job.substr(at, job.find(' ', at) - at);
  }
  [[nodiscard]] bool wait_for_state(const std::string& wanted) const {
    return test::look_until(::getpid(), [&] { return state() == wanted; });
  }
};

Batch submit(const fs::path& script, const Words& arguments) {
  const fs::path log = script.parent_path() / "log";
  Words words{"/usr/bin/sbatch", "--parsable", "--chdir=" + test::golden_folder.string(),
              "--output=" + log.string(), script.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::string id = output_of(words);
  id.pop_back();
  return {id, log};
}

}  // namespace

/// DSTRAIN_SLURM_LIMIT: steps of a training that takes more than a minute, SLURM's shortest limit.
/// Without it the signal before the limit is sent by hand.
TEST_CASE("Slurm examples: training saves before the limit and goes on", "[net][slurm]") {
  const test::SlurmCluster cluster;
  const fs::path output = cluster.folder() / "out";
  const int by_hand = 300;
  const int steps = test::count_from("DSTRAIN_SLURM_LIMIT", by_hand);
  std::vector<Change> limit;
  if (steps != by_hand) limit = {{"--time=20:00:00", "--time=1"}, {"TERM@180", "TERM@20"}};
  Words arguments{output.string()};
  for (const std::string& word : training(4, output, steps)) arguments.push_back(word);
  const Batch batch = submit(changed_example("train.sbatch", cluster.folder(), limit), arguments);
  REQUIRE(batch.wait_for("step 2/"));
  if (steps == by_hand) output_of({"/usr/bin/scancel", "--signal=TERM", batch.id});
  REQUIRE(batch.wait_for("stopped on request after step"));
  REQUIRE(batch.wait_for_state("COMPLETED"));
  CAPTURE(batch.printed());
  CHECK(fs::exists(output / "model.safetensors"));
  CHECK(test::read_metrics(output).size() == static_cast<std::size_t>(steps));
}

TEST_CASE("Slurm examples: the script of DeepSpeed users trains", "[net][slurm]") {
  const test::SlurmCluster cluster;
  const fs::path output = cluster.folder() / "out";
  const std::string words =
      fmt::format("--output_dir {} {}", output.string(), fmt::join(training(2, output, 3), " "));
  const fs::path script =
      changed_example("launch.slurm", cluster.folder(),
                      {{"#SBATCH --gres=gpu:8", "# "},
                       {"--cpus-per-task=10", "--cpus-per-task=2"},
                       {"GPUS_PER_NODE=8", "GPUS_PER_NODE=1"},
                       {"MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)",
                        fmt::format("MASTER_ADDR={}",
                                    test::SlurmCluster::address)},  // n1 is no name of the network
                       {"<normal cl args> --deepspeed ds_config.json", words}});
  const Batch batch = submit(script, {});
  const bool completed = batch.wait_for_state("COMPLETED");
  CAPTURE(batch.printed());
  REQUIRE(completed);
  CHECK(test::read_metrics(output).size() == 3);
  CHECK(fs::is_empty(cluster.folder() / ".dstrain"));
}
