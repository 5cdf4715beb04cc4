#include "runtime/data/mixed_forms.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/base/shell_word.h"
#include "runtime/base/utf8.h"
#include "runtime/data/foreign_records.h"
#include "runtime/data/jq_command.h"
#include "runtime/data/json_record.h"
#include "runtime/data/json_values.h"
#include "runtime/data/tokenizer.h"
#include "runtime/data/unbuilt_keys.h"

namespace dstrain::data {
namespace {

using nlohmann::json;

/// Returns the test in jq for a record of this form.
std::string test_in_jq(const std::vector<FormKey>& form) {
  std::vector<std::string> tests;
  for (const FormKey& part : form) {
    const std::string type = fmt::format("(.{} | type)", part.key);
    tests.push_back(
        part.type == word_type
            ? fmt::format("({} | . == \"string\" or . == \"number\" or . == \"boolean\")", type)
            : fmt::format("{} == \"{}\"", type, part.type));
  }
  return fmt::format("type == \"object\" and {}", fmt::join(tests, " and "));
}

std::string names_of(const std::vector<FormKey>& form) {
  std::vector<std::string_view> names;
  for (const FormKey& part : form) names.push_back(part.key);
  return fmt::format("{}", fmt::join(names, ", "));
}

/// Adds to `whole` the parts of a question or conversation that only `other` has.
void add_parts(json& whole, const json& other) {
  static constexpr std::array<std::string_view, 4> before{"system", "system_prompt",
                                                          "meta_instruction", "history"};
  const auto add = [&](std::string_view key) {
    const auto field = other.find(key);
    const auto own = whole.find(key);
    const bool fills = field != other.end() && !holds_nothing(*field) &&
                       (own == whole.end() || holds_nothing(*own));
    if (fills) whole[std::string(key)] = *field;
  };
  for (const std::string_view key : before) add(key);
  for (const std::string_view key : question_parts) add(key);
}

}  // namespace

std::string split_commands(std::string_view text, const Line& first, const std::string& path) {
  const std::optional<json> record = parse_value(first.text);
  const std::vector<FormKey> form = record ? form_of(*record) : std::vector<FormKey>{};
  if (form.empty()) return {};
  const auto part = [&](std::string_view negation, std::string_view name) {
    const std::string program = jq_lines(fmt::format(
        "{}fromjson | {}{}", text.starts_with(byte_order_mark) ? "ltrimstr(\"\\ufeff\") | " : "",
        test_in_jq(form), negation));
    return whole_or_none(reading(program, path),
                         fmt::format("{}-{}.jsonl", without_extensions(path), name));
  };
  return fmt::format("{} && {}", part("", form.back().key), part(" | not", "others"));
}

void refuse_mixed_forms(std::string_view text, const Line& line, const std::string& path) {
  check_utf8(std::as_bytes(std::span(text)), path);
  std::optional<json> whole = parse_value(line.text);
  std::optional<Line> first;
  std::vector<FormKey> form;
  LineReader reader(text);
  for (std::vector<Line> lines = reader.next(); !lines.empty(); lines = reader.next()) {
    for (const Line& other : lines) {
      const std::optional<json> record = parse_value(other.text);
      if (!record) {
        parse_record(other.text,
                     fmt::format("{}:{}", path, other.number));  // throws with the reason
        return;
      }
      if (!first) {
        first = other;
        form = record->is_object() ? form_of(*record) : form;
        if (form.empty()) return;
      }
      if (!has_form(*record, form)) {
        const std::vector<FormKey> its = record->is_object() ? form_of(*record) : decltype(form){};
        fail(ErrorCode::input,
             "{}:{}: is a record of another form{} than line {} ({}), and a command converts one "
             "form; split the file{}",
             path, other.number, its.empty() ? "" : fmt::format(" ({})", names_of(its)),
             first->number, names_of(form), command_below(split_commands(text, *first, path)));
      }
      if (whole && whole->is_object()) add_parts(*whole, *record);
    }
  }
  if (!whole) return;
  try {
    parse_record(whole->dump(), fmt::format("{}:{}", path, line.number));
  } catch (const Error& error) {
    if (gives_jq_command(error.what())) throw;
  }
}

}  // namespace dstrain::data
