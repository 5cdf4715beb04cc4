#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace dstrain::preprocess {

/// How documents lie in a file.
enum class Layout {
  text,        ///< the whole file is one
  json_lines,  ///< a field of each line
  csv,         ///< a column of each record (RFC 4180), the first of which names the columns
  tsv,         ///< the same with tabs
};

enum class Compression { none, gzip, zstd };

/// A file of text. Its name tells what it is: NAME.csv.gz.
struct InputFile {
  std::string path;
  Layout layout = Layout::text;
  Compression compression = Compression::none;
  std::int64_t bytes = 0;        ///< on the disk
  std::int64_t modified_ns = 0;  ///< when it was last changed, since 1970
};

struct Inputs {
  std::vector<InputFile> files;
  std::vector<std::string> notes;  ///< what of directories was left out, a line each
};

/// The files that arguments mean, in their order: a file; a directory, of which all files beneath
/// are taken whose name is that of a text, in the order of their paths; or a pattern of the shell's
/// that the shell left alone, "data/*.jsonl". Of a directory are left out, and noted: files of
/// other names, hidden ones, what is no file, links to directories, and directories of token shards
/// or tokenizers. Throws Error{input} for what is missing, for formats that are not read, with the
/// way from there, and for a file that is named twice.
Inputs find_inputs(std::span<const std::string> arguments);

/// Throws Error{input} when a file is not as find_inputs saw it.
void refuse_changed(const InputFile& file);

}  // namespace dstrain::preprocess
