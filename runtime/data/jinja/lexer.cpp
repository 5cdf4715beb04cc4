#include "runtime/data/jinja/lexer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

#include "runtime/base/utf8.h"
#include "runtime/data/jinja/python_text.h"

namespace dstrain::jinja {
namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Line ends become "\n", and the last one is dropped, as Jinja does.
std::string with_plain_lines(std::string_view source) {
  std::string text;
  for (std::size_t i = 0; i < source.size(); ++i) {
    const bool is_return = source[i] == '\r';
    if (is_return && i + 1 < source.size() && source[i + 1] == '\n') continue;
    text += is_return ? '\n' : source[i];
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) {
      const std::size_t tag = find_tag();
      if (tag == std::string::npos) {
        add(Token::Kind::text, source_.substr(at_), at_);
        break;
      }
      read_tag(tag);
    }
    at_ = source_.size();
    add(Token::Kind::end, {}, at_);
    return std::move(tokens_);
  }

 private:
  [[nodiscard]] std::string_view rest() const { return std::string_view(source_).substr(at_); }
  [[nodiscard]] char sign_after(std::size_t tag) const {
    const char c = tag + 2 < source_.size() ? source_[tag + 2] : ' ';
    return c == '-' || c == '+' ? c : ' ';
  }

  /// The position of a byte; called for growing bytes, so that lines are counted once.
  Position position(std::size_t byte) {
    for (; counted_ < byte; ++counted_) {
      if (source_[counted_] == '\n') {
        ++line_;
        line_begin_ = counted_ + 1;
      }
    }
    return {line_, static_cast<int>(byte - line_begin_) + 1};
  }

  [[noreturn]] void refuse_at(std::size_t byte, const std::string& message) {
    throw SyntaxError{message, position(std::max(byte, counted_))};
  }

  void add(Token::Kind kind, std::string text, std::size_t byte) {
    if (kind == Token::Kind::text && text.empty()) return;
    tokens_.push_back({kind, std::move(text), position(byte)});
  }

  [[nodiscard]] std::size_t find_tag() const {
    std::size_t at = source_.find('{', at_);
    while (at != std::string::npos && at + 1 < source_.size()) {
      const char next = source_[at + 1];
      if (next == '{' || next == '%' || next == '#') return at;
      at = source_.find('{', at + 1);
    }
    return std::string::npos;
  }

  /// Adds the text before a tag, without the white space that the tag removes.
  void add_text_before(std::size_t tag) {
    const std::size_t begin = at_;
    std::string_view text = std::string_view(source_).substr(begin, tag - begin);
    const char sign = sign_after(tag);
    if (sign == '-') {
      while (!text.empty()) {
        const std::size_t size = last_size(text);
        if (!is_space(text.substr(text.size() - size))) break;
        text.remove_suffix(size);
      }
    } else if (sign != '+' && source_[tag + 1] != '{') {
      text = without_indentation(text);
    }
    add(Token::Kind::text, std::string(text), begin);
  }

  [[nodiscard]] std::string_view without_indentation(std::string_view text) const {
    const std::size_t line = text.rfind('\n');
    const bool begins_line = at_ == 0 || source_[at_ - 1] == '\n';
    if (line == std::string_view::npos && !begins_line) return text;
    const std::size_t begin = line == std::string_view::npos ? 0 : line + 1;
    for (std::size_t at = begin; at < text.size();) {
      const std::size_t size = first_size(text.substr(at));
      if (!is_space(text.substr(at, size))) return text;
      at += size;
    }
    return text.substr(0, begin);
  }

  void skip_space() {
    while (at_ < source_.size()) {
      const std::size_t size = first_size(rest());
      if (!is_space(rest().substr(0, size))) return;
      at_ += size;
    }
  }

  /// Moves behind the end of a tag, "%}", and the white space that it removes; false: it is not
  /// here.
  bool take_end(std::string_view end) {
    const char sign = at_ < source_.size() ? source_[at_] : ' ';
    const bool signed_end =
        (sign == '-' || (sign == '+' && end != "}}")) && rest().substr(1).starts_with(end);
    if (!signed_end && !rest().starts_with(end)) return false;
    at_ += end.size() + (signed_end ? 1 : 0);
    if (signed_end && sign == '-') {
      skip_space();
    } else if (!signed_end && end != "}}" && rest().starts_with('\n')) {
      ++at_;
    }
    return true;
  }

  void read_tag(std::size_t tag) {
    add_text_before(tag);
    at_ = tag + 2 + (sign_after(tag) == ' ' ? 0 : 1);
    if (source_[tag + 1] == '#') {
      skip_comment(tag);
    } else if (source_[tag + 1] == '%' && read_raw(tag)) {
      return;
    } else {
      read_expressions(tag);
    }
  }

  void skip_comment(std::size_t tag) {
    const std::size_t close = source_.find("#}", at_);
    if (close == std::string::npos) refuse_at(tag, "this comment does not end");
    const char sign = source_[close - 1];
    at_ = close > at_ && (sign == '-' || sign == '+') ? close - 1 : close;
    take_end("#}");
  }

  /// Reads {% raw %} and all until {% endraw %}; false: the tag is another one.
  bool read_raw(std::size_t tag) {
    const std::size_t begin = at_;
    skip_space();
    if (!rest().starts_with("raw")) return at_ = begin, false;
    at_ += 3;
    skip_space();
    const bool strips = rest().starts_with("-%}");
    if (!strips && !rest().starts_with("%}")) return at_ = begin, false;
    at_ += strips ? 3 : 2;
    if (strips) skip_space();
    for (std::size_t end = source_.find("{%", at_); end != std::string::npos;
         end = source_.find("{%", end + 2)) {
      std::size_t word = end + 2 + (sign_after(end) == ' ' ? 0 : 1);
      while (word < source_.size() && source_[word] == ' ') ++word;
      if (!std::string_view(source_).substr(word).starts_with("endraw")) continue;
      add_text_before(end);
      at_ = word + 6;
      while (at_ < source_.size() && source_[at_] == ' ') ++at_;
      if (take_end("%}")) return true;
      refuse_at(at_, "endraw is followed by something else");
    }
    refuse_at(tag, "raw does not end: there is no endraw");
  }

  void read_expressions(std::size_t tag) {
    const bool is_block = source_[tag + 1] == '%';
    const std::string_view end = is_block ? "%}" : "}}";
    add(is_block ? Token::Kind::block_begin : Token::Kind::variable_begin, {}, tag);
    std::string open;  // brackets
    for (;;) {
      skip_space();
      if (at_ >= source_.size()) refuse_at(tag, "this tag does not end");
      const std::size_t begin = at_;
      if (open.empty() && take_end(end)) {
        add(is_block ? Token::Kind::block_end : Token::Kind::variable_end, {}, begin);
        return;
      }
      read_token(open);
    }
  }

  void read_token(std::string& open) {
    const std::size_t begin = at_;
    const char c = source_[at_];
    if (c == '"' || c == '\'') {
      read_string();
    } else if (is_digit(c)) {
      read_number();
    } else if (is_letter(c)) {
      while (at_ < source_.size() && (is_letter(source_[at_]) || is_digit(source_[at_]))) ++at_;
      add(Token::Kind::name, source_.substr(begin, at_ - begin), begin);
    } else {
      read_symbol(open);
    }
  }

  void read_symbol(std::string& open) {
    static constexpr std::array<std::string_view, 28> symbols{
        "**", "//", "==", "!=", ">=", "<=", "+", "-", "*", "/", "%", "~", "[", "]",
        "(",  ")",  "{",  "}",  ">",  "<",  "=", ".", ":", "|", ",", ";", "!", "@"};
    const auto* const symbol = std::ranges::find_if(
        symbols, [&](std::string_view text) { return rest().starts_with(text); });
    if (symbol == symbols.end()) {
      refuse_at(at_,
                "unexpected character '" + std::string(rest().substr(0, first_size(rest()))) + "'");
    }
    const char c = symbol->front();
    if (c == '(' || c == '[' || c == '{') {
      open += c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (c == ')' || c == ']' || c == '}') {
      if (open.empty() || open.back() != c) {
        refuse_at(at_, std::string("unexpected '") + c + "'");
      }
      open.pop_back();
    }
    add(Token::Kind::symbol, std::string(*symbol), at_);
    at_ += symbol->size();
  }

  void read_number() {
    const std::size_t begin = at_;
    std::string digits;
    int base = 10;
    if (source_[at_] == '0' && at_ + 1 < source_.size()) {
      const char kind = static_cast<char>(source_[at_ + 1] | 0x20);
      base = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 10;
      if (base != 10) at_ += 2;
    }
    const auto take_digits = [&] {
      while (at_ < source_.size() &&
             (is_digit(source_[at_]) || source_[at_] == '_' ||
              (base == 16 && is_letter(source_[at_]) && (source_[at_] | 0x20) <= 'f'))) {
        if (source_[at_] != '_') digits += source_[at_];
        ++at_;
      }
    };
    take_digits();
    bool is_real = false;
    if (base == 10 && at_ + 1 < source_.size() && source_[at_] == '.' &&
        is_digit(source_[at_ + 1])) {
      is_real = true;
      digits += source_[at_++];
      take_digits();
    }
    if (base == 10) is_real = take_exponent(digits, take_digits) || is_real;
    if (!is_real && base == 10 && digits.size() > 1 && digits.front() == '0' &&
        digits.find_first_not_of('0') != std::string::npos) {
      refuse_at(begin, "a number begins with 0");
    }
    if (!is_real) digits = whole_digits(digits, base, begin);
    add(is_real ? Token::Kind::real : Token::Kind::whole, digits, begin);
  }

  template <class TakeDigits>
  bool take_exponent(std::string& digits, const TakeDigits& take_digits) {
    std::size_t next = at_ + 1;
    if (at_ >= source_.size() || (source_[at_] | 0x20) != 'e') return false;
    if (next < source_.size() && (source_[next] == '+' || source_[next] == '-')) ++next;
    if (next >= source_.size() || !is_digit(source_[next])) return false;
    digits += source_.substr(at_, next - at_);
    at_ = next;
    take_digits();
    return true;
  }

  std::string whole_digits(const std::string& digits, int base, std::size_t begin) {
    std::int64_t value = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    if (error != std::errc{} || end != digits.data() + digits.size()) {
      refuse_at(begin, "this number is not an integer of 64 bits");
    }
    return std::to_string(value);
  }

  void read_string() {
    const std::size_t begin = at_;
    const char quote = source_[at_++];
    std::string text;
    while (at_ < source_.size() && source_[at_] != quote) {
      if (source_[at_] == '\\' && at_ + 1 < source_.size()) {
        ++at_;
        read_escape(text);
      } else {
        text += source_[at_++];
      }
    }
    if (at_ >= source_.size()) refuse_at(begin, "this string does not end");
    ++at_;
    add(Token::Kind::string, std::move(text), begin);
  }

  /// Python's escapes; others stay as they are.
  void read_escape(std::string& text) {
    static constexpr std::string_view letters = "ntr\\'\"abfv";
    static constexpr std::string_view values = "\n\t\r\\'\"\a\b\f\v";
    const char c = source_[at_];
    if (const std::size_t known = letters.find(c); known != std::string_view::npos) {
      text += values[known];
      ++at_;
    } else if (c == '\n') {
      ++at_;
    } else if (c >= '0' && c <= '7') {
      std::size_t digits = 0;
      while (digits < 3 && at_ + digits < source_.size() && source_[at_ + digits] >= '0' &&
             source_[at_ + digits] <= '7') {
        ++digits;
      }
      append_code(text, digits, 8);
    } else if (c == 'x' || c == 'u' || c == 'U') {
      ++at_;
      append_code(text, c == 'x' ? 2 : c == 'u' ? 4 : 8, 16);
    } else if (c == 'N') {
      refuse_at(at_, "names of characters are not implemented; use \\u and the number");
    } else {
      text += '\\';
      const auto [code, size] = first_of_any(rest());
      // Jinja escapes other characters than ASCII before it reads the escapes.
      const auto number = static_cast<std::uint32_t>(code);
      text += code < 0x80      ? std::string(1, c)
              : code < 0x100   ? fmt::format("x{:02x}", number)
              : code < 0x10000 ? fmt::format("u{:04x}", number)
                               : fmt::format("U{:08x}", number);
      at_ += size;
    }
  }

  void append_code(std::string& text, std::size_t digits, int base) {
    std::uint32_t code = 0;
    const std::string_view number = rest().substr(0, digits);
    const auto [end, error] =
        std::from_chars(number.data(), number.data() + number.size(), code, base);
    if (error != std::errc{} || number.size() < digits || end != number.data() + digits ||
        code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
      refuse_at(at_, "this escape is not a character");
    }
    append_utf8(text, static_cast<char32_t>(code));
    at_ += digits;
  }

  std::string source_;
  std::size_t at_ = 0;
  std::vector<Token> tokens_;
  std::size_t counted_ = 0;
  std::size_t line_begin_ = 0;
  int line_ = 1;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) {
  return Lexer(with_plain_lines(source)).run();
}

}  // namespace dstrain::jinja
