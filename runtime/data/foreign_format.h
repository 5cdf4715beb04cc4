#pragma once
#include <filesystem>
#include <string>
#include <string_view>

namespace dstrain::data {

/// Throws Error{input} with a conversion command for a file in a common data format that no command
/// reads: Parquet, Arrow, NumPy, archives, xz, bzip2. Decides by its name or its beginning.
void refuse_unread_format(const std::string& path, std::string_view begin);

/// The same, and for formats that only `dstrain tokenize` reads: CSV, TSV, gzip, zstd.
void refuse_foreign_format(const std::string& path, std::string_view begin);

/// Throws Error{input} naming the kind of a file that should hold text but does not: UTF-16, a
/// program, weights of a model, anything with a NUL byte. `text` is the whole file or its
/// beginning.
void refuse_binary(const std::string& path, std::string_view text);

/// Returns a remedy for a file that is not UTF-8 from byte `invalid` of `text` on, "; it looks like
/// ...". The bytes above 127 around that one are evidence of the encoding, not proof.
std::string encoding_remedy(const std::string& path, std::string_view text, std::size_t invalid);

/// Whether a file holds JSON lines, by its name.
bool is_json_name(const std::string& path);

/// Throws Error{input} if a file that is text by its name begins with a record, or an array of
/// them: training would learn JSON instead of its contents.
void refuse_records_as_text(const std::string& path, std::string_view begin);

/// Returns a note for a text that begins with a JSON object that is not a known record; empty:
/// none.
std::string note_on_json(const std::string& path, std::string_view begin);

/// Returns the arguments to use instead of a directory with data, "; ..."; empty: it has none.
std::string directory_remedy(const std::filesystem::path& directory);

}  // namespace dstrain::data
