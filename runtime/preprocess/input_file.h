#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace dstrain::preprocess {

/// The layout of documents in a file.
enum class Layout {
  text,        ///< the whole file is one document
  json_lines,  ///< a field of each line
  csv,         ///< a column of each record (RFC 4180); the first record names the columns
  tsv,         ///< the same with tabs
};

enum class Compression { none, gzip, zstd };

/// A file of text. Its name determines its format: NAME.csv.gz.
struct InputFile {
  std::string path;
  Layout layout = Layout::text;
  Compression compression = Compression::none;
  std::int64_t bytes = 0;        ///< on disk
  std::int64_t modified_ns = 0;  ///< time of the last change, since 1970
};

struct Inputs {
  std::vector<InputFile> files;
  std::vector<std::string> notes;  ///< parts of directories that were left out, one per line
};

/// Returns the files that the arguments name, in order. An argument is a file; a directory, for all
/// text files in it and its subdirectories, ordered by path; or a shell pattern that the shell did
/// not expand, "data/*.jsonl". In a directory these are left out, and noted: files of other names,
/// hidden ones, entries that are not files, links to directories, and directories of token shards
/// or tokenizers. Throws Error{input} for missing files, for unsupported formats, with a conversion
/// command, and for a file that is named twice.
Inputs find_inputs(std::span<const std::string> arguments);

/// Throws Error{input} if a file has changed since find_inputs().
void refuse_changed(const InputFile& file);

}  // namespace dstrain::preprocess
