#include "runtime/data/json_record.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/base/exception_text.h"
#include "runtime/base/json_text.h"
#include "runtime/base/label.h"
#include "runtime/base/printable.h"
#include "runtime/base/utf8.h"
#include "runtime/data/foreign_format.h"
#include "runtime/data/record_layout.h"

namespace dstrain::data {
namespace {

using Json = nlohmann::ordered_json;

constexpr int depth_max = 64;

/// Returns the library's message without its positions, and without the text that it had read,
/// which may be a whole document.
std::string reason_of(const Json::parse_error& error) {
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

  bool operator()(int depth, Json::parse_event_t event, const Json& value) {
    if (depth > depth_max) fail(ErrorCode::input, "{}: nested deeper than {}", place_, depth_max);
    const auto level = static_cast<std::size_t>(depth);
    if (event == Json::parse_event_t::object_start && level < seen_.size()) seen_.at(level).clear();
    // A key is one level deeper than the object that holds it.
    if (event == Json::parse_event_t::key && level >= 1 && level - 1 < seen_.size()) {
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

/// Returns "data.jsonl:7:12" for a byte of a record, from 0.
std::string place_in(const RawRecord& record, std::size_t byte, const std::string& path) {
  const std::string_view before = record.text.substr(0, byte);
  const std::size_t newline = before.rfind('\n');
  const bool first_line = newline == std::string_view::npos;
  const std::int64_t column = first_line ? record.column + std::ssize(before)
                                         : std::ssize(before) - static_cast<std::int64_t>(newline);
  return fmt::format("{}:{}:{}", path, record.line + std::ranges::count(before, '\n'), column);
}

Json parse_object(const RawRecord& record, const std::string& path) {
  const std::string_view text = record.text;
  const std::string place = place_of(record, path);
  // The parser would stop at a NUL and ignore the rest.
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    fail(ErrorCode::input, "{}: a NUL byte; is it JSON?", place_in(record, nul, path));
  }
  try {
    Json object = parse_python_json(text, [&](std::string_view given) {
      return Json::parse(given.begin(), given.end(), KeyWatcher(place));
    });
    if (!object.is_object()) {
      fail(ErrorCode::input, "{}: not a JSON object, but {}; each record is one", place,
           object.type_name());
    }
    return object;
  } catch (const Json::parse_error& error) {
    if (const auto invalid = find_invalid_utf8(text)) {
      fail(ErrorCode::input, "{}: not UTF-8 text: this byte (0x{:02x}) starts no valid character{}",
           place_in(record, *invalid, path), static_cast<unsigned char>(text[*invalid]),
           encoding_remedy(path, text, *invalid));
    }
    const bool python = text.substr(text.find_first_not_of(" \t")).starts_with("{'");
    fail(ErrorCode::input, "{}: not JSON: {}{}",
         place_in(record, std::max(error.byte, std::size_t{1}) - 1, path), reason_of(error),
         python ? "; the quotes are Python's: write records by json.dumps" : "");
  } catch (const Json::exception& error) {
    fail(ErrorCode::input, "{}: {}", place, exception_text(error));
  }
}

/// Returns a list of non-negative integers, or `other`.
std::vector<std::int32_t> take_ids(const Json& object,
                                   const char* key,
                                   std::int32_t other,
                                   const std::string& place) {
  const auto field = object.find(key);
  if (field == object.end()) fail(ErrorCode::input, "{}: {} is missing", place, key);
  if (!field->is_array()) {
    fail(ErrorCode::input, "{}: {} is {}, not a list of token ids", place, key, field->type_name());
  }
  std::vector<std::int32_t> ids;
  for (const Json& item : *field) {
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

const Json& take_field(const Json& object, const char* key, const std::string& place) {
  const auto field = object.find(key);
  if (field == object.end()) fail(ErrorCode::input, "{}: {} is missing", place, key);
  return *field;
}

std::string take_text(const Json& object, const char* key, const std::string& place) {
  const Json& field = take_field(object, key, place);
  if (field.is_string()) return field.get<std::string>();
  fail(ErrorCode::input, "{}: {} is {}, not a text", place, key, field.type_name());
}

/// Returns the object that a text begins with, or that is the first element of its array.
std::optional<Json> first_object(std::string_view text) {
  try {
    const auto first = RecordReader(text, {}).next();
    if (!first || !first->text.starts_with('{')) return std::nullopt;
    Json object = parse_object(*first, {});
    if (object.is_object() && !object.empty()) return object;
  } catch (const Error&) {
  }
  return std::nullopt;
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

std::string describe(const RecordOptions& options) {
  Json chosen = Json::object();
  if (!options.text_column.empty()) chosen["text_column"] = options.text_column;
  for (const auto& [name, role] : options.role_names) chosen["role_names"][name] = role;
  return chosen.empty() ? "" : chosen.dump();
}

Record parse_record(const RawRecord& record,
                    const std::string& path,
                    const RecordOptions& options) {
  Json object = parse_object(record, path);
  return read_layout(object, options, place_of(record, path));
}

TokenPair parse_pair(const RawRecord& record, const std::string& path) {
  static constexpr std::array<std::string_view, 3> unbuilt{
      "decoder_input_ids", "decoder_attention_mask", "token_type_ids"};
  const Json object = parse_object(record, path);
  const std::string place = place_of(record, path);
  for (const std::string_view key : unbuilt) {
    const auto field = object.find(key);
    if (field == object.end() || field->empty()) continue;
    fail(ErrorCode::input, "{}: {} is not implemented; leave it out", place, key);
  }
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

ChoiceRecord parse_choices(const RawRecord& record, const std::string& path) {
  const Json object = parse_object(record, path);
  const std::string place = place_of(record, path);
  ChoiceRecord question;
  question.query = take_text(object, "query", place);
  const Json& choices = take_field(object, "choices", place);
  if (!choices.is_array() || choices.size() < 2) {
    fail(ErrorCode::input, "{}: choices must be a list of at least two texts", place);
  }
  for (const Json& choice : choices) {
    const bool is_text = choice.is_string() && !choice.get_ref<const std::string&>().empty();
    if (!is_text) {
      fail(ErrorCode::input, "{}: choices[{}] is {}, not a text", place, question.choices.size(),
           choice.is_string() ? "empty" : choice.dump());
    }
    question.choices.push_back(choice.get<std::string>());
  }
  const Json& gold = take_field(object, "gold", place);
  const std::size_t count = choices.size();
  if (!gold.is_number_unsigned() || gold.get<std::uint64_t>() >= count) {
    fail(ErrorCode::input, "{}: gold is {}; it must be the index of a choice, from 0 to {}", place,
         gold.dump(), count - 1);
  }
  question.gold = gold.get<std::size_t>();
  return question;
}

bool holds_choices(std::string_view text) {
  const std::optional<Json> first = first_object(text);
  return first && first->contains("query") && first->contains("choices");
}

std::string parse_text(const RawRecord& record, const std::string& key, const std::string& path) {
  const Json object = parse_object(record, path);
  const std::string place = place_of(record, path);
  if (!object.contains(key) && has_answers(object)) {
    fail(ErrorCode::input,
         "{}: {} is missing, but {}; token files cannot separate answers from questions: give "
         "the records to dstrain train",
         place, key, keys_of(object));
  }
  return text_under(object, key, place);
}

bool holds_records(std::string_view text) {
  const std::optional<Json> first = first_object(text);
  if (!first || !has_layout(*first)) return false;
  if (framing_of(text) != RecordFraming::lines) return true;
  constexpr int looked_at = 16;
  int records = 0;
  int others = 0;
  RecordReader reader(text, {});
  for (auto line = reader.next(); line && records + others < looked_at; line = reader.next()) {
    ++(line->text.starts_with("{\"") ? records : others);
  }
  return records > others;
}

bool holds_object(std::string_view text) {
  return text.starts_with('{') && first_object(text).has_value();
}

}  // namespace dstrain::data
