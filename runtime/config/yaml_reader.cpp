#include "runtime/config/yaml_reader.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>

#include <yaml-cpp/yaml.h>

#include "runtime/base/number.h"
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

}  // namespace

JsonValue read_yaml(std::string_view text, Problems& problems) {
  Reader reader(problems);
  if (std::ssize(text) > json_bytes_max) {
    reader.stop({}, fmt::format("holds more than {} bytes", json_bytes_max));
  }
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
    reader.stop(position_of(error.mark), error.msg);
  }
}

}  // namespace dstrain::config
