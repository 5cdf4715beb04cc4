#include "runtime/config/options_file.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/base/printable.h"
#include "runtime/base/utf8.h"
#include "runtime/config/json_reader.h"
#include "runtime/config/train_flags.h"
#include "runtime/config/yaml_reader.h"
#include "runtime/os/file.h"

namespace dstrain::config {
namespace {

using Kind = JsonValue::Kind;
using Words = std::vector<std::string>;

constexpr std::string_view config_option = "--config";

/// "per-device-batch" -> "per_device_batch"
std::string spelled(std::string_view name) {
  std::string text(name);
  std::ranges::replace(text, '-', '_');
  return text;
}

/// The option that a typed word names; null: none.
const FlagRow* named_by(std::string_view word) {
  if (!word.starts_with("--")) return nullptr;
  const std::string name = spelled(word.substr(2, word.find('=') - 2));
  const FlagRow* const row = find_flag(name);
  return row == nullptr && name.starts_with("no_") ? find_flag(name.substr(3)) : row;
}

bool ends_with_any(const std::string& word, std::initializer_list<std::string_view> endings) {
  const std::string lower = lower_case(word);
  return std::ranges::any_of(endings, [&](auto ending) { return lower.ends_with(ending); });
}

/// Takes the words that name the file out of `words`. None: no file is named.
std::optional<std::string> take_file(Words& words) {
  std::optional<std::string> file;
  const auto take = [&](std::string name) {
    if (name.empty()) fail(ErrorCode::usage, "{}: needs a value", config_option);
    if (file)
      fail(ErrorCode::usage, "{}: names a file already, {}; keep one", config_option, *file);
    file = std::move(name);
  };
  if (!words.empty() && !words.front().starts_with("-") &&
      ends_with_any(words.front(), {".yaml", ".yml", ".json"})) {
    take(words.front());
    words.erase(words.begin());
  }
  for (auto word = words.begin(); word != words.end();) {
    if (word->starts_with(fmt::format("{}=", config_option))) {
      take(word->substr(config_option.size() + 1));
      word = words.erase(word);
    } else if (*word == config_option) {
      const bool followed = word + 1 != words.end() && !(word + 1)->starts_with("--");
      take(followed ? *(word + 1) : "");
      word = words.erase(word, word + 2);
    } else {
      ++word;
    }
  }
  return file;
}

nlohmann::ordered_json to_json(const JsonValue& value) {
  switch (value.kind) {
    case Kind::null:
      return nullptr;
    case Kind::boolean:
      return value.boolean;
    case Kind::number:
      if (value.integer) return *value.integer;
      return value.number;
    case Kind::string:
      return value.text;
    case Kind::array: {
      auto list = nlohmann::ordered_json::array();
      for (const JsonValue& element : value.elements) list.push_back(to_json(element));
      return list;
    }
    case Kind::object:
      break;
  }
  auto object = nlohmann::ordered_json::object();
  for (const JsonMember& member : value.members) object[member.key] = to_json(member.value);
  return object;
}

/// As it would be typed.
std::string word_of(const JsonValue& value) {
  return value.is(Kind::boolean) && value.text.empty() ? to_text(value) : value.text;
}

bool is_false_or_empty(const JsonValue& value) {
  return value.is(Kind::null) || (value.is(Kind::boolean) && !value.boolean) ||
         (value.is(Kind::array) && value.elements.empty()) ||
         (value.is(Kind::object) && value.members.empty());
}

/// The options that may have a section as their value.
bool has_section(const FlagRow* row) {
  return row == find_flag("deepspeed") || row == find_flag("deepspeed_config");
}

/// Makes words of the members of a file.
class FileReader {
 public:
  explicit FileReader(Problems& problems) : problems_(problems) {}

  /// Keys that are not options, and whose values are false or empty.
  [[nodiscard]] const Words& ignored() const { return ignored_; }

  Words words_of(const JsonMember& member) {
    const JsonValue& value = member.value;
    const std::string name = spelled(member.key);
    const std::string typed = "--" + name;
    const FlagRow* const row = find_flag(name);
    if (member.key.empty() || member.key.starts_with("-")) {
      return refuse(member, "a key is the name of an option, without dashes in front");
    }
    if (name == "<<") return refuse(member, "YAML's merge keys are not read; write the lines out");
    const bool named =
        std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
    if (!named) return refuse(member, "is not the name of an option; lines are NAME: VALUE");
    if (row == nullptr && value.is(Kind::boolean) && named_by(typed) != nullptr) {
      return {value.boolean ? typed : fmt::format("--{}=true", name.substr(3))};  // no_packing
    }
    if (typed == config_option) return refuse(member, "a file of options names no other");
    // Programs dump every setting that they have. A near miss of an option is a mistake.
    if (named_by(typed) == nullptr && is_false_or_empty(value) && likely_option(name).empty()) {
      ignored_.push_back(member.key);
      return {};
    }
    switch (value.kind) {
      case Kind::null:  // not set, if there is such an option
        return named_by(typed) == nullptr ? Words{typed} : Words();
      case Kind::object: {
        const bool acts = row != nullptr && row->status == FlagStatus::implemented;
        if (acts && !has_section(row)) {
          return refuse(member,
                        "is a section; the option has one value, and DeepSpeed's sections stand "
                        "below deepspeed:");
        }
        return {fmt::format("{}={}", typed, to_json(value).dump())};
      }
      case Kind::array:
        return list(member, row, typed);
      default:
        return {fmt::format("{}={}", typed, word_of(value))};
    }
  }

 private:
  Words refuse(const JsonMember& member, std::string_view why) {
    problems_.add(member.position, "", fmt::format("{}: {}", member.key, why));
    return {};
  }

  Words list(const JsonMember& member, const FlagRow* row, const std::string& typed) {
    const bool acts = row != nullptr && row->status == FlagStatus::implemented;
    Words values;
    for (const JsonValue& element : member.value.elements) {
      const bool plain =
          !element.is(Kind::array) && !element.is(Kind::object) && !element.is(Kind::null);
      if (!plain && acts) return refuse(member, "a list has plain values only");
      values.push_back(plain ? word_of(element) : to_json(element).dump());
    }
    if (values.empty()) return row == nullptr ? Words{typed} : Words();
    const bool takes_all = row != nullptr && (row->takes_files() || row->several);
    if (takes_all) {
      values.insert(values.begin(), typed);
      return values;
    }
    if (acts && values.size() > 1) return refuse(member, "takes one value, not a list");
    return {fmt::format("{}={}", typed, fmt::join(values, ","))};
  }

  Problems& problems_;
  Words ignored_;
};

/// Transformers' TrainingArguments say do_train: false unless a script sets it.
bool is_unset_training(const JsonMember& member, const JsonValue& root) {
  const auto truth = [&](std::string_view key) {
    const auto found = std::ranges::find(root.members, key, &JsonMember::key);
    return found != root.members.end() && found->value.is(Kind::boolean) && found->value.boolean;
  };
  return spelled(member.key) == "do_train" && member.value.is(Kind::boolean) &&
         !member.value.boolean && !truth("do_eval");
}

/// What a file of other settings is, and where it belongs; empty: it may have options.
std::string other_settings(const JsonValue& root, const std::string& file) {
  const auto has = [&](std::string_view key) {
    return std::ranges::find(root.members, key, &JsonMember::key) != root.members.end();
  };
  if (has("zero_optimization") || has("train_micro_batch_size_per_gpu") ||
      has("train_batch_size")) {
    return ends_with_any(file, {".json"})
               ? fmt::format("is a configuration of DeepSpeed: use --deepspeed {}", file)
               : "is a configuration of DeepSpeed: put its lines below a line deepspeed: in a file "
                 "of options, indented";
  }
  if (has("model_type")) return fmt::format("is a model's: use --config_name {}", file);
  if (has("distributed_type")) {
    return "is accelerate's, which says how many ranks run and where: write that before train";
  }
  return {};
}

JsonValue read_file(const std::string& file, Problems& problems) {
  const std::string text = read_text_file(file, json_bytes_max);
  JsonValue root =
      ends_with_any(file, {".json"}) ? read_json(text, problems) : read_yaml(text, problems);
  const std::string other = other_settings(root, file);
  if (!other.empty()) fail(ErrorCode::config, "{} {}", file, other);
  return root;
}

using Rows = std::set<const FlagRow*>;

/// The options that words name. A typed configuration replaces both options that may name one.
Rows rows_in(const Words& words) {
  Rows rows;
  for (const std::string& word : words) rows.insert(named_by(word));
  const std::array<const FlagRow*, 2> configurations{find_flag("deepspeed"),
                                                     find_flag("deepspeed_config")};
  const auto is_typed = [&](const FlagRow* row) {
    return rows.contains(row);
  };
  if (std::ranges::any_of(configurations, is_typed)) {
    rows.insert(configurations.begin(), configurations.end());
  }
  return rows;
}

std::vector<Position> section_positions(JsonValue& section) {
  std::vector<Position> positions;
  for (const Position* position : positions_of(section)) positions.push_back(*position);
  return positions;
}

}  // namespace

ExpandedArguments::ExpandedArguments(std::span<const std::string> arguments)
    : words_(arguments.begin(), arguments.end()) {
  const std::optional<std::string> file = take_file(words_);
  if (!file) return;
  places_ = OptionPlaces(*file);
  try {
    const Words from_file = read(*file);
    words_.insert(words_.begin(), from_file.begin(), from_file.end());
  } catch (const Error& error) {
    fail(ErrorCode::usage, "{}{}",
         error.code() == ErrorCode::config ? "" : "--config: ", error.what());
  }
}

std::vector<std::string> ExpandedArguments::read(const std::string& file) {
  const Rows typed = rows_in(words_);
  Problems problems(file);
  FileReader reader(problems);
  JsonValue root = read_file(file, problems);
  Words words;
  for (JsonMember& member : root.members) {
    const std::string name = "--" + spelled(member.key);
    const int line = member.position.line;
    const FlagRow* const row = named_by(name);
    if (row != nullptr && typed.contains(row)) continue;
    if (is_unset_training(member, root)) {
      warnings_.push_back(fmt::format("{}:{}: {}: false: has no effect without do_eval: true",
                                      printable(file), line, member.key));
      continue;
    }
    if (const std::string before = places_.of(name); !before.empty()) {
      problems.add(member.position, "",
                   fmt::format("{}: is there already, at {}", member.key, before));
    }
    places_.add(name, line);
    for (std::string& word : reader.words_of(member)) {
      if (word.starts_with("--")) places_.add(word.substr(0, word.find('=')), line);
      words.push_back(std::move(word));
    }
    if (has_section(row) && member.value.is(Kind::object)) {
      places_.set_section(section_positions(member.value));
    }
  }
  problems.throw_if_any();
  if (!reader.ignored().empty()) {
    warnings_.push_back(
        fmt::format("{}: keys that dstrain does not know, ignored because they are false or empty: "
                    "{}",
                    printable(file), fmt::join(reader.ignored(), ", ")));
  }
  return words;
}

}  // namespace dstrain::config
