// config.json: what is accepted is written as it was read.
#include "runtime/base/error.h"
#include "runtime/model/gpt2_config.h"
#include "tests/fuzz/target.h"

using namespace dstrain;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::refuse_or_accept([&] {
    const model::Gpt2Config config = model::parse_gpt2_config(fuzz::as_text(data, size), "input");
    const std::string text = model::to_json(config);
    DSTRAIN_CHECK(model::to_json(model::parse_gpt2_config(text, "again")) == text, "{}", text);
  });
}
