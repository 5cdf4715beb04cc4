// Ranks bound to cores, as the kernel sees them.
#include <map>
#include <set>
#include <sstream>

#include "launcher/plan/core_binding.h"
#include "launcher/plan/machine.h"
#include "tests/e2e/launch_process.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/skip.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using test::Launch;
using Words = std::vector<std::string>;

namespace {

const std::string show =
    "echo $RANK $(grep Cpus_allowed_list /proc/self/status | cut -f2) $OMP_NUM_THREADS";

/// All cores, to be shared.
launcher::CoreBinding all_cores() {
  const std::string missing = test::error_of(launcher::check_can_bind_cores);
  if (!missing.empty()) test::skip(missing);
  return launcher::bind_cores({}, 1).front();
}

/// What each rank printed: the processors it may use, and its threads.
std::map<int, std::pair<std::string, int>> bound(Words options, int ranks) {
  options.insert(options.begin(), "-q");
  options.insert(options.end(), {"--num_gpus", std::to_string(ranks), "sh", "-c", show});
  Launch launch(options);
  CHECK(launch.wait() == 0);
  std::map<int, std::pair<std::string, int>> found;
  std::istringstream lines(launch.out());
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line.substr(line.starts_with('[') ? line.find(": ") + 2 : 0));
    int rank = 0;
    std::string cpus;
    int threads = 0;
    words >> rank >> cpus >> threads;
    found[rank] = {cpus, threads};
  }
  return found;
}

}  // namespace

TEST_CASE("Binding: each rank has cores of its own", "[e2e][binding]") {
  const int cores = all_cores().cores;
  const auto ranks = bound({"--bind_cores_to_rank"}, cores);
  std::set<std::string> distinct;
  for (const auto& [rank, seen] : ranks) {
    distinct.insert(seen.first);
    CHECK(seen.second == 1);
  }
  CHECK(static_cast<int>(distinct.size()) == cores);
}

TEST_CASE("Binding: one rank has all cores and more ranks than cores share", "[e2e][binding]") {
  const int cores = all_cores().cores;
  CHECK(bound({"--bind_cores_to_rank"}, 1)[0].second == cores);
  const auto ranks = bound({"--bind_cores_to_rank", "--oversubscribe"}, cores + 1);
  CHECK(ranks.at(0) == ranks.at(cores));
}

TEST_CASE("Binding: ranks use only the listed cores", "[e2e][binding]") {
  const auto all = all_cores().cpus;
  const std::string last = std::to_string(all.back());
  const auto ranks = bound({"--bind_core_list", last}, 1);
  CHECK(ranks.at(0) == std::pair<std::string, int>(last, 1));
}

TEST_CASE("Binding: impossible bindings are refused", "[e2e][binding]") {
  all_cores();
  Launch absent({"--bind_core_list", "9999", "sh", "-c", "true"});
  CHECK(absent.wait() == 3);
  CHECK_THAT(absent.err(), ContainsSubstring("core 9999 is not one of"));
  Launch wrong({"--bind_core_list", "3-1", "sh", "-c", "true"});
  CHECK(wrong.wait() == 2);
  Launch twice({"--bind_cores_to_rank", "--env", "KMP_AFFINITY=compact", "sh", "-c", "true"});
  CHECK(twice.wait() == 3);
  CHECK_THAT(twice.err(), ContainsSubstring("KMP_AFFINITY"));
}
