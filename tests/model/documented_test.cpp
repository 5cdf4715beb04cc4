#include <array>
#include <cctype>
#include <string>

#include "runtime/base/units.h"
#include "runtime/model/families.h"
#include "runtime/model/model_family.h"
#include "runtime/os/file.h"
#include "runtime/rules/registry.h"
#include "tests/support/catch.h"

namespace dstrain {
namespace {

/// Lower-case letters and digits: "GPT-2" and "gpt2" are one.
std::string folded(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) result += static_cast<char>(std::tolower(byte));
  }
  return result;
}

std::string page(const std::string& path) {
  return folded(read_text_file(std::string(DSTRAIN_SOURCE_DIR) + "/" + path, mebibyte));
}

TEST_CASE("Docs: every registered family and optimizer is documented", "[model][docs]") {
  for (const char* const path : {"README.md", "docs/train.md", "docs/limits.md"}) {
    for (const model::ModelFamily* const family : model::model_families()) {
      CAPTURE(path, family->model_type);
      CHECK(page(path).find(folded(family->model_type)) != std::string::npos);
    }
  }
  for (const char* const path : {"README.md", "docs/configuration.md", "docs/limits.md"}) {
    rules::Rules::for_each([path](auto rule) {
      for (const std::string_view type : rule.types) {
        CAPTURE(path, type);
        CHECK(page(path).find(folded(type)) != std::string::npos);
      }
    });
  }
}

}  // namespace
}  // namespace dstrain
