#include "runtime/config/yaml_reader.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>

#include <yaml-cpp/yaml.h>

#include "runtime/base/number.h"
#include "runtime/base/utf8.h"
#include "runtime/config/json_reader.h"

namespace dstrain::config {
namespace {

constexpr int values_max = 100'000;  // aliases of aliases can stand for any number

Position position_of(const YAML::Mark& mark) {
  return {mark.line + 1, mark.column + 1};
}

bool is_one_of(std::string_view word, std::span<const std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

class Reader {
 public:
  explicit Reader(Problems& problems) : problems_(problems) {}

  JsonValue value(const YAML::Node& node, int depth) {
    JsonValue read;
    read.position = position_of(node.Mark());
    if (depth > json_depth_max) {
      stop(read.position, fmt::format("nested more than {} deep", json_depth_max));
    }
    if (++values_ > values_max) {
      stop(read.position, fmt::format("holds more than {} values", values_max));
    }
    if (node.IsScalar()) return scalar(node, std::move(read));
    if (node.IsSequence()) {
      read.kind = JsonValue::Kind::array;
      for (const YAML::Node& element : node) read.elements.push_back(value(element, depth + 1));
    }
    if (node.IsMap()) {
      read.kind = JsonValue::Kind::object;
      for (const auto& member : node) add(member.first, member.second, depth, read);
    }
    return read;
  }

  [[noreturn]] void stop(Position where, std::string_view message) {
    problems_.add(where, "", message);
    problems_.raise();
  }

 private:
  void add(const YAML::Node& key, const YAML::Node& node, int depth, JsonValue& into) {
    const Position where = position_of(key.Mark());
    if (!key.IsScalar()) stop(where, "a key must be a word");
    const std::string& name = key.Scalar();
    const auto found = std::ranges::find(into.members, name, &JsonMember::key);
    if (found != into.members.end()) {
      problems_.add(where, name, fmt::format("is there already, in line {}", found->position.line));
      return;
    }
    into.members.push_back({name, where, value(node, depth + 1)});
  }

  static JsonValue scalar(const YAML::Node& node, JsonValue read) {
    constexpr std::array<std::string_view, 5> nulls{"", "~", "null", "Null", "NULL"};
    constexpr std::array<std::string_view, 9> truths{"true", "True", "TRUE", "yes", "Yes",
                                                     "YES",  "on",   "On",   "ON"};
    constexpr std::array<std::string_view, 9> untruths{"false", "False", "FALSE", "no", "No",
                                                       "NO",    "off",   "Off",   "OFF"};
    read.text = node.Scalar();
    const bool plain = node.Tag() != "!";  // "!" is what quotes give
    if (plain && is_one_of(read.text, nulls)) return read;
    read.boolean = plain && is_one_of(read.text, truths);
    if (plain && (read.boolean || is_one_of(read.text, untruths))) {
      read.kind = JsonValue::Kind::boolean;
      return read;
    }
    std::string digits = read.text;
    if (!digits.starts_with('_')) std::erase(digits, '_');  // 1_000
    const auto number = plain ? parse_number<double>(digits) : std::nullopt;
    read.kind = number ? JsonValue::Kind::number : JsonValue::Kind::string;
    if (number) read.number = *number;
    if (number) read.integer = parse_number<std::int64_t>(digits);
    return read;
  }

  Problems& problems_;
  int values_ = 0;
};

/// The text before `offset` is valid UTF-8.
Position position_at(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const auto begins_character = [](unsigned char byte) {
    return (byte & 0xc0U) != 0x80U;
  };
  const std::string_view line = before.substr(before.rfind('\n') + 1);  // npos + 1 is 0
  return {static_cast<int>(std::ranges::count(before, '\n')) + 1,
          static_cast<int>(std::ranges::count_if(line, begins_character)) + 1};
}

/// Refuses what yaml-cpp reads as something else, or reports at another place.
void check_characters(std::string_view text, Reader& reader) {
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    reader.stop({}, "is UTF-16; save it as UTF-8");
  }
  if (const auto invalid = find_invalid_utf8(text)) {
    reader.stop(position_at(text, *invalid), "is not UTF-8; save it as UTF-8");
  }
  const auto control = std::ranges::find_if(text, [](unsigned char c) {
    return (c < ' ' && c != '\t' && c != '\n' && c != '\r') || c == 0x7f;
  });
  if (control != text.end()) {
    reader.stop(position_at(text, static_cast<std::size_t>(control - text.begin())),
                fmt::format("holds the control character 0x{:02x}", *control));
  }
}

/// The first line that a tab indents; line 0: there is none.
Position indenting_tab(std::string_view text) {
  for (int line = 1; !text.empty(); ++line) {
    const std::size_t first = text.find_first_not_of(' ');
    if (first != text.npos && text[first] == '\t') return {line, static_cast<int>(first) + 1};
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  }
  return {0, 0};
}

}  // namespace

JsonValue read_yaml(std::string_view text, Problems& problems) {
  Reader reader(problems);
  if (std::ssize(text) > json_bytes_max) {
    reader.stop({}, fmt::format("holds more than {} bytes", json_bytes_max));
  }
  check_characters(text, reader);
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(std::string(text));
    if (documents.size() > 1) {
      reader.stop(position_of(documents[1].Mark()), "begins a second document; keep one");
    }
    JsonValue root;
    if (documents.empty() || documents.front().IsNull()) {
      root.kind = JsonValue::Kind::object;
      return root;
    }
    root = reader.value(documents.front(), 1);
    if (!root.is(JsonValue::Kind::object)) {
      reader.stop(root.position, "expected lines with NAME: VALUE");
    }
    return root;
  } catch (const YAML::Exception& error) {
    const Position tab = indenting_tab(text);
    const bool by_tab = tab.line > 0 && tab.line <= position_of(error.mark).line;
    if (by_tab) reader.stop(tab, "is indented by a tab; YAML needs spaces");
    reader.stop(position_of(error.mark), error.msg);
  }
}

}  // namespace dstrain::config
