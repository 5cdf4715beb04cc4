#include "runtime/base/utf8.h"

#include <string>

#include "tests/support/catch.h"

using namespace dstrain;

TEST_CASE("Utf8: an incomplete character at the end is counted", "[base][utf8]") {
  struct Row {
    std::string text;
    std::size_t size;
  };
  const Row row = GENERATE(values<Row>({{"", 0},
                                        {"a", 0},
                                        {"\xE2\x82\xAC", 0},
                                        {"a\xE2\x82", 2},
                                        {"a\xE2", 1},
                                        {"\xF0\x9F\x91", 3},
                                        {"\xF0\x9F\x91\x8D", 0},
                                        {"\xC3", 1},
                                        {"\x82", 0},
                                        {"\xE2\xE2", 1},
                                        // No more bytes make them valid.
                                        {"\xFF", 0},
                                        {"\xC0", 0},
                                        {"\xED\xA0", 0},
                                        {"\xF4\x90\x80", 0},
                                        {"\x82\x82\x82\x82", 0}}));
  CAPTURE(row.text);
  CHECK(incomplete_size(row.text) == row.size);
}

TEST_CASE("Utf8: valid text is accepted", "[base][utf8][utf8]") {
  for (const char* const text :
       {"", "plain", "\x7F", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
        "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF", "seven b\xC3\xA9 eight bytes on"}) {
    CAPTURE(text);
    CHECK_FALSE(find_invalid_utf8(text).has_value());
  }
}

TEST_CASE("Utf8: invalid text is found with its position", "[base][utf8][utf8]") {
  for (const char* const bad :
       {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xC2", "\xC2 ", "\xE0\x9F\xBF", "\xE2\x82",
        "\xE2\x28\xA1", "\xED\xA0\x80", "\xED\xBF\xBF", "\xF0\x8F\xBF\xBF", "\xF0\x9F\x98",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFE", "\xFF"}) {
    for (std::size_t before = 0; before < 17; ++before) {
      CAPTURE(bad, before);
      CHECK(find_invalid_utf8(std::string(before, 'x') + bad) == before);
      CHECK(find_invalid_utf8(std::string(before, 'x') + bad + "trailing text") == before);
    }
  }
}
