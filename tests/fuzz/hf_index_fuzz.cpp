// model.safetensors.index.json: accepted names stay in the directory, and are written as read.
#include "runtime/base/error.h"
#include "runtime/model/hf_index.h"
#include "tests/fuzz/target.h"

using namespace dstrain;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::refuse_or_accept([&] {
    const model::ShardMap shards = model::parse_hf_index(fuzz::as_text(data, size), "input");
    for (const auto& [tensor, file] : shards) {
      DSTRAIN_CHECK(!file.empty() && file != "." && file != ".." &&
                        file.find('/') == std::string::npos && file.find('\0') == std::string::npos,
                    "{}", file);
    }
    DSTRAIN_CHECK(model::parse_hf_index(model::hf_index_text(shards, 0), "again") == shards,
                  "not the same again");
  });
}
