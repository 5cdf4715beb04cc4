#include "runtime/data/record_reader.h"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/base/error.h"
#include "runtime/base/utf8.h"

namespace dstrain::data {
namespace {

constexpr std::string_view blanks = " \t\r\n";

std::size_t blanks_before(std::string_view text) {
  return std::min(text.find_first_not_of(blanks), text.size());
}

struct ValueEnd {
  std::size_t size = 0;
  bool whole = true;    ///< false: the text ends within the value
  bool on_line = true;  ///< no line ends within the value
};

/// Finds the end of the value that `text` begins with. A line end within a string is an error of
/// JSON, at which the value ends, so that the parser reports it there.
ValueEnd find_end(std::string_view text) {
  if (!text.starts_with('{') && !text.starts_with('[')) {
    const std::size_t size = text.find_first_of(",]\n");
    return {std::min(size, text.size()), size != std::string_view::npos};
  }
  ValueEnd end;
  int depth = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\n') {
      if (in_string) return {at, true, end.on_line};
      end.on_line = false;
    } else if (in_string) {
      if (c == '\\' && at + 1 < text.size() && text[at + 1] != '\n') ++at;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      end.size = at + 1;
      return end;
    }
  }
  return {text.size(), false, end.on_line};
}

std::size_t mark_bytes(std::string_view begin) {
  return begin.starts_with(byte_order_mark) ? byte_order_mark.size() : 0;
}

}  // namespace

RecordFraming framing_of(std::string_view begin) {
  begin.remove_prefix(mark_bytes(begin));
  begin.remove_prefix(blanks_before(begin));
  if (begin.starts_with('[')) return RecordFraming::array;
  if (!begin.starts_with('{')) return RecordFraming::lines;
  const ValueEnd end = find_end(begin);
  const std::string_view behind = begin.substr(end.size);
  const std::string_view line = behind.substr(0, behind.find('\n'));
  // A comma behind a record is for the parser to refuse.
  const bool another = line.substr(blanks_before(line)).starts_with('{');
  return end.on_line && !another ? RecordFraming::lines : RecordFraming::values;
}

std::size_t head_bytes(std::string_view begin, RecordFraming framing) {
  const std::size_t mark = mark_bytes(begin);
  if (framing != RecordFraming::array) return mark;
  return mark + blanks_before(begin.substr(mark)) + 1;
}

std::string place_of(const RawRecord& record, const std::string& path) {
  return fmt::format("{}:{}", path, record.line);
}

RecordReader::RecordReader(std::string_view text, std::string path)
    : RecordReader(Piece{text, framing_of(text)}, std::move(path)) {
  const std::size_t mark = mark_bytes(text);
  pass(head_bytes(text, framing_));
  column_ -= line_ == 1 ? static_cast<std::int64_t>(mark) : 0;
}

RecordReader::RecordReader(const Piece& piece, std::string path)
    : path_(std::move(path)),
      framing_(piece.framing),
      rest_(piece.text),
      line_(piece.line),
      column_(piece.column),
      first_(piece.begins),
      ends_file_(piece.ends_file) {}

void RecordReader::pass(std::size_t bytes) {
  const std::string_view passed = rest_.substr(0, bytes);
  const std::size_t newline = passed.rfind('\n');
  if (newline == std::string_view::npos) {
    column_ += std::ssize(passed);
  } else {
    line_ += std::ranges::count(passed, '\n');
    column_ = std::ssize(passed) - static_cast<std::int64_t>(newline);
  }
  rest_.remove_prefix(passed.size());
}

void RecordReader::pass_blanks() {
  pass(blanks_before(rest_));
}

std::optional<RawRecord> RecordReader::take(std::size_t bytes) {
  const RawRecord record{rest_.substr(0, bytes), line_, column_};
  pass(bytes);
  return record;
}

void RecordReader::refuse(std::string_view why) const {
  fail(ErrorCode::input, "{}:{}:{}: {}", path_, line_, column_, why);
}

std::optional<RawRecord> RecordReader::next_line() {
  while (!rest_.empty()) {
    const std::size_t size = std::min(rest_.find('\n'), rest_.size());
    const bool blank = blanks_before(rest_.substr(0, size)) == size;
    std::optional<RawRecord> record = take(size);
    pass(1);
    if (!blank) return record;
  }
  return std::nullopt;
}

/// Passes what stands before an element of the array; false: there is none.
bool RecordReader::enter_element() {
  pass_blanks();
  if (closed_ && !rest_.empty()) refuse("text follows the array of records");
  if (rest_.empty()) {
    if (ends_file_ && !closed_) refuse("the array of records has no end; is the file complete?");
    return false;
  }
  if (rest_.front() == ']') {
    closed_ = true;
    pass(1);
    return enter_element();
  }
  if (!first_) {
    if (rest_.front() != ',') refuse("a comma is missing between two records of the array");
    pass(1);
    pass_blanks();
    if (rest_.empty() || rest_.front() == ']') refuse("no record follows the comma");
  }
  first_ = false;
  return true;
}

std::optional<RawRecord> RecordReader::next() {
  if (framing_ == RecordFraming::lines) return next_line();
  if (framing_ == RecordFraming::array) {
    if (!enter_element()) return std::nullopt;
  } else {
    pass_blanks();
    if (rest_.empty()) return std::nullopt;
  }
  // A record has at least the byte that no value begins with.
  return take(std::max(find_end(rest_).size, std::size_t{1}));
}

std::vector<RawRecord> RecordReader::next_batch() {
  constexpr std::size_t bytes_max = std::size_t{4} << 20;
  std::vector<RawRecord> records;
  for (std::size_t bytes = 0; bytes < bytes_max; bytes += records.back().text.size()) {
    const std::optional<RawRecord> record = next();
    if (!record) break;
    records.push_back(*record);
  }
  return records;
}

std::size_t cut_records(std::string_view text, RecordFraming framing, bool first) {
  if (framing == RecordFraming::lines) return text.rfind('\n') + 1;
  std::size_t cut = 0;
  for (std::size_t at = 0; at < text.size();) {
    at += blanks_before(text.substr(at));
    if (framing == RecordFraming::array && !first && text.substr(at).starts_with(',')) ++at;
    at += blanks_before(text.substr(at));
    // The end of the array stays with what follows it.
    if (framing == RecordFraming::array && text.substr(at).starts_with(']')) break;
    const ValueEnd end = find_end(text.substr(at));
    if (at == text.size() || !end.whole) break;
    at += std::max(end.size, std::size_t{1});
    cut = at;
    first = false;
  }
  return cut;
}

}  // namespace dstrain::data
