// Records of JSON: what is accepted has what its kind promises, and encodes as bytes unless it is a
// conversation or a pair. Every record of the text is in the text.
#include "runtime/base/error.h"
#include "runtime/data/encode_record.h"
#include "runtime/data/json_record.h"
#include "tests/fuzz/target.h"

using namespace dstrain;

namespace {

void parse_pair(const data::RawRecord& raw) {
  const data::TokenPair pair = data::parse_pair(raw, "input");
  DSTRAIN_CHECK(!pair.source.empty(), "an empty source");
  for (const std::int32_t id : pair.source) DSTRAIN_CHECK(id >= 0, "token {}", id);
}

void check_conversation(const data::Conversation& conversation) {
  DSTRAIN_CHECK(!conversation.messages.empty(), "no messages");
  DSTRAIN_CHECK(conversation.learned.size() == conversation.messages.size(), "{} of {} messages",
                conversation.learned.size(), conversation.messages.size());
  DSTRAIN_CHECK(conversation.variables.is_object(), "no variables");
  for (const auto& message : conversation.messages) {
    DSTRAIN_CHECK(message.at("role").is_string(), "a message without a role");
  }
}

void read_record(const data::RawRecord& raw, const data::RecordOptions& options) {
  static const auto encoder = data::make_encoder("byte");
  const data::Record record = data::parse_record(raw, "input", options);
  if (record.kind == data::RecordKind::messages) return check_conversation(record.conversation);
  const data::EncodedRecord encoded = data::encode_record(record, *encoder, "input:1");
  const auto tokens = std::ssize(encoded.ids);
  DSTRAIN_CHECK(tokens == std::ssize(record.text) + std::ssize(record.completion), "{} tokens",
                tokens);
  for (const auto& [begin, end] : encoded.counted) {
    DSTRAIN_CHECK(begin >= 0 && begin <= end && end <= tokens, "{} to {} of {}", begin, end,
                  tokens);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text = fuzz::as_text(bytes, size);
  const bool pairs = text.find("input_ids") != std::string_view::npos;
  return fuzz::refuse_or_accept([&] {
    data::RecordReader reader(text, "input");
    for (auto raw = reader.next(); raw; raw = reader.next()) {
      DSTRAIN_CHECK(!raw->text.empty() && raw->text.data() >= text.data() &&
                        raw->text.data() + raw->text.size() <= text.data() + text.size(),
                    "a record outside of the text");
      if (pairs) {
        parse_pair(*raw);
      } else {
        read_record(*raw, {});
        read_record(*raw, {.has_chat_template = true});
      }
    }
  });
}
