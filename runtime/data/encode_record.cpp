#include "runtime/data/encode_record.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/data/chat_template.h"
#include "runtime/data/json_record.h"

namespace dstrain::data {
namespace {

using Ids = std::vector<std::int32_t>;

/// Returns how many tokens `ids` shares with the encoding of the first `bytes` bytes of its text.
std::int64_t shared_tokens(const Ids& ids,
                           std::string_view text,
                           std::size_t bytes,
                           const TextEncoder& encoder) {
  const Ids prefix = encoder.encode(text.substr(0, bytes));
  return std::ranges::mismatch(ids, prefix).in1 - ids.begin();
}

EncodedRecord encode_text(const std::string& text,
                          std::size_t prompt_bytes,
                          const TextEncoder& encoder) {
  EncodedRecord encoded{encoder.beginning(), {}};
  const Ids ids = encoder.encode(text);
  const auto before = std::ssize(encoded.ids);
  const std::int64_t uncounted =
      prompt_bytes == 0 ? -before : shared_tokens(ids, text, prompt_bytes, encoder);
  encoded.ids.insert(encoded.ids.end(), ids.begin(), ids.end());
  const auto end_of_text = encoder.end_of_text();
  if (end_of_text && (ids.empty() || ids.back() != *end_of_text)) {
    encoded.ids.push_back(*end_of_text);
  }
  encoded.counted = {{before + uncounted, std::ssize(encoded.ids)}};
  return encoded;
}

EncodedRecord encode_messages(const Conversation& conversation,
                              const TextEncoder& encoder,
                              const std::string& place) {
  const ChatTemplate* const chat = encoder.chat_template();
  if (chat == nullptr) {
    fail(ErrorCode::input, "{}: a conversation: {}", place, encoder.no_chat_template());
  }
  const Result<RenderedChat> rendered = chat->render(conversation, encoder);
  if (!rendered.ok()) fail(ErrorCode::input, "{}: {}", place, rendered.error());
  const RenderedChat& text = rendered.value();
  EncodedRecord encoded{encoder.encode(text.text), {}};
  for (const auto& [begin, end] : text.answers) {
    const TokenRange range{shared_tokens(encoded.ids, text.text, begin, encoder),
                           shared_tokens(encoded.ids, text.text, end, encoder)};
    if (range.begin < range.end) encoded.counted.push_back(range);
  }
  return encoded;
}

}  // namespace

EncodedRecord encode_record(const Record& record,
                            const TextEncoder& encoder,
                            const std::string& place) {
  if (record.kind == RecordKind::messages)
    return encode_messages(record.conversation, encoder, place);
  return encode_text(record.text + record.completion,
                     record.kind == RecordKind::completion ? record.text.size() : 0, encoder);
}

}  // namespace dstrain::data
