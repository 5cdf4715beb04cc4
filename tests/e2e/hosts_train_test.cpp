// Training on several hosts that a program in place of ssh reaches.
#include <nlohmann/json.hpp>

#include "launcher/process/program_output.h"
#include "launcher/process/program_path.h"
#include "tests/e2e/fake_hosts.h"
#include "tests/e2e/resumable_run.h"
#include "tests/e2e/train_run.h"
#include "tests/support/catch.h"
#include "tests/support/rank_process.h"
#include "tests/support/skip.h"

using namespace dstrain;
using nlohmann::json;

/// One thread per rank: the bits of oneDNN's products may depend on how many there are.
TEST_CASE("Hosts: training gives the losses of one machine", "[e2e][golden]") {
  const test::FakeHosts hosts("n0 slots=1\nlocalhost slots=1\nn1 slots=1\n");
  const json golden = test::read_json(test::golden_folder / "plain.json");
  const test::TempDir folder;
  const test::TrainRun local = test::run_train(3, golden.at("ds_config"), folder.path() / "local",
                                               golden.at("arguments"), {{"OMP_NUM_THREADS", "1"}});
  const test::TrainRun spread =
      test::run_train(hosts.words({}), golden.at("ds_config"), folder.path() / "spread",
                      golden.at("arguments"), {{"DSTRAIN_COMM", "tcp"}, {"OMP_NUM_THREADS", "1"}});
  CAPTURE(local.err, spread.err);
  REQUIRE(local.status == 0);
  REQUIRE(spread.status == 0);
  REQUIRE(spread.metrics.size() == local.metrics.size());
  for (std::size_t step = 0; step < local.metrics.size(); ++step) {
    CHECK(spread.metrics[step].at("loss") == local.metrics[step].at("loss"));
  }
}

namespace {

/// Runs the words that follow without /etc/hosts, and without a name server, an answer of which
/// would hide what is missing.
const std::vector<std::string> without_hosts{
    "unshare",
    "--mount",
    "sh",
    "-c",
    "mount --bind /dev/null /etc/hosts && mount --bind /dev/null /etc/resolv.conf && exec \"$@\"",
    "sh"};

/// Skips the test unless these words, of which the first is on PATH, succeed before "true". Root in
/// a container, or in a chroot whose root is no mount point, may not mount.
void skip_unless_mounts(std::vector<std::string> words) {
  words.front() = launcher::find_on_path(words.front());
  words.emplace_back("true");
  if (words.front().empty()) test::skip("there is no unshare");
  const auto output = launcher::run_program(words, 60);
  if (output.ok() && output.value().wait_status == 0) return;
  test::skip("nothing can be mounted: " + (output.ok() ? output.value().text : output.error()));
}

}  // namespace

TEST_CASE("Hosts: localhost is the loopback for a resolver that does not know it", "[e2e]") {
  skip_unless_mounts(without_hosts);
  const test::FakeHosts hosts("localhost slots=2\n");
  const char* const communicator = GENERATE("shm", "tcp");
  test::Launch launch(
      {"-H", (hosts.folder() / "hosts").string(), "--master_addr", "localhost", "--master_port",
       std::to_string(test::free_port()), "--timeout", "600", "bench", "comm", "--sizes", "64KiB",
       "--runs", "1"},
      {.env = {{"DSTRAIN_COMM", communicator}}, .directory = {}, .wrapper = without_hosts});
  const int status = launch.wait();
  CAPTURE(communicator, launch.err());
  CHECK(status == 0);
}

TEST_CASE("Hosts: one that does not share the output directory is named before the first step",
          "[e2e]") {
  const test::FakeHosts hosts("localhost slots=1\napart slots=1\n");
  skip_unless_mounts({"unshare", "--mount", "--uts"});
  const std::filesystem::path shared = hosts.folder() / "shared";
  std::filesystem::create_directory(shared);
  std::vector<std::string> words = hosts.words({"--log_level", "warning", "--timeout", "8"});
  for (const std::string& word : test::train_command(shared / "out")) words.push_back(word);
  const test::Outcome run = test::run_command(
      words, {.env = {{"OMP_NUM_THREADS", "1"}}, .directory = test::golden_folder.string()});
  CAPTURE(run.out, run.err);
  CHECK(run.status == 2);
  CHECK_THAT(run.err,
             Catch::Matchers::ContainsSubstring("host apart does not see " + shared.string()) &&
                 Catch::Matchers::ContainsSubstring("which rank 0 has made on another host"));
  CHECK_THAT(run.out + run.err, Catch::Matchers::ContainsSubstring("waiting up to 4 s for"));
  CHECK(test::read_metrics(shared / "out").empty());
}
