#include "runtime/base/utf8.h"

#include <string>

#include "tests/support/catch.h"

using namespace dstrain;

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
