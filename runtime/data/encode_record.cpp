#include "runtime/data/encode_record.h"

#include <algorithm>
#include <array>

#include "runtime/base/error.h"
#include "runtime/data/chat_template.h"

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

/// Returns messages for a template that knows nothing but their roles and texts. Throws
/// Error{input} for what these cannot express.
std::vector<Message> plain_messages(const Conversation& conversation, const std::string& place) {
  static constexpr std::array<std::string_view, 6> others{
      "tool_calls", "tool_call_id", "function_call", "reasoning_content", "reasoning", "thinking"};
  const auto refuse = [&](std::string_view what) {
    fail(ErrorCode::input, "{}: {} is not implemented for this chat template", place, what);
  };
  for (const auto& [name, value] : conversation.variables.items()) refuse(name);
  std::vector<Message> messages;
  for (const auto& message : conversation.messages) {
    for (const std::string_view key : others) {
      if (message.contains(key)) refuse(key);
    }
    const auto content = message.find("content");
    const bool is_text = content != message.end() && content->is_string();
    if (!is_text) refuse("content that is not a string");
    messages.push_back({message.at("role"), content->get<std::string>()});
  }
  return messages;
}

/// Returns whether each answer is learned, in order.
std::vector<bool> learned_answers(const Conversation& conversation) {
  std::vector<bool> learned;
  for (std::size_t i = 0; i < conversation.messages.size(); ++i) {
    if (conversation.messages[i].at("role") == "assistant") {
      learned.push_back(conversation.learned[i]);
    }
  }
  return learned;
}

EncodedRecord encode_messages(const Conversation& conversation,
                              const TextEncoder& encoder,
                              const std::string& place) {
  const ChatTemplate* const chat = encoder.chat_template();
  if (chat == nullptr) {
    fail(ErrorCode::input, "{}: a conversation: {}", place, encoder.no_chat_template());
  }
  const std::vector<Message> messages = plain_messages(conversation, place);
  const Result<RenderedChat> rendered = chat->render(messages);
  if (!rendered.ok()) fail(ErrorCode::input, "{}: {}", place, rendered.error());
  const RenderedChat& text = rendered.value();
  const std::vector<bool> learned = learned_answers(conversation);
  DSTRAIN_CHECK(learned.size() == text.answers.size(), "{} answers, {} in the text", learned.size(),
                text.answers.size());
  EncodedRecord encoded{encoder.encode(text.text), {}};
  for (std::size_t i = 0; i < learned.size(); ++i) {
    if (!learned[i]) continue;
    const auto& [begin, end] = text.answers[i];
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
