#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/function_ref.h"

namespace dstrain::preprocess {

/// The column of CSV or TSV records with the text.
struct CsvColumn {
  char separator = ',';
  std::size_t index = 0;
  std::size_t columns = 1;
};

/// Returns the length of the complete records in `text`, which begins with one. RFC 4180: fields
/// may be in double quotes and then contain line ends; a quote in them is doubled.
std::size_t whole_records(std::string_view text, char separator);

/// The fields of the record at the start of a text, and its length with its line end. Throws
/// Error{input}, which begins with `place`, for a quote that does not end and for text after one.
struct CsvRecord {
  std::vector<std::string> fields;
  std::size_t bytes = 0;
};
CsvRecord parse_csv_record(std::string_view text, char separator, const std::string& place);

/// Calls `take` with the column of each record. Skips empty lines. `line` is the number of the
/// first line, for messages. Throws Error{input}: "path:line: ...", for a record with more or fewer
/// fields than there are columns.
void for_each_csv_text(std::string_view text,
                       const CsvColumn& column,
                       const std::string& path,
                       std::int64_t line,
                       FunctionRef<void(std::string_view text)> take);

}  // namespace dstrain::preprocess
