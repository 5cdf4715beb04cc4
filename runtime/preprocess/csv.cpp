#include "runtime/preprocess/csv.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace dstrain::preprocess {
namespace {

/// Reads fields from the front of a text.
class FieldReader {
 public:
  FieldReader(std::string_view text, char separator, const std::string& place)
      : text_(text), separator_(separator), place_(place) {}

  std::string next() { return at_ < text_.size() && text_[at_] == '"' ? quoted() : plain(); }
  /// Skips the end of a field. Returns whether another field follows in the record.
  bool next_in_record() {
    if (at_ == text_.size()) return false;
    if (text_[at_] == separator_) return ++at_, true;
    if (text_[at_] == '\r') ++at_;
    if (at_ < text_.size() && text_[at_] == '\n') ++at_;
    return false;
  }
  [[nodiscard]] std::size_t place() const { return at_; }

 private:
  [[nodiscard]] bool ends_field(std::size_t at) const {
    if (at == text_.size() || text_[at] == separator_ || text_[at] == '\n') return true;
    return text_[at] == '\r' && (at + 1 == text_.size() || text_[at + 1] == '\n');
  }
  std::string plain() {
    const std::size_t begin = at_;
    while (!ends_field(at_)) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }
  std::string quoted() {
    std::string field;
    for (++at_;; ++at_) {
      const std::size_t quote = text_.find('"', at_);
      if (quote == std::string_view::npos) {
        fail(ErrorCode::input, "{}: a quoted field does not end", place_);
      }
      field += text_.substr(at_, quote - at_);
      at_ = quote + 1;
      if (at_ == text_.size() || text_[at_] != '"') break;
      field += '"';
    }
    if (!ends_field(at_)) {
      fail(ErrorCode::input, "{}: text follows a quoted field; a quote in one is written twice",
           place_);
    }
    return field;
  }

  std::string_view text_;
  char separator_;
  const std::string& place_;
  std::size_t at_ = 0;
};

}  // namespace

std::size_t whole_records(std::string_view text, char separator) {
  std::size_t whole = 0;
  bool quoted = false;
  bool begins_field = true;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"' && (quoted || begins_field)) quoted = !quoted;
    // The second of two quotes in a field opens it again.
    begins_field = !quoted && (c == separator || c == '\n' || c == '"');
    if (c == '\n' && !quoted) whole = at + 1;
  }
  return whole;
}

CsvRecord parse_csv_record(std::string_view text, char separator, const std::string& place) {
  FieldReader reader(text, separator, place);
  CsvRecord record;
  do {
    record.fields.push_back(reader.next());
  } while (reader.next_in_record());
  record.bytes = reader.place();
  return record;
}

void for_each_csv_text(std::string_view text,
                       const CsvColumn& column,
                       const std::string& path,
                       std::int64_t line,
                       FunctionRef<void(std::string_view text)> take) {
  while (!text.empty()) {
    const std::string place = fmt::format("{}:{}", path, line);
    const CsvRecord record = parse_csv_record(text, column.separator, place);
    const bool is_empty = record.fields.size() == 1 && record.fields.front().empty();
    if (record.fields.size() != column.columns && !is_empty) {
      fail(ErrorCode::input, "{}: {} fields, and the first line names {} columns", place,
           record.fields.size(), column.columns);
    }
    if (!is_empty) take(record.fields[column.index]);
    line += std::ranges::count(text.substr(0, record.bytes), '\n');
    text.remove_prefix(record.bytes);
  }
}

}  // namespace dstrain::preprocess
