#include "runtime/base/units.h"

#include <limits>
#include <string>
#include <tuple>

#include "tests/support/catch.h"

namespace dstrain {

TEST_CASE("Units: sizes are parsed", "[base][units]") {
  const auto [text, bytes] = GENERATE(table<const char*, Bytes>({{"0", 0},
                                                                 {"1536", 1536},
                                                                 {"7b", 7},
                                                                 {"1k", 1024},
                                                                 {"1kB", 1000},
                                                                 {"1KiB", 1024},
                                                                 {"3m", 3 * mebibyte},
                                                                 {"512MiB", 512 * mebibyte},
                                                                 {"512mb", 512'000'000},
                                                                 {"2G", 2 * gibibyte},
                                                                 {"2GiB", 2 * gibibyte},
                                                                 {"1.5GB", 1'500'000'000},
                                                                 {"0.5GiB", gibibyte / 2},
                                                                 {"1e3", 1000},
                                                                 {"1T", 1024 * gibibyte},
                                                                 {"2tb", 2'000'000'000'000}}));
  CAPTURE(text);
  const Result<Bytes> parsed = parse_bytes(text);
  REQUIRE(parsed.ok());
  CHECK(parsed.value() == bytes);
}

TEST_CASE("Units: an invalid size is refused with an example", "[base][units]") {
  const std::string text = GENERATE("", "GiB", "-1", "-1GiB", "2 apples", "2XiB", "0x10", "1,5GB",
                                    "nan", "inf", "1e400", "9223372036854775807TiB", " 5", "5GiB ");
  CAPTURE(text);
  const Result<Bytes> parsed = parse_bytes(text);
  REQUIRE_FALSE(parsed.ok());
  CHECK(parsed.error() == "\"" + text + "\" is not a size; write for example 512MiB or 2GiB");
}

TEST_CASE("Units: sizes are printed with three digits", "[base][units]") {
  const auto [bytes, text] =
      GENERATE(table<Bytes, const char*>({{0, "0 B"},
                                          {1023, "1023 B"},
                                          {1024, "1.00 KiB"},
                                          {1536, "1.50 KiB"},
                                          {10 * kibibyte - 1, "10.0 KiB"},
                                          {100 * kibibyte - 1, "100 KiB"},
                                          {mebibyte - 1, "1.00 MiB"},
                                          {512 * mebibyte, "512 MiB"},
                                          {-500 * mebibyte, "-500 MiB"},
                                          {2048 * gibibyte, "2.00 TiB"},
                                          {5000 * 1024 * gibibyte, "5000 TiB"}}));
  CHECK(format_bytes(bytes) == text);
}

TEST_CASE("Units: durations are short", "[base][units]") {
  const auto [seconds, text] = GENERATE(table<double, const char*>({{-3.0, "0s"},
                                                                    {0.4, "0s"},
                                                                    {59.4, "59s"},
                                                                    {59.6, "1m00s"},
                                                                    {93.0, "1m33s"},
                                                                    {3600.0, "1h00m"},
                                                                    {90061.0, "25h01m"}}));
  CHECK(format_duration(seconds) == text);
}

TEST_CASE("Units: a duration without an end is still printed", "[base][units]") {
  CHECK_FALSE(format_duration(std::numeric_limits<double>::infinity()).empty());
  CHECK(format_duration(std::numeric_limits<double>::quiet_NaN()) == "?");
}

TEST_CASE("Units: a count has its noun in singular or plural", "[base][units]") {
  CHECK(counted(0, "rank") == "0 ranks");
  CHECK(counted(1, "rank") == "1 rank");
  CHECK(counted(2, "other host") == "2 other hosts");
}

TEST_CASE("Units: round_up gives the next multiple", "[base][units]") {
  const auto [value, alignment, rounded] = GENERATE(table<std::int64_t, std::int64_t, std::int64_t>(
      {{0, 64, 0}, {1, 64, 64}, {64, 64, 64}, {65, 64, 128}, {7, 1, 7}, {7, 3, 9}}));
  CHECK(round_up(value, alignment) == rounded);
}

}  // namespace dstrain
