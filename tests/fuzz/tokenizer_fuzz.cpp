// tokenizer.json: what is accepted encodes any text, the file itself for one, and decodes it again.
#include <algorithm>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/utf8.h"
#include "runtime/tokenizer/tokenizer_json.h"
#include "tests/fuzz/target.h"

using namespace dstrain;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::refuse_or_accept([&] {
    const std::string file = fuzz::as_text(data, size);
    const auto codec = tokenizer::parse_tokenizer_json(file, "input");
    constexpr std::size_t text_bytes_max = 48;
    std::string storage;
    const auto text = valid_utf8(
        std::string_view(file).substr(file.size() - std::min(file.size(), text_bytes_max)),
        storage);
    std::vector<std::int32_t> ids;
    codec->encode(text, tokenizer::SpecialTokens::added, ids);
    for (const std::int32_t id : ids) {
      // Only a post-processor may name ids that no token has.
      DSTRAIN_CHECK(id >= 0, "{}", id);
    }
    const std::string decoded = codec->decode(ids, tokenizer::SpecialText::kept);
    DSTRAIN_CHECK(valid_utf8(decoded, storage).data() == decoded.data(),
                  "decodes to what is no UTF-8");
  });
}
