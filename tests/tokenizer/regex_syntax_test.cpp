#include "runtime/tokenizer/regex_syntax.h"

#include <string>

#include "tests/support/catch.h"
#include "tests/support/error_of.h"

using namespace dstrain;

TEST_CASE("Regex syntax: what Oniguruma reads otherwise is spelled out", "[tokenizer]") {
  const auto rewritten = [](const std::string& pattern) {
    return tokenizer::pcre2_pattern(pattern, "x");
  };
  CHECK(rewritten("'s| ?\\p{L}+(?!a)") == "'s| ?\\p{L}+(?!a)");
  CHECK(rewritten("(?i:'s|'t)\\p{^Lu}\\P{^N}") == "(?i:'s|'t)\\P{Lu}\\p{N}");
  CHECK(rewritten("^a$") == "(?m:^)a(?m:$)");
  CHECK(rewritten("[^$\\d\\n]") == "[^$\\p{Nd}\\n]");
  CHECK(rewritten("\\u4e00\\x41\\x{1F600}") == "\\x{4e00}\\x{41}\\x{1F600}");
  CHECK(rewritten("[\\w]") == "[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}]");
  CHECK(rewritten("\\w") == rewritten("[\\w\\xB2\\xB3\\xB9\\xBC-\\xBE]"));
  CHECK(rewritten("[\\s]").starts_with("[\\x{9}-\\x{D}"));
}

TEST_CASE("Regex syntax: what is not supported is refused by name", "[tokenizer]") {
  struct Row {
    const char* pattern;
    const char* what;
  };
  const auto row = GENERATE(values<Row>({
      {"[a&&b]", "&&"},
      {"[a[b]]", "a [ within [ ]"},
      {"[a", "a [ without ]"},
      {"\\p{Han}", "the property Han"},
      {"\\pL", "\\p without {}"},
      {"(?<n>a)", "(?<n"},
      {"\\1", "\\1"},
      {"\\bword", "\\b"},
      {"a{1,2}+", "{n,m}+"},
      {"\\x{}", "a \\x or \\u without hexadecimal digits"},
      {"a\\", "a lone \\ or [ at its end"},
  }));
  CHECK(test::error_of([&] { tokenizer::pcre2_pattern(row.pattern, "x"); }) ==
        "x: the regular expression has " + std::string(row.what) + ", which is not supported");
}
