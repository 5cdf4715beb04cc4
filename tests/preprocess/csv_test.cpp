#include "runtime/preprocess/csv.h"

#include "tests/support/catch.h"
#include "tests/support/error_of.h"

namespace dstrain::preprocess {
namespace {

std::vector<std::string> column_of(const std::string& text, CsvColumn column) {
  std::vector<std::string> texts;
  for_each_csv_text(text, column, "d.csv", 2,
                    [&](std::string_view field) { texts.emplace_back(field); });
  return texts;
}

/// As a writer of RFC 4180 has it.
std::string quote(const std::string& field) {
  std::string quoted = "\"";
  for (const char c : field) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

TEST_CASE("Csv: a column of records is taken", "[preprocess][csv]") {
  using Texts = std::vector<std::string>;
  const auto [text, expected] = GENERATE(table<std::string, Texts>({
      {"1,a\n2,b\n", {"a", "b"}},
      {"1,a\r\n2,b", {"a", "b"}},
      {"1,\"x, y\"\n", {"x, y"}},
      {"1,\"two\nlines\"\n2,b\n", {"two\nlines", "b"}},
      {"1,\"he said \"\"no\"\"\"\n", {"he said \"no\""}},
      {"1,\"\"\n", {""}},
      {"1,\n", {""}},
      {"1,5\" nails\n", {"5\" nails"}},
      {"1,a\n\n\r\n2,b\n", {"a", "b"}},
      {"1,a\rb\n", {"a\rb"}},
  }));
  CAPTURE(text);
  CHECK(column_of(text, {',', 1, 2}) == expected);
}

TEST_CASE("Csv: errors are reported with their line", "[preprocess][csv]") {
  const auto [text, message] = GENERATE(table<std::string, std::string>({
      {"1,a\n2,b,c\n", "d.csv:3: 3 fields, and the first line names 2 columns"},
      {"1,\"a\n", "d.csv:2: a quoted field does not end"},
      {"1,\"two\nlines\"\n2\n", "d.csv:4: 1 fields, and the first line names 2 columns"},
      {"1,\"a\"b\n", "d.csv:2: text follows a quoted field; a quote in one is written twice"},
  }));
  CAPTURE(text);
  CHECK(test::error_of([&] { column_of(text, {',', 1, 2}); }) == message);
}

TEST_CASE("Csv: records are whole wherever a text is cut", "[preprocess][csv]") {
  const std::vector<std::string> fields{"plain", "a,b", "two\nlines", "\"", "\"\"", "x\"y\n", ""};
  std::string text;
  for (std::size_t i = 0; i < 300; ++i) {
    text += std::to_string(i) + "," + quote(fields[i % fields.size()]) + "\n";
  }
  const CsvColumn column{',', 1, 2};
  const std::vector<std::string> expected = column_of(text, column);
  for (std::size_t window = 0; window <= text.size(); ++window) {
    const std::size_t cut = whole_records(std::string_view(text).substr(0, window), ',');
    std::vector<std::string> texts = column_of(text.substr(0, cut), column);
    const std::vector<std::string> rest = column_of(text.substr(cut), column);
    texts.insert(texts.end(), rest.begin(), rest.end());
    CAPTURE(window, cut);
    REQUIRE(texts == expected);
  }
}

}  // namespace dstrain::preprocess
