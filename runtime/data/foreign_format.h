#pragma once
#include <string>
#include <string_view>

namespace dstrain::data {

/// Throws Error{input} with the way from there when a file is in a format that people have data in
/// and that is read nowhere: Parquet, Arrow, NumPy, xz, bzip2. Its name tells, or how it begins.
void refuse_unread_format(const std::string& path, std::string_view begin);

/// The same, and for what only `dstrain tokenize` reads: CSV, TSV, gzip, zstd.
void refuse_foreign_format(const std::string& path, std::string_view begin);

/// Throws Error{input} when what should be JSON lines is one array of all records, or has an object
/// over several lines.
void refuse_json_document(const std::string& path, std::string_view begin);

}  // namespace dstrain::data
