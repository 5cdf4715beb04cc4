// Ranks whose name server fails, or does not know where they are to meet, and then does.
#include <netdb.h>

#include <fmt/format.h>

#include "runtime/rank/worker_env.h"
#include "tests/e2e/resumable_run.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using test::Outcome;

namespace {

/// Two ranks that are to meet at `host`, each of which tries so long. The look-ups that `calls`
/// names ("1": the first of each rank, "1+": all) fail with `code`.
struct Meeting {
  std::string host;
  std::string calls;
  int code = 0;
  int seconds = 60;
};

Outcome train(const Meeting& meeting, const test::TempDir& folder) {
  const auto& [host, calls, code, seconds] = meeting;
  std::vector<std::string> command{
      "--num_gpus",     "2", "--master_addr", host,
      "--max_restarts", "1", "--env",         fmt::format("DSTRAIN_TIMEOUT={}", seconds)};
  const std::vector<std::string> words = test::train_command(folder.path() / "out");
  command.insert(command.end(), words.begin(), words.end());
  return test::run_command(
      command, {.env = {{"LD_PRELOAD", DSTRAIN_FAULT_LIBRARY},
                        {"DSTRAIN_FAULT", fmt::format("getaddrinfo:{}:{}", calls, code)},
                        {"DSTRAIN_FAULT_FILES", host},
                        {"OMP_NUM_THREADS", "1"}},
                .directory = test::golden_folder.string()});
}

}  // namespace

TEST_CASE("Name server: an address that ranks cannot resolve counts as a failed launch",
          "[fault][rendezvous]") {
  const int code = GENERATE(EAI_NONAME, EAI_NODATA, EAI_AGAIN);
  const test::TempDir folder;
  const Outcome job =
      train({.host = "w0.cluster", .calls = "1+", .code = code, .seconds = 1}, folder);
  CAPTURE(code, job.err);
  CHECK(job.status == status::could_not_launch);
  CHECK_THAT(job.err,
             ContainsSubstring(fmt::format(
                 "warning: MASTER_ADDR: cannot resolve host "
                 "\"w0.cluster\": {}; trying again for 1 s. If the name stays unknown, set "
                 "MASTER_ADDR to an address that every node reaches\n",
                 ::gai_strerror(code))));
  CHECK_THAT(job.err,
             ContainsSubstring(fmt::format("MASTER_ADDR: cannot resolve host \"w0.cluster\": {}; "
                                           "give MASTER_ADDR (dstrain --master_addr) a name",
                                           ::gai_strerror(code))));
  CHECK_THAT(job.err, !ContainsSubstring("restart 1"));
}

TEST_CASE("Name server: unknown and unanswered names are asked again", "[fault][rendezvous]") {
  const int code = GENERATE(EAI_NONAME, EAI_AGAIN);
  const test::TempDir folder;
  const Outcome job = train({.host = "127.0.0.1", .calls = "1", .code = code}, folder);
  CAPTURE(code, job.err);
  CHECK(job.status == status::done);
  CHECK_THAT(job.err, ContainsSubstring("trying again for 60 s"));
  CHECK_THAT(job.err, !ContainsSubstring("restart 1"));
  CHECK(test::read_metrics(folder.path() / "out").size() == 2);
}
