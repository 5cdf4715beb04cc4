// A line of JSON lines: what is accepted has what its kind promises, and encodes as bytes unless it
// is a conversation.
#include "runtime/base/error.h"
#include "runtime/data/encode_record.h"
#include "tests/fuzz/target.h"

using namespace dstrain;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const auto encoder = data::make_encoder("byte");
  return fuzz::refuse_or_accept([&] {
    const data::Record record = data::parse_record(fuzz::as_text(bytes, size), "input:1");
    if (record.kind == data::RecordKind::messages) {
      DSTRAIN_CHECK(!record.messages.empty(), "no messages");
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
