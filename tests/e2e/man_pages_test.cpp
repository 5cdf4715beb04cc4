// The manual pages, which are made of what --help prints.
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include <fmt/format.h>

#include "runtime/os/file.h"
#include "tests/e2e/launch_process.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_tree.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

bool shell_agrees(const std::string& command) {
  return std::system(command.c_str()) == 0;
}

class Manual {
 public:
  Manual() {
    REQUIRE(shell_agrees(fmt::format("'{}' '{}' '{}'",
                                     (test::source_tree() / ".ci/man_pages.sh").string(),
                                     test::dstrain_program().string(), folder_.path().string())));
  }
  [[nodiscard]] std::string page(const std::string& name) const {
    return read_text_file(folder_.path() / (name + ".1"), 1 << 20);
  }
  [[nodiscard]] fs::directory_iterator files() const {
    return fs::directory_iterator(folder_.path());
  }

 private:
  test::TempDir folder_;
};

}  // namespace

TEST_CASE("Manual pages: each command has one with its options", "[e2e][man]") {
  const Manual manual;
  std::istringstream list(test::run_command({"list"}).out);
  int commands = 0;
  for (std::string line; std::getline(list, line);) {
    if (!line.starts_with("  ")) continue;
    const std::string name = line.substr(2, line.find(' ', 2) - 2);
    CHECK_THAT(manual.page("dstrain-" + name),
               ContainsSubstring("\n.SH \"NAME\"\ndstrain-" + name));
    ++commands;
  }
  CHECK(commands > 10);
  CHECK_THAT(manual.page("dstrain-train"),
             ContainsSubstring("\n.TP\n.B \"\\-\\-learning_rate, \\-\\-lr X\"\nlearning rate") &&
                 ContainsSubstring("\n.SH \"PRECISION AND MEMORY\""));
  CHECK_THAT(manual.page("dstrain"), ContainsSubstring("\n.TP\n.B \"\\-H,\\-\\-hostfile TEXT\"\n"));
}

TEST_CASE("Manual pages: man shows them without a warning", "[e2e][man]") {
  if (!shell_agrees("command -v man >/dev/null")) test::skip("man is not installed");
  const Manual manual;
  for (const auto& file : manual.files()) {
    CAPTURE(file.path().string());
    CHECK(shell_agrees(fmt::format(
        "test -z \"$(LC_ALL=C.UTF-8 man --warnings -l -Tutf8 -Z '{}' 2>&1 >/dev/null)\"",
        file.path().string())));
  }
}
