// tokenizer.json: what is accepted encodes any text, the file itself for one, decodes it again, and
// encodes it in pieces as it says that it can.
#include <algorithm>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/utf8.h"
#include "runtime/tokenizer/tokenizer_json.h"
#include "tests/fuzz/target.h"

using namespace dstrain;

namespace {

using Ids = std::vector<std::int32_t>;

/// Where the text may be cut, its pieces have the tokens of the whole.
void check_cuts(const tokenizer::Codec& codec, std::string_view text) {
  Ids whole;
  codec.encode(text, tokenizer::SpecialTokens::none, whole);
  std::size_t cut = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const Character right = first_character(rest);
    if (cut > 0 && codec.allows_cut(last_character(text.substr(0, cut)).code, right.code)) {
      Ids pieces;
      codec.encode(text.substr(0, cut), tokenizer::SpecialTokens::none, pieces);
      codec.encode_following(rest, pieces);
      DSTRAIN_CHECK(pieces == whole, "other tokens when cut at byte {}", cut);
    }
    cut += right.size;
    rest.remove_prefix(right.size);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::refuse_or_accept([&] {
    const std::string file = fuzz::as_text(data, size);
    const auto codec = tokenizer::parse_tokenizer_json(file, "input");
    constexpr std::size_t text_bytes_max = 48;
    std::string storage;
    const auto text = valid_utf8(
        std::string_view(file).substr(file.size() - std::min(file.size(), text_bytes_max)),
        storage);
    Ids ids;
    codec->encode(text, tokenizer::SpecialTokens::added, ids);
    for (const std::int32_t id : ids) {
      // Only a post-processor may name ids that no token has.
      DSTRAIN_CHECK(id >= 0, "{}", id);
    }
    std::string decoded_storage;
    const std::string decoded = codec->decode(ids, tokenizer::SpecialText::kept);
    DSTRAIN_CHECK(valid_utf8(decoded, decoded_storage).data() == decoded.data(),
                  "decodes to what is no UTF-8");
    check_cuts(*codec, text);
    constexpr std::string_view words = "An a,  b \u00e9e\u0301 \u2581c\r\n\n d.\t12 x";
    check_cuts(*codec, words);
  });
}
