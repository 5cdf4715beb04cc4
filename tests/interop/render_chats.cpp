// Renders conversations for the scripts in tests/golden that compare with transformers: reads JSON
// lines from standard input and writes one for each.
//
//   {"template": "...", "tokens": {"bos_token": "<s>"}, "date": "2026-11-29",
//    "messages": [...], "variables": {...}}          the text, and the answers in it
//   {"directory": "...", "messages": [...], ...}     with the tokenizer and template of a model:
//                                                    also the tokens, and the ranges that count
//   {"jinja": "...", "variables": {...}}             a template on its own: the text alone
//
// "text", "answers" [[begin, end], ...] in bytes, "ids", "counted"; or "error".
#include <iostream>
#include <map>
#include <regex>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/data/chat_template.h"
#include "runtime/data/conversation.h"
#include "runtime/data/encode_record.h"
#include "runtime/data/hugging_face_encoder.h"
#include "runtime/data/json_record.h"
#include "tests/data/jinja_values.h"

using namespace dstrain;
using nlohmann::ordered_json;

namespace {

/// Takes all in angle brackets with bars, and the usual names, for special tokens.
class AngleEncoder : public data::TextEncoder {
 public:
  [[nodiscard]] std::string identity() const override { return "angles"; }
  [[nodiscard]] std::int64_t vocabulary() const override { return 0; }
  [[nodiscard]] std::vector<std::int32_t> encode(std::string_view) const override { return {}; }
  [[nodiscard]] std::size_t safe_cut(std::string_view) const override { return 0; }
  [[nodiscard]] std::vector<std::int32_t> encode_following(std::string_view) const override {
    return {};
  }
  [[nodiscard]] std::string decode(std::span<const std::int32_t>) const override { return {}; }
  [[nodiscard]] std::int64_t text_bytes(std::int32_t) const override { return 0; }
  [[nodiscard]] std::optional<data::ByteRange> first_special(std::string_view text) const override {
    static const std::regex special(
        "<\\|[^<>|]*\\|>|<\xEF\xBD\x9C[^<>]*\xEF\xBD\x9C>|</?s>|<(end|start)_of_turn>|<turn\\|>|"
        "\\[\\|endofturn\\|\\]");
    std::cmatch match;
    if (!std::regex_search(text.data(), text.data() + text.size(), match, special)) return {};
    const auto begin = static_cast<std::size_t>(match.position());
    return data::ByteRange{begin, begin + static_cast<std::size_t>(match.length())};
  }
};

data::Conversation conversation_of(const ordered_json& request) {
  data::Conversation conversation;
  conversation.messages = request.at("messages");
  conversation.variables = request.value("variables", ordered_json::object());
  conversation.learned.assign(conversation.messages.size(), true);
  return conversation;
}

data::ChatOptions options_of(const ordered_json& request) {
  int year = 0;
  unsigned month = 0;
  unsigned day = 0;
  const std::string date = request.value("date", "");
  if (std::sscanf(date.c_str(), "%d-%u-%u", &year, &month, &day) != 3) return {};
  return {std::chrono::year(year) / std::chrono::month(month) / std::chrono::day(day)};
}

ordered_json rendered(const data::ChatTemplate& chat,
                      const data::Conversation& conversation,
                      const data::TextEncoder& encoder) {
  const auto text = chat.render(conversation, encoder);
  if (!text.ok()) return {{"error", text.error()}};
  ordered_json answers = ordered_json::array();
  for (const auto& [begin, end] : text.value().answers) answers.push_back({begin, end});
  return {{"text", text.value().text}, {"answers", answers}};
}

ordered_json with_template(const ordered_json& request) {
  static std::map<std::string, Result<data::ChatTemplate>> parsed;
  const std::string key = request.at("template");
  if (!parsed.contains(key)) {
    data::ChatTemplate::TokenTexts tokens;
    for (const auto& [name, text] : request.at("tokens").items()) tokens.emplace(name, text);
    parsed.emplace(key, data::ChatTemplate::parse(key, tokens, options_of(request)));
  }
  const Result<data::ChatTemplate>& chat = parsed.at(key);
  if (!chat.ok()) return {{"error", chat.error()}};
  const AngleEncoder encoder;
  return rendered(chat.value(), conversation_of(request), encoder);
}

ordered_json with_directory(const ordered_json& request) {
  static std::map<std::string, data::HuggingFaceEncoder> encoders;
  const std::string directory = request.at("directory");
  const data::HuggingFaceEncoder& encoder =
      encoders.try_emplace(directory, directory, options_of(request)).first->second;
  if (encoder.chat_template() == nullptr) return {{"error", encoder.no_chat_template()}};
  data::Record record{.kind = data::RecordKind::messages};
  record.conversation = conversation_of(request);
  ordered_json reply = rendered(*encoder.chat_template(), record.conversation, encoder);
  if (reply.contains("error")) return reply;
  const data::EncodedRecord encoded = data::encode_record(record, encoder, "chat");
  reply["ids"] = encoded.ids;
  reply["counted"] = ordered_json::array();
  for (const auto& [begin, end] : encoded.counted) reply["counted"].push_back({begin, end});
  return reply;
}

ordered_json with_variables(const ordered_json& request) {
  const auto parsed = jinja::Template::parse(request.at("jinja").get<std::string>());
  if (!parsed.ok()) return {{"error", parsed.error()}};
  const auto text = parsed.value().render(
      test::jinja_variables(request.value("variables", ordered_json::object())));
  if (!text.ok()) return {{"error", text.error()}};
  return {{"text", text.value().bytes}};
}

ordered_json reply_to(const ordered_json& request) {
  if (request.contains("directory")) return with_directory(request);
  if (request.contains("jinja")) return with_variables(request);
  return with_template(request);
}

}  // namespace

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    ordered_json reply;
    try {
      reply = reply_to(ordered_json::parse(line));
    } catch (const std::exception& error) {
      reply = {{"error", error.what()}};
    }
    std::cout << reply.dump() << '\n';
  }
}
