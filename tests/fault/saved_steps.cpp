#include "tests/fault/saved_steps.h"

#include <regex>

#include "runtime/checkpoint/catalog.h"
#include "tests/support/catch.h"

namespace dstrain::test {

std::vector<std::int64_t> acknowledged_steps(const std::string& out) {
  static const std::regex saved(R"(saved \S*/checkpoint-(\d+)\n)");
  std::vector<std::int64_t> steps;
  for (auto match = std::sregex_iterator(out.begin(), out.end(), saved);
       match != std::sregex_iterator(); ++match) {
    steps.push_back(std::stoll((*match)[1]));
  }
  return steps;
}

std::vector<std::int64_t> whole_steps(const std::filesystem::path& output) {
  std::vector<std::int64_t> steps;
  for (const checkpoint::Found& found : checkpoint::list_checkpoints(output)) {
    CHECK(checkpoint::verify(found.path).whole());
    steps.push_back(found.step);
  }
  return steps;
}

}  // namespace dstrain::test
