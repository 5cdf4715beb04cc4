#include "runtime/config/json_reader.h"

#include <map>

#include <fmt/format.h>

#include "runtime/base/printable.h"
#include "runtime/config/json_scanner.h"

namespace dstrain::config {
namespace {

class Reader {
 public:
  Reader(std::string_view text, Problems& problems)
      : scanner_(text, problems), problems_(problems) {}

  JsonValue document() {
    scanner_.skip_blanks();
    const char c = scanner_.peek();
    if (c == '{') {
      JsonValue root = value(1);
      scanner_.skip_blanks();
      if (!scanner_.at_end()) scanner_.unexpected("nothing after the closing }");
      return root;
    }
    if (c == '[' && scanner_.peek(1) == '{') {
      scanner_.stop(scanner_.position(), "expected an object, got a list; without the brackets");
    }
    if (c != '"' && !begins_word(c)) scanner_.unexpected("{ and a JSON object");
    JsonValue root;
    root.kind = JsonValue::Kind::object;
    root.position = scanner_.position();
    members(root, 1, Braces::absent);
    return root;
  }

 private:
  enum class Braces { present, absent };

  static bool begins_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  }

  JsonValue value(int depth) {
    if (depth > json_depth_max) {
      scanner_.stop(scanner_.position(), fmt::format("nested more than {} deep", json_depth_max));
    }
    const char c = scanner_.peek();
    if (c == '{') return object(depth);
    if (c == '[') return array(depth);
    if (c == '"') return string();
    if (c == '-' || (c >= '0' && c <= '9')) return scanner_.number();
    if (begins_word(c)) return scanner_.word();
    if (c == '\'') refuse_quote();
    if (c == '$' || c == '<' || c == '@' || c == '%') scanner_.refuse_placeholder();
    scanner_.unexpected("a value");
  }

  [[noreturn]] void refuse_quote() {
    const bool block = scanner_.peek(1) == '\'' && scanner_.peek(2) == '\'';
    scanner_.stop(scanner_.position(),
                  block ? "HJSON's \'\'\' strings are not supported; use double quotes"
                        : "strings need double quotes");
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
      pass_comma(']');
    }
    return value;
  }

  /// Passes the separator of two values: a comma or the end of a line.
  void pass_comma(char closing) {
    const bool line_ended = scanner_.skip_blanks();
    if (scanner_.pass(',')) {
      scanner_.skip_blanks();
    } else if (scanner_.peek() != closing && (!line_ended || scanner_.at_end())) {
      scanner_.unexpected(closing == '\0' ? "a comma or the end of the line"
                                          : fmt::format(", or {}", closing));
    }
  }

  JsonValue object(int depth) {
    JsonValue value;
    value.kind = JsonValue::Kind::object;
    value.position = scanner_.position();
    scanner_.pass('{');
    scanner_.skip_blanks();
    members(value, depth, Braces::present);
    return value;
  }

  void members(JsonValue& value, int depth, Braces braces) {
    std::map<std::string, Position> seen;
    while (braces == Braces::present ? !scanner_.pass('}') : !scanner_.at_end()) {
      JsonMember read = member(depth);
      const auto [first, fresh] = seen.emplace(read.key, read.position);
      if (fresh) {
        value.members.push_back(std::move(read));
      } else {
        problems_.add(read.position, "",
                      fmt::format("duplicate key \"{}\", first given at {}:{}", printable(read.key),
                                  first->second.line, first->second.column));
      }
      pass_comma(braces == Braces::present ? '}' : '\0');
    }
  }

  JsonMember member(int depth) {
    JsonMember read;
    read.position = scanner_.position();
    const char c = scanner_.peek();
    if (c == '\'') refuse_quote();
    if (c != '"' && !begins_word(c)) scanner_.unexpected("a key in double quotes");
    read.key = c == '"' ? scanner_.string() : scanner_.bare_key();
    scanner_.skip_blanks();
    if (!scanner_.pass(':'))
      scanner_.unexpected(fmt::format(": after \"{}\"", printable(read.key)));
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

std::vector<Position*> positions_of(JsonValue& value) {
  std::vector<Position*> positions{&value.position};
  const auto append = [&](JsonValue& inner) {
    const std::vector<Position*> more = positions_of(inner);
    positions.insert(positions.end(), more.begin(), more.end());
  };
  for (JsonValue& element : value.elements) append(element);
  for (JsonMember& member : value.members) {
    positions.push_back(&member.position);
    append(member.value);
  }
  return positions;
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
