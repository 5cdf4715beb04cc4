// config.json: what is accepted is written as it was read.
#include "runtime/base/error.h"
#include "runtime/model/families.h"
#include "tests/fuzz/target.h"

using namespace dstrain;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::refuse_or_accept([&] {
    const auto config = model::parse_model_config(fuzz::as_text(data, size), "input");
    const std::string text = config->to_json();
    const auto again = model::parse_model_config(text, "again");
    DSTRAIN_CHECK(again->to_json() == text && config->differences(*again).empty(), "{}", text);
  });
}
