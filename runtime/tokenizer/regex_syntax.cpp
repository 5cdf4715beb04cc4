#include "runtime/tokenizer/regex_syntax.h"

#include <algorithm>
#include <array>

#include "runtime/base/error.h"

namespace dstrain::tokenizer {
namespace {

// Oniguruma's classes, without brackets: the separators Z, U+0009 to U+000D and U+0085. PCRE2's \s
// also has U+180E; its \w lacks marks and has all numbers.
constexpr std::string_view space = R"(\x{9}-\x{D}\x{20}\x{85}\x{A0}\x{1680}\x{2000}-\x{200A})"
                                   R"(\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";
constexpr std::string_view no_space =
    R"(\x{0}-\x{8}\x{E}-\x{1F}\x{21}-\x{84}\x{86}-\x{9F}\x{A1}-\x{167F}\x{1681}-\x{1FFF})"
    R"(\x{200B}-\x{2027}\x{202A}-\x{202E}\x{2030}-\x{205E}\x{2060}-\x{2FFF}\x{3001}-\x{10FFFF})";
constexpr std::string_view word = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";
// Outside brackets, \w uses another table below U+0100, which includes these fractions and powers.
constexpr std::string_view latin_word = R"(\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE})";

constexpr std::array<std::string_view, 37> categories{
    "L",  "Lu", "Ll", "Lt", "Lm", "Lo", "M",  "Mn", "Mc", "Me", "N",  "Nd", "Nl",
    "No", "P",  "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "S",  "Sm", "Sc", "Sk",
    "So", "Z",  "Zs", "Zl", "Zp", "C",  "Cc", "Cf", "Co", "Cn", "Cs"};

class Rewriter {
 public:
  Rewriter(std::string_view pattern, const std::string& place) : rest_(pattern), place_(place) {}

  std::string rewrite() {
    while (!rest_.empty()) outside_class();
    return std::move(result_);
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    fail(ErrorCode::input, "{}: the regular expression has {}, which is not supported", place_,
         what);
  }

  /// Removes `expected` from the start of the rest. Returns whether it was there.
  bool take(std::string_view expected) {
    if (!rest_.starts_with(expected)) return false;
    rest_.remove_prefix(expected.size());
    return true;
  }
  char take_byte() {
    if (rest_.empty()) refuse("a lone \\ or [ at its end");
    const char byte = rest_.front();
    rest_.remove_prefix(1);
    return byte;
  }
  void copy(std::size_t bytes) {
    result_ += rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
  }

  void outside_class() {
    if (rest_.front() == '\\') {
      escape(/*in_class=*/false);
    } else if (take("[")) {
      character_class();
    } else if (rest_.starts_with("(?")) {
      group();
    } else if (take("^")) {  // in Ruby, the start of any line
      result_ += "(?m:^)";
    } else if (take("$")) {
      result_ += "(?m:$)";
    } else if (rest_.front() == '}') {
      copy(1);
      // In Ruby's syntax, + after an interval repeats it; in PCRE2's, it makes it possessive.
      if (rest_.starts_with("+")) refuse("{n,m}+");
    } else {
      copy(1);
    }
  }

  void group() {
    constexpr std::array<std::string_view, 8> known{
        "(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:", "(?i)"};
    for (const std::string_view open : known) {
      if (rest_.starts_with(open)) return copy(open.size());
    }
    refuse(std::string(rest_.substr(0, 4)));
  }

  void character_class() {
    result_ += '[';
    if (take("^")) result_ += '^';
    if (rest_.starts_with("]")) refuse("[]");
    while (!take("]")) {
      if (rest_.empty()) refuse("a [ without ]");
      if (rest_.starts_with("&&")) refuse("&&");
      if (rest_.front() == '[') refuse("a [ within [ ]");
      if (rest_.front() == '\\') {
        escape(/*in_class=*/true);
      } else {
        copy(1);
      }
    }
    result_ += ']';
  }

  void escape(bool in_class) {
    take("\\");
    const char letter = take_byte();
    switch (letter) {
      case 's':
        return add_set(space, in_class);
      case 'S':
        return add_set(no_space, in_class);
      case 'w':
        if (in_class) return add_set(word, in_class);
        result_.append("[").append(word).append(latin_word).append("]");
        return;
      case 'W':
        if (in_class) refuse("\\W within [ ]");
        result_.append("[^").append(word).append(latin_word).append("]");
        return;
      case 'd':
        result_ += "\\p{Nd}";
        return;
      case 'D':
        result_ += "\\P{Nd}";
        return;
      case 'p':
      case 'P':
        return property(letter);
      case 'x':
      case 'u':
        return code_point(letter);
      default:
        literal(letter);
    }
  }

  void add_set(std::string_view set, bool in_class) {
    if (in_class) {
      result_ += set;
    } else {
      result_.append("[").append(set).append("]");
    }
  }

  void property(char letter) {
    const std::size_t end = rest_.find('}');
    if (!rest_.starts_with("{") || end == std::string_view::npos) refuse("\\p without {}");
    std::string_view name = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    const bool inverted = name.starts_with('^');
    if (inverted) name.remove_prefix(1);
    if (std::ranges::find(categories, name) == categories.end()) {
      refuse("the property " + std::string(name));
    }
    result_ += (letter == 'P') != inverted ? "\\P{" : "\\p{";
    result_.append(name).append("}");
  }

  /// Handles \xHH, \x{H...} and \uHHHH.
  void code_point(char letter) {
    std::string_view digits;
    if (letter == 'x' && take("{")) {
      digits = rest_.substr(0, rest_.find('}'));
      rest_.remove_prefix(digits.size());
      if (!take("}")) refuse("\\x{ without }");
    } else {
      digits = rest_.substr(0, letter == 'x' ? 2 : 4);
      rest_.remove_prefix(digits.size());
      if (digits.size() < 2 || (letter == 'u' && digits.size() < 4)) refuse("a short \\x or \\u");
    }
    if (digits.empty() || digits.find_first_not_of("0123456789abcdefABCDEF") != digits.npos) {
      refuse("a \\x or \\u without hexadecimal digits");
    }
    result_.append("\\x{").append(digits).append("}");
  }

  void literal(char letter) {
    constexpr std::string_view controls = "nrtf";
    constexpr std::string_view punctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~ ";
    const bool known = controls.find(letter) != std::string_view::npos ||
                       punctuation.find(letter) != std::string_view::npos;
    if (!known) refuse(std::string("\\") + letter);
    result_ += '\\';
    result_ += letter;
  }

  std::string_view rest_;
  const std::string& place_;
  std::string result_;
};

}  // namespace

std::string pcre2_pattern(std::string_view pattern, const std::string& place) {
  return Rewriter(pattern, place).rewrite();
}

}  // namespace dstrain::tokenizer
