#include "launcher/process/line_splitter.h"

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/catch.h"

using namespace dstrain::launcher;
using Lines = std::vector<std::string>;

namespace {

Lines split(std::string_view text, std::size_t step) {
  LineSplitter splitter;
  Lines lines;
  const auto add = [&](std::string_view line) {
    lines.emplace_back(line);
  };
  for (std::size_t at = 0; at < text.size(); at += step) splitter.feed(text.substr(at, step), add);
  splitter.finish(add);
  return lines;
}

}  // namespace

TEST_CASE("LineSplitter: line ends", "[launcher]") {
  struct Row {
    const char* text;   ///< ~ stands for a zero byte
    const char* lines;  ///< each followed by |
  };
  const auto row = GENERATE(values<Row>({
      {"", ""},
      {"a\nb\n", "a|b|"},
      {"a\nb", "a|b|"},
      {"\n\na\n", "||a|"},
      {"a\r\nb\r\n", "a|b|"},
      {"\r\n\r\n", "||"},
      {"\r10%\r20%\r", "10%|20%|"},
      {"10%\r20%\n", "10%|20%|"},
      {"100%\r\n\n", "100%||"},
      {"a\r\r\nb", "a|b|"},
      {"a~b\n", "a~b|"},
      {"h\xc3\xa9llo \xe2\x82\xac\n", "h\xc3\xa9llo \xe2\x82\xac|"},
  }));
  std::string text = row.text;
  std::replace(text.begin(), text.end(), '~', '\0');
  const auto step = GENERATE(std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{100});
  CAPTURE(row.text, step);
  std::string joined;
  for (const std::string& line : split(text, step)) joined += line + "|";
  std::replace(joined.begin(), joined.end(), '\0', '~');
  CHECK(joined == row.lines);
}

TEST_CASE("LineSplitter: long lines come in whole characters", "[launcher]") {
  std::string text = "x";
  for (int i = 0; i < 100'000; ++i) text += "\xe2\x82\xac";
  const auto step = GENERATE(std::size_t{1000}, std::size_t{65536}, std::size_t{1} << 20);
  const auto ending = GENERATE("", "\n");
  std::string joined;
  for (const std::string& piece : split(text + ending, step)) {
    CHECK(piece.size() <= LineSplitter::piece_bytes_max);
    CHECK(piece.size() > LineSplitter::piece_bytes_max / 2 - 1000 * (piece.size() < 50'000));
    CHECK((static_cast<unsigned char>(piece.front()) & 0xC0U) != 0x80U);
    joined += piece;
  }
  CHECK(joined == text);
}

TEST_CASE("LineSplitter: bytes that are no text are kept", "[launcher]") {
  const std::string text(200'000, '\x80');
  std::string joined;
  for (const std::string& piece : split(text, 4096)) joined += piece;
  CHECK(joined == text);
}
