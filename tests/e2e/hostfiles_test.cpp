// The examples in hostfiles/, by the command that each gives.
#include <filesystem>
#include <fstream>
#include <map>

#include <nlohmann/json.hpp>

#include "launcher/process/text.h"
#include "tests/e2e/launch_process.h"
#include "tests/support/catch.h"

using namespace dstrain;
namespace fs = std::filesystem;

namespace {

const fs::path root = DSTRAIN_SOURCE_DIR;

/// The words between "dstrain" and "train" in the first line.
std::vector<std::string> options_in(const fs::path& hostfile) {
  std::ifstream file(hostfile);
  std::string line;
  std::getline(file, line);
  const std::string start = ": dstrain ";
  const std::size_t from = line.find(start);
  const std::size_t to = line.rfind(" train ...");
  REQUIRE(from != line.npos);
  REQUIRE(to != line.npos);
  const std::size_t first = from + start.size();
  return launcher::split_words(line.substr(first, to - first)).value();
}

}  // namespace

TEST_CASE("Hostfiles: every example does what it says", "[e2e]") {
  const std::map<std::string, int> ranks{{"local", 2},   {"two_workstations", 4},
                                         {"subset", 10}, {"uneven_nodes", 11},
                                         {"ipv6", 12},   {"jump_host", 8}};
  std::size_t seen = 0;
  for (const auto& entry : fs::directory_iterator(root / "hostfiles")) {
    if (entry.path().has_extension()) continue;
    const std::string name = entry.path().filename();
    CAPTURE(name);
    std::vector<std::string> words = options_in(entry.path());
    words.insert(words.end(), {"--oversubscribe", "--dry_run", "sh", "-c", "exit 1"});
    test::Launch::Options options;
    options.directory = root;
    test::Launch launch(words, options);
    CHECK(launch.wait() == 0);
    CAPTURE(launch.err());
    const auto json = nlohmann::json::parse(launch.out());
    CHECK(json["world_size"] == ranks.at(name));
    CHECK(json["launcher"] == (name == "local" ? "local" : "ssh"));
    ++seen;
  }
  CHECK(seen == ranks.size());
}
