// Matches in a text that is cut where a regular expression says it may be.
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/utf8.h"
#include "runtime/numeric/philox.h"
#include "runtime/tokenizer/pattern.h"
#include "runtime/tokenizer/regex_shape.h"
#include "tests/support/catch.h"

using namespace dstrain;
using tokenizer::MatchBorder;
using tokenizer::Span;
using Chance = MatchBorder::Chance;

namespace {

class Draw {
 public:
  explicit Draw(std::uint64_t seed) { key_.seed = seed; }
  std::size_t below(std::size_t bound) {
    ++key_.index;
    return uniform_below(key_, bound);
  }
  const std::string& of(const std::vector<std::string>& list) { return list[below(list.size())]; }

 private:
  RandomKey key_{};
};

std::string random_regex(Draw& draw, int depth) {
  static const std::vector<std::string> atoms{"a",    "b",     " ",      "\\s",    "\\S",
                                              "[ab]", "[^a]",  "\\p{L}", "\\p{N}", "[^\\s\\p{L}]",
                                              ".",    "\u00e9"};
  static const std::vector<std::string> groups{"(?:", "(?>", "(?=", "(?!", "(?i:", "("};
  static const std::vector<std::string> repeats{"",   "",   "",   "?",   "*",     "+",
                                                "+?", "*+", "++", "{2}", "{1,2}", "{2,}"};
  std::string regex;
  for (std::size_t parts = 1 + draw.below(3); parts > 0; --parts) {
    const bool grouped = depth > 0 && draw.below(4) == 0;
    regex += grouped ? draw.of(groups) + random_regex(draw, depth - 1) + ")" : draw.of(atoms);
    regex += draw.of(repeats);
  }
  return draw.below(3) == 0 ? regex + "|" + random_regex(draw, depth) : regex;
}

std::string random_text(Draw& draw) {
  static const std::vector<std::string> pieces{"a", "b", "A",      " ",     "\n",
                                               "1", ".", "\u00e9", "\u00c9"};
  std::string text;
  for (std::size_t size = 2 + draw.below(14); size > 0; --size) text += draw.of(pieces);
  return text;
}

using Matches = std::vector<std::pair<std::size_t, std::size_t>>;

Matches matches_of(const tokenizer::Pattern& pattern, std::string_view text, std::size_t offset) {
  static tokenizer::MatchMemory memory;
  Matches matches;
  tokenizer::for_each_match(pattern, text, memory, [&](Span match) {
    matches.emplace_back(offset + match.begin, offset + match.end);
  });
  return matches;
}

/// Whether what `border` says of a place is so.
bool holds(const MatchBorder& border, const Matches& matches, std::size_t at) {
  bool ends = false;
  bool begins = false;
  for (const auto& [begin, end] : matches) {
    ends |= end == at;
    begins |= begin == at;
  }
  const auto agrees = [](Chance chance, bool found) {
    return chance == Chance::possible || found == (chance == Chance::certain);
  };
  return agrees(border.ends, ends) && agrees(border.begins, begins);
}

/// The number of places at which the text may be cut; at each, what its parts match is what the
/// whole does.
std::size_t check_borders(const tokenizer::Pattern& pattern, std::string_view text) {
  const Matches whole = matches_of(pattern, text, 0);
  std::size_t borders = 0;
  for (std::size_t at = 1; at < text.size(); ++at) {
    if ((static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80) continue;
    const auto border = pattern.border(last_character(text.substr(0, at)).code,
                                       first_character(text.substr(at)).code);
    if (!border || border->spanned) continue;
    Matches pieces = matches_of(pattern, text.substr(0, at), 0);
    const Matches rest = matches_of(pattern, text.substr(at), at);
    pieces.insert(pieces.end(), rest.begin(), rest.end());
    CAPTURE(text, at);
    REQUIRE(pieces == whole);
    REQUIRE(holds(*border, whole, at));
    ++borders;
  }
  return borders;
}

}  // namespace

TEST_CASE("Pattern: a text that is cut at a border has the matches of the whole", "[tokenizer]") {
  std::size_t borders = 0;
  for (std::uint64_t number = 0; number < 600; ++number) {
    Draw draw(number);
    const std::string regex = random_regex(draw, 2);
    CAPTURE(number, regex);
    try {
      const auto pattern = tokenizer::make_regex(regex, "regex");
      for (int round = 0; round < 8; ++round) borders += check_borders(*pattern, random_text(draw));
    } catch (const Error&) {
      continue;  // {2}+ and the like, and what backtracks without end
    }
  }
  CHECK(borders > 1000);
}

TEST_CASE("Pattern: a border is unknown if context matters", "[tokenizer]") {
  const auto regex = GENERATE(as<std::string>(), "^a", "a$", "(?<=b)a", "(?<!b)a", "a*", "a|b?",
                              "(?:a|b)*", "(?=a)");
  CAPTURE(regex);
  CHECK_FALSE(tokenizer::make_regex(regex, "regex")->border('a', 'b').has_value());
}

TEST_CASE("Pattern: borders of the expression of GPT-2", "[tokenizer]") {
  const auto pattern =
      tokenizer::make_regex(R"('s|'t| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", "GPT-2");
  struct Row {
    char32_t left;
    char32_t right;
    bool spanned;
  };
  const auto row = GENERATE(values<Row>({{'a', 'b', true},
                                         {'a', ' ', false},
                                         {'a', '.', false},
                                         {'a', '1', false},
                                         {' ', 'a', true},
                                         {'\n', 'a', true},
                                         {'\n', ' ', true},
                                         {'\'', 's', true},
                                         {'.', '.', true},
                                         {'.', 'a', false}}));
  CAPTURE(row.left, row.right);
  const auto border = pattern->border(row.left, row.right);
  REQUIRE(border.has_value());
  CHECK(border->spanned == row.spanned);
  CHECK((row.spanned || border->begins == Chance::certain));
}
