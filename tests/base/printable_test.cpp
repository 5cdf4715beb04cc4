#include "runtime/base/printable.h"

#include <algorithm>
#include <random>

#include "runtime/base/shell_word.h"
#include "runtime/base/utf8.h"
#include "tests/support/catch.h"

using namespace dstrain;

TEST_CASE("printable: characters that move the cursor or forge a line are escaped",
          "[base][printable]") {
  struct Row {
    std::string text;
    std::string shown;
  };
  using std::string_literals::operator""s;
  const auto row = GENERATE_COPY(values<Row>({
      {"", ""},
      {"größer 木 é\\n", "größer 木 é\\n"},
      {"a\nb\r\tc", "a\\nb\\r\\tc"},
      {"\x1b[2J\x7f", "\\x1b[2J\\x7f"},
      {"a\0b"s, "a\\x00b"},
      {"\xc2\x9b", "\\u009b"},
      {"\xe2\x80\xae", "\\u202e"},
      {"\xe2\x80\xa8\xe2\x81\xa6", "\\u2028\\u2066"},
      {"a\xff\xe6\x9c", "a\\xff\\xe6\\x9c"},
      {"\xef\xbf\xbd", "\xef\xbf\xbd"},
  }));
  CHECK(printable(row.text) == row.shown);
}

TEST_CASE("printable: a long text is cut to its beginning", "[base][printable]") {
  CHECK(printable(std::string(200, 'a')) == std::string(200, 'a'));
  CHECK(printable(std::string(1 << 20, 'a')) == std::string(200, 'a') + "... (1048576 bytes)");
  CHECK(printable("ääää", 5) == "ää... (8 bytes)");  // whole characters
  CHECK(printable("a\x1b", 4) == "a... (2 bytes)");  // and whole escapes
}

TEST_CASE("printable_list: only the line break before a command is kept", "[base][printable]") {
  const std::vector<std::string> problems{"a\n  b", "c: d\ne" + command_below("f\n  g"), "h"};
  CHECK(printable_list(problems) == "a\\n  b\nc: d\\ne:\n  f\\n  g\nh");
}

TEST_CASE("printable_message: keeps lines and is idempotent", "[base][printable]") {
  CHECK(printable_message("one\ntwo\x1b\n") == "one\ntwo\\x1b\n");
  CHECK(printable_message(std::string(1 << 20, 'a')).size() < 10'000);
  std::string many;
  while (many.size() < 4'000'000) many += std::string(1000, 'a') + "\n";
  CHECK(printable_message(many).size() < 300'000);
  const unsigned seed = 20'261'126;
  std::mt19937 random(seed);
  for (int round = 0; round < 300; ++round) {
    CAPTURE(seed, round);
    std::string text(random() % 40'000, '\0');
    for (char& c : text) c = static_cast<char>(round % 2 == 0 ? random() : 'a' + random() % 26);
    if (round % 3 == 0) std::ranges::replace(text, 'a', '\n');
    const std::string once = printable_message(text);
    REQUIRE_FALSE(find_invalid_utf8(once));
    REQUIRE(std::ranges::none_of(once, [](char c) { return c != '\n' && c >= 0 && c < ' '; }));
    REQUIRE(printable_message(once) == once);
  }
}
