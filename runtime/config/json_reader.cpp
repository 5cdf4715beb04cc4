#include "runtime/config/json_reader.h"

#include <map>

#include <fmt/format.h>

#include "runtime/config/json_scanner.h"

namespace dstrain::config {
namespace {

class Reader {
 public:
  Reader(std::string_view text, Problems& problems)
      : scanner_(text, problems), problems_(problems) {}

  JsonValue document() {
    scanner_.skip_blanks();
    if (scanner_.peek() != '{') scanner_.unexpected("{ and a JSON object");
    JsonValue root = value(1);
    scanner_.skip_blanks();
    if (!scanner_.at_end()) scanner_.unexpected("nothing after the closing }");
    return root;
  }

 private:
  JsonValue value(int depth) {
    if (depth > json_depth_max) {
      scanner_.stop(scanner_.position(), fmt::format("nested more than {} deep", json_depth_max));
    }
    const char c = scanner_.peek();
    if (c == '{') return object(depth);
    if (c == '[') return array(depth);
    if (c == '"') return string();
    if (c == '-' || (c >= '0' && c <= '9')) return scanner_.number();
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return scanner_.word();
    if (c == '\'') scanner_.stop(scanner_.position(), "strings need double quotes");
    scanner_.unexpected("a value");
  }

  JsonValue string() {
    JsonValue value;
    value.kind = JsonValue::Kind::string;
    value.position = scanner_.position();
    value.text = scanner_.string();
    return value;
  }

  JsonValue array(int depth) {
    JsonValue value;
    value.kind = JsonValue::Kind::array;
    value.position = scanner_.position();
    scanner_.pass('[');
    scanner_.skip_blanks();
    while (!scanner_.pass(']')) {
      value.elements.push_back(this->value(depth + 1));
      scanner_.skip_blanks();
      if (!scanner_.pass(',') && scanner_.peek() != ']') scanner_.unexpected(", or ]");
      scanner_.skip_blanks();
    }
    return value;
  }

  JsonValue object(int depth) {
    JsonValue value;
    value.kind = JsonValue::Kind::object;
    value.position = scanner_.position();
    scanner_.pass('{');
    scanner_.skip_blanks();
    std::map<std::string, Position> seen;
    while (!scanner_.pass('}')) {
      JsonMember read = member(depth);
      const auto [first, fresh] = seen.emplace(read.key, read.position);
      if (fresh) {
        value.members.push_back(std::move(read));
      } else {
        problems_.add(read.position, "",
                      fmt::format("duplicate key \"{}\", first given at {}:{}", read.key,
                                  first->second.line, first->second.column));
      }
      scanner_.skip_blanks();
      if (!scanner_.pass(',') && scanner_.peek() != '}') scanner_.unexpected(", or }");
      scanner_.skip_blanks();
    }
    return value;
  }

  JsonMember member(int depth) {
    JsonMember read;
    read.position = scanner_.position();
    if (scanner_.peek() != '"') scanner_.unexpected("a key in double quotes");
    read.key = scanner_.string();
    scanner_.skip_blanks();
    if (!scanner_.pass(':')) scanner_.unexpected(fmt::format(": after \"{}\"", read.key));
    scanner_.skip_blanks();
    read.value = value(depth + 1);
    return read;
  }

  JsonScanner scanner_;
  Problems& problems_;
};

}  // namespace

JsonValue read_json(std::string_view text, Problems& problems) {
  if (text.size() > static_cast<std::size_t>(json_bytes_max)) {
    problems.add({}, "", fmt::format("larger than {}", format_bytes(json_bytes_max)));
    problems.throw_if_any();
  }
  return Reader(text, problems).document();
}

std::string to_text(const JsonValue& value) {
  switch (value.kind) {
    case JsonValue::Kind::null:
      return "null";
    case JsonValue::Kind::boolean:
      return value.boolean ? "true" : "false";
    case JsonValue::Kind::number:
      return value.text;
    case JsonValue::Kind::string: {
      constexpr std::size_t shown = 60;
      return fmt::format("\"{}{}\"", value.text.substr(0, shown),
                         value.text.size() > shown ? "..." : "");
    }
    case JsonValue::Kind::array:
      return "a list";
    case JsonValue::Kind::object:
      return "an object";
  }
  return {};
}

}  // namespace dstrain::config
