#pragma once
#include <filesystem>
#include <string>
#include <string_view>

namespace dstrain::data {

/// Throws Error{input} with the way from there when a file is in a format that people have data in
/// and that is read nowhere: Parquet, Arrow, NumPy, archives, xz, bzip2. Its name tells, or how it
/// begins.
void refuse_unread_format(const std::string& path, std::string_view begin);

/// The same, and for what only `dstrain tokenize` reads: CSV, TSV, gzip, zstd.
void refuse_foreign_format(const std::string& path, std::string_view begin);

/// Throws Error{input} naming what a file is that should hold text and does not: UTF-16, a program,
/// weights of a model, anything with a NUL byte. `text` is the whole file or its beginning.
void refuse_binary(const std::string& path, std::string_view text);

/// What to do with a file that is not UTF-8 from byte `invalid` of `text` on, "; it looks like
/// ...": how bytes above 127 stand around that one is evidence of the encoding, and no proof.
std::string encoding_remedy(const std::string& path, std::string_view text, std::size_t invalid);

/// Whether a file holds JSON lines, as its name tells.
bool is_json_name(const std::string& path);

/// Throws Error{input} when a file whose name says text begins with a record, or an array of them:
/// JSON would be learned in place of what it holds.
void refuse_records_as_text(const std::string& path, std::string_view begin);

/// What to say of a text that begins with a JSON object that is no known record; empty: nothing.
std::string note_on_json(const std::string& path, std::string_view begin);

/// Throws Error{input} when what should be JSON lines is one array of all records, or has an object
/// over several lines.
void refuse_json_document(const std::string& path, std::string_view begin);

/// What to give in place of a directory that holds data, "; ..."; empty: it holds none.
std::string directory_remedy(const std::filesystem::path& directory);

}  // namespace dstrain::data
