#include "runtime/tokenizer/regex_shape.h"

#include <array>
#include <charconv>

#include "runtime/base/utf8.h"

namespace dstrain::tokenizer {
namespace {

using Atoms = RegexShape::Atoms;

/// A part of the expression.
struct Part {
  Atoms first{};
  Atoms last{};
  Atoms alone{};      ///< match a text of one character that is the whole part
  bool empty = true;  ///< can match the empty text
  /// It can backtrack and does not depend on its context, so each combination with its neighbours
  /// is possible.
  bool yields = true;
};

struct Times {
  std::size_t least = 1;
  bool many = false;  ///< repeats
};

class Parser {
 public:
  explicit Parser(std::string_view pattern) : rest_(pattern) {}

  std::optional<RegexShape> parse() {
    const Part whole = alternatives();
    if (!known_ || !rest_.empty() || whole.empty) return std::nullopt;
    shape_.first = whole.first;
    shape_.last = whole.last;
    shape_.alone = whole.alone;
    return std::move(shape_);
  }

 private:
  bool take(std::string_view expected) {
    if (!rest_.starts_with(expected)) return false;
    rest_.remove_prefix(expected.size());
    return true;
  }
  std::string_view take_bytes(std::size_t bytes) {
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(taken.size());
    return taken;
  }

  Part alternatives() {
    Part whole = sequence();
    while (take("|")) {
      const Part other = sequence();
      whole.first |= other.first;
      whole.last |= other.last;
      whole.alone |= other.alone;
      whole.empty = whole.empty || other.empty;
      whole.yields = whole.yields && other.yields;
    }
    return whole;
  }

  Part sequence() {
    Part whole;
    std::size_t parts = 0;
    while (known_ && !rest_.empty() && rest_.front() != '|' && rest_.front() != ')') {
      if (take("(?i)")) {
        ignores_case_ = true;
        continue;
      }
      const Part next = repeated();
      connect(whole.last, next.first);
      whole.alone = (next.empty ? whole.alone : Atoms{}) | (whole.empty ? next.alone : Atoms{});
      if (whole.empty) whole.first |= next.first;
      whole.last = next.last | (next.empty ? whole.last : Atoms{});
      whole.empty = whole.empty && next.empty;
      whole.yields = whole.yields && next.yields;
      ++parts;
    }
    if (parts > 1 && !whole.yields) whole.alone.reset();
    return whole;
  }

  Part repeated() {
    Part part = one();
    while (const auto times = quantifier()) {
      if (times->many) connect(part.last, part.first);
      if (times->least > 1 && !part.empty) part.alone.reset();
      part.empty = part.empty || times->least == 0;
      if (take("+")) {
        part.yields = false;
      } else {
        take("?");  // lazy: the same shape
      }
    }
    return part;
  }

  std::optional<Times> quantifier() {
    if (take("*")) return Times{.least = 0, .many = true};
    if (take("+")) return Times{.least = 1, .many = true};
    if (take("?")) return Times{.least = 0, .many = false};
    return rest_.starts_with("{") ? interval() : std::nullopt;
  }

  /// Parses {n}, {n,} or {n,m}; other braces are plain characters.
  std::optional<Times> interval() {
    const std::size_t close = rest_.find('}');
    if (close == std::string_view::npos) return std::nullopt;
    const std::string_view inner = rest_.substr(1, close - 1);
    const char* const end = inner.data() + inner.size();
    std::size_t least = 0;
    const auto [after, error] = std::from_chars(inner.data(), end, least);
    if (error != std::errc{}) return std::nullopt;
    std::size_t most = least;
    if (after != end) {
      if (*after != ',') return std::nullopt;
      most = std::string_view::npos;
      if (after + 1 != end) {
        const auto [last, wrong] = std::from_chars(after + 1, end, most);
        if (wrong != std::errc{} || last != end) return std::nullopt;
      }
    }
    rest_.remove_prefix(close + 1);
    return Times{.least = least, .many = most > 1};
  }

  Part one() {
    if (rest_.front() == '(') return group();
    if (rest_.front() == '[') return character_class();
    if (rest_.front() == '\\') return escape();
    if (rest_.front() == '^' || rest_.front() == '$') return unknown();
    return atom(first_character(rest_).size);
  }

  Part unknown() {
    known_ = false;
    return {};
  }

  Part group() {
    const bool outer_case = ignores_case_;
    const bool ahead = take("(?=") || take("(?!");
    bool atomic = false;
    if (!ahead) {
      atomic = take("(?>");
      if (take("(?i:")) {
        ignores_case_ = true;
      } else if (!atomic && !take("(?:")) {
        take("(");
        if (rest_.starts_with("?") || rest_.starts_with("*")) return unknown();
      }
    }
    Part part = alternatives();
    ignores_case_ = outer_case;
    if (!take(")")) return unknown();
    if (ahead)
      return {.first = part.first, .last = {}, .alone = {}, .empty = true, .yields = false};
    part.yields = part.yields && !atomic;
    return part;
  }

  Part character_class() {
    std::size_t end = 1;
    while (end < rest_.size() && rest_[end] != ']') {
      if (rest_[end] == '\\') ++end;
      ++end;
    }
    return end < rest_.size() ? atom(end + 1) : unknown();
  }

  Part escape() {
    if (rest_.size() < 2) return unknown();
    constexpr std::string_view with_braces = "pPx";
    if (with_braces.find(rest_[1]) == std::string_view::npos) return atom(2);
    const std::size_t end = rest_.find('}');
    return rest_.substr(2).starts_with("{") && end != rest_.npos ? atom(end + 1) : unknown();
  }

  Part atom(std::size_t bytes) {
    const std::size_t number = shape_.atoms.size();
    if (number == RegexShape::atoms_max) return unknown();
    std::string text = ignores_case_ ? "(?i)" : "";
    shape_.atoms.push_back(text.append(take_bytes(bytes)));
    shape_.next.emplace_back();
    Atoms self;
    self.set(number);
    return {.first = self, .last = self, .alone = self, .empty = false, .yields = true};
  }

  void connect(const Atoms& left, const Atoms& right) {
    for (std::size_t number = 0; number < shape_.next.size(); ++number) {
      if (left[number]) shape_.next[number] |= right;
    }
  }

  std::string_view rest_;
  RegexShape shape_;
  bool ignores_case_ = false;
  bool known_ = true;
};

}  // namespace

std::optional<RegexShape> regex_shape(std::string_view pattern) {
  return Parser(pattern).parse();
}

}  // namespace dstrain::tokenizer
