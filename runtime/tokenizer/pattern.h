#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/tokenizer/json_field.h"

namespace dstrain::tokenizer {

/// The bytes [begin, end) of a text.
struct Span {
  std::size_t begin = 0;
  std::size_t end = 0;

  [[nodiscard]] std::size_t size() const { return end - begin; }
  [[nodiscard]] std::string_view of(std::string_view text) const {
    return text.substr(begin, end - begin);
  }
};

/// Working memory of a search. For one thread at a time.
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

/// How a pattern can match around a place between two characters, whatever else the text contains.
struct MatchBorder {
  enum class Chance { never, possible, certain };
  bool spanned = false;           ///< a match, or a search for one, may extend across the place
  Chance ends = Chance::never;    ///< a match ends there, if none extends across
  Chance begins = Chance::never;  ///< a match begins there
};

/// What Split and Replace search for. Immutable, so threads may share one.
class Pattern {
 public:
  Pattern() = default;
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;
  virtual ~Pattern() = default;

  /// Returns the leftmost match that begins at `from` or later.
  virtual std::optional<Span> find(std::string_view text,
                                   std::size_t from,
                                   MatchMemory& memory) const = 0;

  /// Returns nothing if matches depend on more than their own characters.
  [[nodiscard]] virtual std::optional<MatchBorder> border(char32_t left, char32_t right) const = 0;
};

/// Compiles a regular expression of tokenizer.json (see regex_syntax.h) with PCRE2, to machine code
/// if possible. Throws Error{input}, which begins with `place`.
std::unique_ptr<Pattern> make_regex(std::string_view pattern, const std::string& place);

/// Reads `{"String": ...}` or `{"Regex": ...}`. Throws Error{input}.
std::unique_ptr<Pattern> read_pattern(const JsonField& field);

/// Calls `visit` for each match in order. Skips an empty match directly after another match.
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
