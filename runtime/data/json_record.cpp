#include "runtime/data/json_record.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/base/exception_text.h"
#include "runtime/base/json_text.h"
#include "runtime/base/label.h"
#include "runtime/base/printable.h"
#include "runtime/base/shell_word.h"
#include "runtime/base/utf8.h"
#include "runtime/data/foreign_format.h"
#include "runtime/data/foreign_records.h"
#include "runtime/data/jq_command.h"
#include "runtime/data/json_values.h"
#include "runtime/data/turn_programs.h"
#include "runtime/data/unbuilt_keys.h"

namespace dstrain::data {
namespace {

using nlohmann::json;

constexpr int depth_max = 64;

/// Returns the library's message without its positions, and without the text that it had read,
/// which may be a whole document.
std::string reason_of(const json::parse_error& error) {
  std::string text = error.what();
  if (const std::size_t place = text.find("column "); place != std::string::npos) {
    const std::size_t colon = text.find(": ", place);
    if (colon != std::string::npos) text.erase(0, colon + 2);
  }
  return text.substr(0, text.find("; last read"));
}

/// Refuses duplicate keys in the record or in a message, of which the library would keep the last,
/// and deep nesting.
class KeyWatcher {
 public:
  explicit KeyWatcher(const std::string& place) : place_(place) {}

  bool operator()(int depth, json::parse_event_t event, const json& value) {
    if (depth > depth_max) fail(ErrorCode::input, "{}: nested deeper than {}", place_, depth_max);
    const auto level = static_cast<std::size_t>(depth);
    if (event == json::parse_event_t::object_start && level < seen_.size()) seen_.at(level).clear();
    // A key is one level deeper than the object that holds it.
    if (event == json::parse_event_t::key && level >= 1 && level - 1 < seen_.size()) {
      const auto& key = value.get_ref<const std::string&>();
      if (!seen_.at(level - 1).insert(key).second) {
        fail(ErrorCode::input, "{}: the key '{}' appears twice", place_, printable(key));
      }
    }
    return true;
  }

 private:
  const std::string& place_;
  std::array<std::set<std::string>, 3> seen_;  ///< keys of the record, and of objects in its arrays
};

/// Returns some of the object's keys, for messages.
std::string keys_of(const json& object) {
  constexpr std::size_t shown_max = 8;
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) {
    if (keys.size() == shown_max) {
      keys.emplace_back("...");
      break;
    }
    keys.push_back(printable(key));
  }
  return fmt::format("{}", fmt::join(keys, ", "));
}

/// Returns the file of "data.jsonl:7", which names a line.
std::string file_of(const std::string& place) {
  return place.substr(0, place.rfind(':'));
}

/// Returns the command for a line that other programs write, or for several on one, to end a
/// message; empty: none.
std::string syntax_remedy(std::string_view line, const std::string& file) {
  const std::string_view text = line.substr(std::min(line.find_first_not_of(" \t"), line.size()));
  const auto filtered = [&](std::string_view command) {
    return command_below(
        whole_or_none(fmt::format("{} {}", command, shell_path(file)), converted_name(file)));
  };
  if (text.starts_with("{'")) {
    return "; Python's quotes" +
           filtered(
               "python3 -c \"import ast, json, sys; [print(json.dumps(ast.literal_eval(r))) for r "
               "in open(sys.argv[1], encoding='utf-8-sig') if r.strip()]\"");
  }
  if (text.starts_with("//") || text.starts_with('#')) {
    return "; without such lines" + filtered(R"(sed -E '/^[[:space:]]*(\/\/|#)/d')");
  }
  if (text.starts_with('\x1e')) return "; without RS" + filtered("sed 's/^\\x1e//'");
  if (!text.starts_with('{')) return {};
  const std::string_view rest = behind_value(text);
  if (rest == ",") return "; without such commas" + filtered("sed -E 's/,[[:space:]]*$//'");
  return rest.starts_with('{') ? "; a line for each" + command_below(jq_command(".", file)) : "";
}

json parse_object(std::string_view line, const std::string& place) {
  // The parser would stop at a NUL and ignore the rest.
  if (const std::size_t nul = line.find('\0'); nul != std::string_view::npos) {
    fail(ErrorCode::input, "{}:{}: a NUL byte; is it JSON?", place, nul + 1);
  }
  try {
    json record = parse_python_json(line, [&](std::string_view text) {
      return json::parse(text.begin(), text.end(), KeyWatcher(place));
    });
    if (!record.is_object()) {
      fail(ErrorCode::input, "{}: not a JSON object; each line is one{}", place,
           record.is_string() ? command_below(jq_command("{text: .}", file_of(place))) : "");
    }
    return record;
  } catch (const json::parse_error& error) {
    if (const auto invalid = find_invalid_utf8(line)) {
      fail(ErrorCode::input,
           "{}:{}: not UTF-8 text: this byte (0x{:02x}) starts no valid character{}", place,
           *invalid + 1, static_cast<unsigned char>(line[*invalid]),
           encoding_remedy(file_of(place), line, *invalid));
    }
    fail(ErrorCode::input, "{}:{}: not JSON: {}; each line is one object{}", place, error.byte,
         reason_of(error), syntax_remedy(line, file_of(place)));
  } catch (const json::exception& error) {
    fail(ErrorCode::input, "{}: {}", place, exception_text(error));
  }
}

std::string take_string(json& object, const char* key, const std::string& name) {
  const auto field = object.find(key);
  if (field == object.end()) fail(ErrorCode::input, "{} is missing", name);
  if (field->is_array()) {
    fail(ErrorCode::input, "{} is a list; only text is implemented, as a string", name);
  }
  if (!field->is_string()) {
    fail(ErrorCode::input, "{} is {}, not a string", name, field->type_name());
  }
  return std::move(field->get_ref<std::string&>());
}

/// Whether the first message repeats the record's own system message.
bool begins_with_system(const json& messages, const json& system) {
  return messages.is_array() && !messages.empty() && messages.front().is_object() &&
         messages.front().value("role", json()) == "system" &&
         messages.front().value("content", json()) == system;
}

/// Refuses keys that a prompt without them would silently drop: parts of the question, choices,
/// thoughts before an answer.
void refuse_beside_prompt(const json& record, const std::string& place) {
  static constexpr std::array<std::string_view, 5> others{"choices", "options", "thinking",
                                                          "reasoning", "reasoning_content"};
  for (const std::string_view key : others) {
    const auto field = record.find(key);
    if (field == record.end() || holds_nothing(*field)) continue;
    fail(ErrorCode::input,
         "{}: {} is beside prompt and completion and would be ignored; write it into one of "
         "them, or leave it out",
         place, key);
  }
  for (const std::string_view key : question_parts) {
    const auto field = record.find(key);
    if (field == record.end() || holds_nothing(*field)) continue;
    const std::string conversion = record_conversion(record, file_of(place));
    fail(ErrorCode::input, "{}: {} is beside prompt and completion and would be ignored; {}{}",
         place, key,
         conversion.empty() ? "write it into the prompt, or leave it out"
                            : "leave it out, or put it in",
         conversion);
  }
}

/// Refuses a system message or earlier turns beside a prompt or messages, which would be ignored.
void refuse_beside(const json& record, RecordKind kind, const std::string& place) {
  if (kind == RecordKind::completion) refuse_beside_prompt(record, place);
  for (const std::string_view key : {"system", "system_prompt", "meta_instruction", "history"}) {
    const auto field = record.find(key);
    if (field == record.end() || holds_nothing(*field)) continue;
    if (!field->is_string() && !field->is_array()) continue;
    if (kind == RecordKind::messages && begins_with_system(record.at("messages"), *field)) continue;
    const std::string conversion = record_conversion(record, file_of(place));
    fail(ErrorCode::input, "{}: {} is beside {} and would be ignored; {}{}", place, key,
         name_of(kind), conversion.empty() ? "make it one of them, or leave it out" : "put it in",
         conversion);
  }
}

Conversation take_messages(json& record, const std::string& place) {
  json& list = record.at("messages");
  if (!list.is_array()) {
    fail(ErrorCode::input, "{}: messages is {}, not a list of role and content{}", place,
         list.type_name(), record_conversion(record, file_of(place)));
  }
  if (list.empty()) fail(ErrorCode::input, "{}: messages is empty", place);
  Conversation conversation;
  for (json& item : list) {
    const std::string name = fmt::format("messages[{}]", conversation.messages.size());
    if (!item.is_object()) {
      fail(ErrorCode::input, "{}: {} is {}, not an object", place, name, item.type_name());
    }
    const std::string conversion = item.contains("role") && item.contains("content")
                                       ? ""
                                       : record_conversion(record, file_of(place));
    if (!conversion.empty()) {
      refuse_unkept(record, place);
      fail(ErrorCode::input, "{}: {} has {} in place of role and content{}", place, name,
           keys_of(item), conversion);
    }
    const std::string prefix = fmt::format("{}: {}.", place, name);
    Message message{take_string(item, "role", prefix + "role"), {}};
    refuse_message(item, message.role, fmt::format("{}: {}", place, name), file_of(place));
    const auto content = item.find("content");
    if (const auto program = content == item.end() ? std::nullopt : parts_program(*content)) {
      fail(ErrorCode::input, "{}content is a list of parts, not a string{}", prefix,
           command_below(jq_command(*program, file_of(place))));
    }
    message.content = take_string(item, "content", prefix + "content");
    conversation.messages.push_back({{"role", message.role}, {"content", message.content}});
    conversation.learned.push_back(true);
  }
  return conversation;
}

/// Returns a list of non-negative integers, or `other`.
std::vector<std::int32_t> take_ids(const json& object,
                                   const char* key,
                                   std::int32_t other,
                                   const std::string& place) {
  const auto field = object.find(key);
  if (field == object.end()) fail(ErrorCode::input, "{}: {} is missing", place, key);
  if (!field->is_array()) {
    fail(ErrorCode::input, "{}: {} is {}, not a list of token ids", place, key, field->type_name());
  }
  std::vector<std::int32_t> ids;
  for (const json& item : *field) {
    const bool whole = item.is_number_integer() &&
                       !(item.is_number_unsigned() && item.get<std::uint64_t>() >> 31 != 0);
    const auto id = whole ? item.get<std::int64_t>() : -1;
    if (!whole || (id < 0 && id != other)) {
      fail(ErrorCode::input, "{}: {}[{}] is {}, not a token id", place, key, ids.size(),
           item.dump());
    }
    ids.push_back(static_cast<std::int32_t>(id));
  }
  return ids;
}

/// Throws if the value is a number, as answers to sums often are. jq would round it, and write 1
/// for 1.0.
void refuse_number(const json& record, std::string_view key, const std::string& place) {
  const auto field = record.find(key);
  if (field == record.end() || !field->is_number()) return;
  const std::string file = file_of(place);
  fail(ErrorCode::input, "{}: {} is a number, not text{}", place, key,
       command_below(whole_or_none(
           fmt::format(
               "python3 -c \"import json, sys; [print(json.dumps({{**json.loads(r), **{{k: v "
               "for k, v in json.loads(r, parse_int=str, parse_float=str).items() if k == "
               "'{}'}}}})) for r in open(sys.argv[1], encoding='utf-8-sig') if "
               "r.strip()]\" {}",
               key, shell_path(file)),
           converted_name(file))));
}

/// Throws with a command that leaves out records without a text.
void refuse_null(const json& record, std::string_view key, const std::string& place) {
  const auto field = record.find(key);
  if (field == record.end() || !field->is_null()) return;
  const std::string file = file_of(place);
  if (const std::string conversion = record_conversion(record, file); !conversion.empty()) {
    fail(ErrorCode::input, "{}: {} is null{}", place, key, conversion);
  }
  const std::string lines = jq_lines(fmt::format("fromjson | .{} != null", key));
  fail(ErrorCode::input, "{}: {} is null; this leaves such records out{}", place, key,
       command_below(whole_or_none(reading(lines, file), converted_name(file))));
}

/// Refuses choices before a command is suggested, whose result would be refused for them. MMLU's
/// contain the answer.
void refuse_choices(const json& record, const std::string& place) {
  const auto choices = record.find("choices");
  if (choices == record.end() || holds_nothing(*choices) || !record.contains("question")) return;
  const auto answer = record.find("answer");
  const bool numbered = choices->is_array() && choices->front().is_string() &&
                        answer != record.end() && answer->is_number_integer();
  fail(ErrorCode::input, "{}: choices is beside question and would be ignored; {}", place,
       numbered
           ? "put it in" + command_below(jq_command(
                               ". + {prompt: (.question + \"\\n\" + (.choices | join(\"\\n\")) + "
                               "\"\\n\"), completion: .choices[.answer]} | del(.choices)",
                               file_of(place)))
           : "write it into the question, or leave it out");
}

RecordKind kind_of(const json& record, const std::string& place) {
  const bool text = record.contains("text");
  const bool completion = record.contains("prompt") || record.contains("completion");
  const bool messages = record.contains("messages");
  if (int{text} + int{completion} + int{messages} > 1) {
    fail(ErrorCode::input,
         "{}: holds more than one of text, prompt with completion, and messages; leave one{}",
         place, record_conversion(record, file_of(place)));
  }
  if (text) {
    refuse_null(record, "text", place);
    refuse_number(record, "text", place);
    const json& texts = record.at("text");
    if (texts.is_array() && std::ranges::all_of(texts, &json::is_string)) {
      fail(ErrorCode::input, "{}: text is a list; one text of it, a line for each{}", place,
           command_below(jq_command(R"((.text | arrays) |= join("\n"))", file_of(place))));
    }
    return RecordKind::text;
  }
  if (!messages && !record.contains("completion") && imitates_chosen(record) &&
      number_answer(record).empty()) {
    refuse_unkept(record, place);
    fail(ErrorCode::input, "{}: holds preferences{}", place,
         record_conversion(record, file_of(place)));
  }
  if (completion) return RecordKind::completion;
  if (messages) return RecordKind::messages;
  if (record.contains("input_ids") && record.contains("labels")) {
    fail(ErrorCode::input,
         "{}: is a pair of token ids (input_ids, labels), for an encoder-decoder: give a T5 as "
         "--model_name_or_path; a decoder learns text, prompt with completion, or messages",
         place);
  }
  refuse_unkept(record, place);
  refuse_choices(record, place);
  if (const std::string_view key = number_answer(record); !key.empty()) {
    refuse_number(record, key, place);
  }
  const std::string conversion = record_conversion(record, file_of(place));
  fail(ErrorCode::input, "{}: has neither text, nor prompt and completion, nor messages{}{}", place,
       record.empty() ? "" : ", but " + keys_of(record),
       conversion.empty() ? conversion_pattern(record, file_of(place)) : conversion);
}

}  // namespace

std::string_view name_of(RecordKind kind) {
  switch (kind) {
    case RecordKind::text:
      return "text";
    case RecordKind::completion:
      return "prompt and completion";
    case RecordKind::messages:
      return "messages";
  }
  DSTRAIN_CHECK(false, "kind {}", static_cast<int>(kind));
}

/// Throws if the record has no prompt and completion, or if they are not texts.
void check_completion(const json& record, const std::string& place) {
  const auto holds_text = [&](const char* key) {
    const auto field = record.find(key);
    return field != record.end() && field->is_string();
  };
  const bool is_text = holds_text("prompt") && holds_text("completion");
  if (record.contains("completion")) {
    refuse_number(record, "prompt", place);
    refuse_number(record, "completion", place);
  }
  if (!is_text) {
    const std::string conversion = record_conversion(record, file_of(place));
    if (!conversion.empty()) refuse_unkept(record, place);
    if (!record.contains("completion")) {
      fail(ErrorCode::input, "{}: completion is missing{}", place, conversion);
    }
    if (!conversion.empty()) {
      const bool messages = conversion.find("messages: ") != std::string::npos;
      fail(ErrorCode::input, "{}: {}{}", place,
           messages ? "prompt and completion are messages" : "completion is not text", conversion);
    }
  }
  refuse_null(record, "prompt", place);
  refuse_null(record, "completion", place);
  refuse_record_keys(record, place);
}

Record parse_record(std::string_view line, const std::string& place) {
  json object = parse_object(line, place);
  Record record;
  record.kind = kind_of(object, place);
  const std::string prefix = place + ": ";
  if (record.kind == RecordKind::text) record.text = take_string(object, "text", prefix + "text");
  if (record.kind == RecordKind::completion) {
    check_completion(object, place);
    refuse_judgement(object, place);
    refuse_beside(object, record.kind, place);
    record.text = take_string(object, "prompt", prefix + "prompt");
    record.completion = take_string(object, "completion", prefix + "completion");
  }
  if (record.kind == RecordKind::messages) {
    refuse_record_keys(object, place);
    refuse_conversation_keys(object, place);
    refuse_judgement(object, place);
    refuse_beside(object, record.kind, place);
    record.conversation = take_messages(object, place);
  }
  return record;
}

TokenPair parse_pair(std::string_view line, const std::string& place) {
  static constexpr std::array<std::string_view, 3> unbuilt{
      "decoder_input_ids", "decoder_attention_mask", "token_type_ids"};
  const json object = parse_object(line, place);
  refuse_keys(object, unbuilt, place);
  TokenPair pair{take_ids(object, "input_ids", 0, place),
                 take_ids(object, "labels", ignored_label, place)};
  if (object.contains("attention_mask")) {
    const std::vector<std::int32_t> mask = take_ids(object, "attention_mask", 0, place);
    const auto end = std::ranges::find(mask, 0);
    const bool front = std::all_of(mask.begin(), end, [](std::int32_t one) { return one == 1; }) &&
                       std::all_of(end, mask.end(), [](std::int32_t one) { return one == 0; });
    if (!front || mask.size() != pair.source.size()) {
      fail(ErrorCode::input,
           "{}: attention_mask must have as many entries as input_ids, ones and then zeros", place);
    }
    pair.source.resize(static_cast<std::size_t>(end - mask.begin()));
  }
  if (pair.source.empty()) fail(ErrorCode::input, "{}: input_ids is empty", place);
  return pair;
}

std::string parse_text(std::string_view line, const std::string& key, const std::string& place) {
  json object = parse_object(line, place);
  if (!object.contains(key) && has_answers(object)) {
    fail(ErrorCode::input,
         "{}: {} is missing, but {}; token files cannot separate answers from questions: give "
         "the records to dstrain train",
         place, key, keys_of(object));
  }
  if (!object.contains(key)) {
    fail(ErrorCode::input, "{}: {} is missing{}", place, key,
         object.empty() ? ""
                        : fmt::format("; --text_column names the key to read, which may be {}",
                                      keys_of(object)));
  }
  return take_string(object, key.c_str(), fmt::format("{}: {}", place, key));
}

}  // namespace dstrain::data
