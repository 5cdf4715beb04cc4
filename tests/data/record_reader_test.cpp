#include "runtime/data/record_reader.h"

#include <fmt/format.h>

#include "tests/support/catch.h"
#include "tests/support/error_of.h"

namespace dstrain::test {
namespace {

using data::RecordFraming;
using data::RecordReader;

/// Each record with the line and column of its first byte.
std::string shown(RecordReader reader) {
  std::string text;
  for (auto record = reader.next(); record; record = reader.next()) {
    text += fmt::format("{}:{} {}|", record->line, record->column, record->text);
  }
  return text;
}

std::string records(std::string_view text) {
  return shown(RecordReader(text, "d.json"));
}

/// The same, read in pieces of `bytes` or more.
std::string in_pieces(std::string_view text, std::size_t bytes) {
  const RecordFraming framing = data::framing_of(text);
  RecordReader::Piece piece{.framing = framing};
  const auto pass = [&](std::size_t size) {
    for (const char c : text.substr(0, size)) {
      ++piece.column;
      if (c != '\n') continue;
      ++piece.line;
      piece.column = 1;
    }
    text.remove_prefix(size);
  };
  pass(data::head_bytes(text, framing));
  std::string found;
  for (bool ends = false; !ends; piece.begins = false) {
    std::size_t cut = 0;
    for (std::size_t size = bytes; cut == 0 && size < text.size(); ++size) {
      cut = data::cut_records(text.substr(0, size), framing, piece.begins);
    }
    ends = cut == 0;
    piece.text = ends ? text : text.substr(0, cut);
    piece.ends_file = ends;
    found += shown(RecordReader(piece, "d.json"));
    pass(piece.text.size());
  }
  return found;
}

}  // namespace

TEST_CASE("RecordReader: lines values and arrays give the same records", "[data][json]") {
  struct Row {
    std::string text;
    RecordFraming framing;
    std::string records;
  };
  const Row row = GENERATE(values<Row>({
      {"{\"a\": 1}\n\n{\"b\": \"}\"}\n", RecordFraming::lines,
       "1:1 {\"a\": 1}|3:1 {\"b\": \"}\"}|"},
      {"{\"a\": 1}\r\n7", RecordFraming::lines, "1:1 {\"a\": 1}\r|2:1 7|"},
      {"{\n\"a\": [{}]}\n  {\"b\":\n\"\\\"{\"}", RecordFraming::values,
       "1:1 {\n\"a\": [{}]}|3:3 {\"b\":\n\"\\\"{\"}|"},
      {"{\"a\": 1} {\"b\": 2}{\"c\": 3}", RecordFraming::values,
       "1:1 {\"a\": 1}|1:10 {\"b\": 2}|1:18 {\"c\": 3}|"},
      {"[{\"a\": 1}, {\"b\": [\"]\"]} ]", RecordFraming::array,
       "1:2 {\"a\": 1}|1:12 {\"b\": [\"]\"]}|"},
      {"\n [\n  {\"a\": 1},\n  {\"b\":\n 2}\n]\n", RecordFraming::array,
       "3:3 {\"a\": 1}|4:3 {\"b\":\n 2}|"},
      {"[]", RecordFraming::array, ""},
      {"", RecordFraming::lines, ""},
      {"[7, \"x\", null]", RecordFraming::array, "1:2 7|1:5 \"x\"|1:10 null|"},
      {"{\"a\": 1", RecordFraming::lines, "1:1 {\"a\": 1|"},
      // The parser reports the line end within the text.
      {"{\"a\": \"x\n{\"b\": 1}\n", RecordFraming::lines, "1:1 {\"a\": \"x|2:1 {\"b\": 1}|"},
  }));
  CAPTURE(row.text);
  CHECK(data::framing_of(row.text) == row.framing);
  CHECK(records(row.text) == row.records);
  CHECK(records("\xEF\xBB\xBF" + row.text) == row.records);
  for (const auto bytes : std::vector<std::size_t>{1, 2, 5, 9, 100}) {
    CAPTURE(bytes);
    CHECK(in_pieces(row.text, bytes) == row.records);
  }
}

TEST_CASE("RecordReader: text between the records of an array is named with its place",
          "[data][json]") {
  struct Row {
    std::string text;
    std::string message;
  };
  const Row row = GENERATE(values<Row>({
      {"[{}", "d.json:1:4: the array of records has no end; is the file complete?"},
      {"[{},", "d.json:1:5: no record follows the comma"},
      {"[{}\n,\n]", "d.json:3:1: no record follows the comma"},
      {"[{}\n {}]", "d.json:2:2: a comma is missing between two records of the array"},
      {"[{}]\n {}", "d.json:2:2: text follows the array of records"},
  }));
  CAPTURE(row.text);
  CHECK(error_of([&] { records(row.text); }) == row.message);
  CHECK(error_of([&] { in_pieces(row.text, 1); }) == row.message);
}

}  // namespace dstrain::test
