#include "cmd/prompts.h"

#include <algorithm>
#include <iterator>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/base/json_text.h"
#include "runtime/data/chat_template.h"
#include "runtime/data/conversation.h"
#include "runtime/data/json_record.h"
#include "runtime/data/record_reader.h"
#include "runtime/os/file.h"

namespace dstrain::cmd {
namespace {

using nlohmann::ordered_json;

constexpr Bytes file_bytes_max = 4 * gibibyte;

constexpr std::array<const char*, 3> prompt_keys{"prompt", "messages", "prompt_ids"};

/// The one key that says what the prompt is.
const char* kind_of(const ordered_json& object, const std::string& place) {
  std::vector<const char*> found;
  for (const char* const key : prompt_keys) {
    if (object.contains(key)) found.push_back(key);
  }
  if (found.size() == 1) return found.front();
  fail(ErrorCode::input, "{}: {}; a line has one of prompt, messages or prompt_ids", place,
       found.empty() ? std::string("no prompt") : fmt::format("{}", fmt::join(found, " and ")));
}

Prompt ids_of(const ordered_json& value, const std::string& place) {
  const auto is_id = [](const ordered_json& id) {
    return id.is_number_integer() && id >= 0 && id <= std::numeric_limits<std::int32_t>::max();
  };
  if (!value.is_array() || value.empty() || !std::ranges::all_of(value, is_id)) {
    fail(ErrorCode::input, "{}: prompt_ids must be a list of token ids, at least one", place);
  }
  return value.get<Prompt>();
}

}  // namespace

void PromptReader::check(const Prompt& prompt, const std::string& place) const {
  for (const std::int32_t id : prompt) {
    if (id < model_.vocabulary) continue;
    fail(ErrorCode::input, "{}: token {}, and the model has {}", place, id, model_.vocabulary);
  }
  if (!model_.pairs && std::ssize(prompt) > model_.positions) {
    fail(ErrorCode::input, "{}: {} tokens, and the model has {} positions", place, prompt.size(),
         model_.positions);
  }
}

Prompt PromptReader::of_text(const std::string& text, const std::string& place) const {
  Prompt ids = encoder_.beginning();
  std::ranges::copy(encoder_.encode(text), std::back_inserter(ids));
  // A text that goes on has no end; a source is whole.
  if (model_.pairs) std::ranges::copy(encoder_.ending(), std::back_inserter(ids));
  if (ids.empty()) {
    const std::optional<std::int32_t> begin =
        encoder_.begin_of_text() ? encoder_.begin_of_text() : encoder_.end_of_text();
    if (!begin) {
      fail(ErrorCode::usage,
           "{} is empty, and the tokenizer has no token that begins a text; give some text", place);
    }
    ids = {*begin};
  }
  check(ids, place);
  return ids;
}

Prompt PromptReader::of_record(const std::string& text,
                               std::int64_t line,
                               const std::string& path) const {
  const std::string place = fmt::format("{}:{}", path, line);
  const ordered_json object = ordered_json::parse(text, nullptr, false);
  if (object.is_discarded() || !object.is_object()) {
    fail(ErrorCode::input, "{}: not a JSON object", place);
  }
  const std::string kind = kind_of(object, place);
  if (kind == "prompt_ids") {
    Prompt ids = ids_of(object.at(kind), place);
    check(ids, place);
    return ids;
  }
  if (kind == "prompt") {
    if (!object.at(kind).is_string()) fail(ErrorCode::input, "{}: prompt must be a text", place);
    return of_text(object.at(kind).get<std::string>(), place);
  }
  const data::ChatTemplate* const chat = encoder_.chat_template();
  if (chat == nullptr) {
    fail(ErrorCode::input, "{}: messages need a chat template: {}", place,
         encoder_.no_chat_template());
  }
  const data::Record record = data::parse_record({text, line}, path);
  const Result<std::string> rendered = chat->render_prompt(record.conversation, encoder_);
  if (!rendered.ok()) fail(ErrorCode::input, "{}: {}", place, rendered.error());
  Prompt ids = encoder_.encode(rendered.value());
  if (ids.empty()) fail(ErrorCode::input, "{}: the chat template makes no text of it", place);
  check(ids, place);
  return ids;
}

std::vector<Prompt> PromptReader::of_file(const std::string& path) const {
  const std::string text = read_text_file(path, file_bytes_max);
  data::RecordReader reader(text, path);
  std::vector<Prompt> prompts;
  while (const auto record = reader.next()) {
    prompts.push_back(of_record(std::string(record->text), record->line, path));
  }
  if (prompts.empty()) fail(ErrorCode::input, "{}: holds no prompt", path);
  return prompts;
}

}  // namespace dstrain::cmd
