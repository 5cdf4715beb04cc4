#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/tokenizer/json_field.h"

namespace dstrain::tokenizer {

/// A part of a text: bytes from `begin` up to `end`.
struct Span {
  std::size_t begin = 0;
  std::size_t end = 0;

  [[nodiscard]] std::size_t size() const { return end - begin; }
  [[nodiscard]] std::string_view of(std::string_view text) const {
    return text.substr(begin, end - begin);
  }
};

/// The memory of a search; of one thread at a time.
class MatchMemory {
 public:
  MatchMemory();
  MatchMemory(MatchMemory&&) noexcept;
  MatchMemory& operator=(MatchMemory&&) noexcept;
  MatchMemory(const MatchMemory&) = delete;
  MatchMemory& operator=(const MatchMemory&) = delete;
  ~MatchMemory();

 private:
  friend class Regex;
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// What a pattern says of a place between two characters, whatever else a text holds.
struct MatchBorder {
  enum class Chance { never, possible, certain };
  bool spanned = false;           ///< a match, or what looks for one, may reach over it
  Chance ends = Chance::never;    ///< a match ends there, if none reaches over it
  Chance begins = Chance::never;  ///< and begins there
};

/// What Split and Replace look for. Immutable, so threads may share one.
class Pattern {
 public:
  Pattern() = default;
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;
  virtual ~Pattern() = default;

  /// The leftmost match that begins at `from` or later.
  virtual std::optional<Span> find(std::string_view text,
                                   std::size_t from,
                                   MatchMemory& memory) const = 0;

  /// Nothing where matches depend on more than what they are made of.
  [[nodiscard]] virtual std::optional<MatchBorder> border(char32_t left, char32_t right) const = 0;
};

/// A regular expression as in tokenizer.json (see regex_syntax.h), run by PCRE2 as machine code
/// where that is possible. Throws Error{input}, which begins with `place`.
std::unique_ptr<Pattern> make_regex(std::string_view pattern, const std::string& place);

/// `{"String": ...}` or `{"Regex": ...}`. Throws Error{input}.
std::unique_ptr<Pattern> read_pattern(const JsonField& field);

/// Calls `visit` with each match in turn. An empty match right behind another one does not count.
template <class Visit>
void for_each_match(const Pattern& pattern,
                    std::string_view text,
                    MatchMemory& memory,
                    Visit&& visit) {
  std::size_t from = 0;
  std::optional<std::size_t> last_end;
  while (from <= text.size()) {
    const std::optional<Span> match = pattern.find(text, from, memory);
    if (!match) return;
    if (match->size() == 0 && match->end == last_end) {
      do ++from;  // to the next character
      while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xC0U) == 0x80);
      continue;
    }
    visit(*match);
    from = match->end;
    last_end = match->end;
  }
}

}  // namespace dstrain::tokenizer
