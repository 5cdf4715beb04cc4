// A line of JSON lines: what is accepted has what its kind promises, and encodes as bytes unless it
// is a conversation or a pair.
#include "runtime/base/error.h"
#include "runtime/data/encode_record.h"
#include "tests/fuzz/target.h"

using namespace dstrain;

namespace {

void parse_pair(std::string_view line) {
  const data::TokenPair pair = data::parse_pair(line, "input:1");
  DSTRAIN_CHECK(!pair.source.empty(), "an empty source");
  for (const std::int32_t id : pair.source) DSTRAIN_CHECK(id >= 0, "token {}", id);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const auto encoder = data::make_encoder("byte");
  const std::string_view line = fuzz::as_text(bytes, size);
  if (line.find("input_ids") != std::string_view::npos) {
    return fuzz::refuse_or_accept([&] { parse_pair(line); });
  }
  return fuzz::refuse_or_accept([&] {
    const data::Record record = data::parse_record(line, "input:1");
    if (record.kind == data::RecordKind::messages) {
      DSTRAIN_CHECK(!record.conversation.messages.empty(), "no messages");
      return;
    }
    const data::EncodedRecord encoded = data::encode_record(record, *encoder, "input:1");
    const auto tokens = std::ssize(encoded.ids);
    DSTRAIN_CHECK(tokens == std::ssize(record.text) + std::ssize(record.completion), "{} tokens",
                  tokens);
    for (const auto& [begin, end] : encoded.counted) {
      DSTRAIN_CHECK(begin >= 0 && begin <= end && end <= tokens, "{} to {} of {}", begin, end,
                    tokens);
    }
  });
}
