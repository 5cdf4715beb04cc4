#include "runtime/data/tokenizer.h"

#include "tests/support/catch.h"

namespace dstrain::test {

TEST_CASE("ByteTokenizer: decoding undoes encoding", "[data][tokenizer]") {
  std::string all;
  for (int i = 0; i < 256; ++i) all.push_back(static_cast<char>(i));
  const std::vector<std::int32_t> tokens = data::encode_bytes(all);
  CHECK(tokens.front() == 0);
  CHECK(tokens.back() == 255);
  CHECK(data::decode_bytes(tokens) == all);
}

TEST_CASE("ByteTokenizer: ids that are no byte become a replacement", "[data][tokenizer]") {
  const std::vector<std::int32_t> tokens{'a', 256, -1, 'b'};
  CHECK(data::decode_bytes(tokens) ==
        "a\xEF\xBF\xBD\xEF\xBF\xBD"
        "b");
}

}  // namespace dstrain::test
