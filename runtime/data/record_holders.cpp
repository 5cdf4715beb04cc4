#include "runtime/data/record_holders.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/base/utf8.h"
#include "runtime/data/json_values.h"

namespace dstrain::data {

using nlohmann::json;

const json* list_of_records(const json& record) {
  static constexpr std::array<std::string_view, 5> lists{"instances", "data", "examples", "train",
                                                         "rows"};
  static constexpr std::array<std::string_view, 11> others{
      "type",     "version",        "name",    "description",      "info", "license", "split",
      "features", "num_rows_total", "partial", "num_rows_per_page"};
  const json* found = nullptr;
  for (const auto& [key, value] : record.items()) {
    if (std::ranges::find(others, key) != others.end()) continue;
    const bool holds = value.is_array() && !value.empty() && value.front().is_object() &&
                       std::ranges::find(lists, key) != lists.end();
    if (!holds || found != nullptr) return nullptr;
    found = &value;
  }
  return found;
}

namespace {

using Program = std::optional<std::string>;

std::string piped(std::string_view first, const std::string& then) {
  return then == "." ? std::string(first) : fmt::format("{} | {}", first, then);
}

/// Converts SQuAD's articles: the questions are in the paragraphs that they are about.
Program paragraphs_program(const json& article, RecordProgram program_for) {
  const json& paragraph = article.at("paragraphs").front();
  if (!has_list(paragraph, "qas") || !paragraph.at("qas").front().is_object()) return std::nullopt;
  json question = paragraph.at("qas").front();
  question["context"] = paragraph.value("context", json());
  const Program each = program_for(question);
  if (!each) return std::nullopt;
  return piped(".paragraphs[] | .qas[] + {context}", *each);
}

/// Whether all keys are row numbers, as pandas writes them.
bool has_row_numbers(const json& object) {
  return std::ranges::all_of(object.items(), [](const auto& item) {
    return item.key().find_first_not_of("0123456789") == std::string::npos;
  });
}

/// Converts records under their numbers, {"0": {...}, "1": {...}}.
Program named_program(const json& record, RecordProgram program_for) {
  const bool objects =
      has_row_numbers(record) &&
      std::ranges::all_of(record, [](const json& value) { return value.is_object(); });
  const Program each = objects ? program_for(record.front()) : std::nullopt;
  return each ? Program(piped(".[]", *each)) : std::nullopt;
}

/// Converts a record inside of another one, with the keys beside it.
Program wrapped_program(const json& record, RecordProgram program_for) {
  static constexpr std::array<std::string_view, 8> keys{"_source", "body", "data",   "example",
                                                        "record",  "row",  "sample", "fields"};
  for (const std::string_view key : keys) {
    const auto inner = record.find(key);
    if (inner == record.end() || !inner->is_object()) continue;
    const Program program = program_for(*inner);
    if (program) return piped(fmt::format(". + .{0} | del(.{0})", key), *program);
  }
  return std::nullopt;
}

/// Converts a list of turns in a JSON string, as in tables.
Program quoted_program(const json& record, RecordProgram program_for) {
  for (const std::string_view key : {"messages", "conversations", "conversation"}) {
    if (!has_text(record, key)) continue;
    const auto list = parse_value(record.find(key)->get_ref<const std::string&>());
    if (!list || !list->is_array()) continue;
    json plain = record;
    plain[std::string(key)] = *list;
    const Program program = program_for(plain);
    if (program) return piped(fmt::format(".{} |= fromjson", key), *program);
  }
  return std::nullopt;
}

/// Converts capitalised keys, {"Question": "...", "Answer": "..."}.
Program capital_program(const json& record, RecordProgram plain_program) {
  json small = json::object();
  for (const auto& [key, value] : record.items()) small[lower_case(key)] = value;
  if (small.size() != record.size() || small == record) return std::nullopt;
  const Program program = plain_program(small);
  return program ? Program(piped("with_entries(.key |= ascii_downcase)", *program)) : std::nullopt;
}

/// Converts pandas' table by rows, {"columns": ["prompt", "completion"], "data": [["a", "b"]]}.
Program split_table_program(const json& table, RecordProgram program_for) {
  if (!has_list(table, "columns") || !has_list(table, "data")) return std::nullopt;
  const json& names = table.at("columns");
  const json& values = table.at("data").front();
  json row = json::object();
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!names[i].is_string() || !values.is_array() || values.size() != names.size()) {
      return std::nullopt;
    }
    row[names[i].get<std::string>()] = values[i];
  }
  const Program each = program_for(row);
  if (!each) return std::nullopt;
  return piped(".columns as $c | .data[] | [$c, .] | transpose | map({(.[0]): .[1]}) | add", *each);
}

Program list_program(const json& record, RecordProgram program_for) {
  const json* const list = list_of_records(record);
  if (list == nullptr) return std::nullopt;
  const auto is_list = [&](const auto& item) {
    return &item.value() == list;
  };
  std::string key;
  for (const auto& item : record.items()) key = is_list(item) ? item.key() : key;
  // LMFlow puts no text between the two.
  const Program each = record.value("type", json()) == "text2text"
                           ? ". + {prompt: .input, completion: .output} | del(.input, .output)"
                       : has_list(list->front(), "paragraphs")
                           ? paragraphs_program(list->front(), program_for)
                           : program_for(list->front());
  if (!each) return std::nullopt;
  return piped(fmt::format(".{}[]", key), *each);
}

/// Converts a table by columns, {"prompt": ["a", "b"], "completion": ["c", "d"]}, or pandas' with
/// row numbers, {"prompt": {"0": "a"}, "completion": {"0": "c"}}, to its rows.
Program columns_program(const json& table, RecordProgram program_for) {
  json row = json::object();
  for (const auto& [key, value] : table.items()) {
    const bool structured = value.is_array() || (value.is_object() && has_row_numbers(value));
    const bool fits = structured && !value.empty() && value.front().is_string() &&
                      value.type() == table.front().type() && value.size() == table.front().size();
    if (!fits) return std::nullopt;
    row[key] = value.front();
  }
  const Program each = program_for(row);
  if (!each) return std::nullopt;
  return piped(fmt::format(". as $t | .[\"{}\"] | keys_unsorted[] as $i | $t | map_values(.[$i])",
                           table.items().begin().key()),
               *each);
}

}  // namespace

std::optional<std::string> holder_program(const json& record,
                                          RecordProgram program_for,
                                          RecordProgram plain_program) {
  for (const auto known : {columns_program, list_program, named_program, wrapped_program,
                           quoted_program, split_table_program}) {
    if (Program program = known(record, program_for)) return program;
  }
  return capital_program(record, plain_program);
}

}  // namespace dstrain::data
