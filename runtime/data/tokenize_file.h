#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "runtime/data/text_encoder.h"

namespace dstrain::data {

/// A file of text, as it lies in memory.
struct TextFile {
  std::string path;  ///< for messages
  std::span<const std::byte> bytes;
};

/// Writes the tokens of JSON lines to a token set at `target`, records encoded on all compute
/// threads. Empty lines are skipped, and a byte-order mark. Throws Error{input}: "file:line:column:
/// ...", "file:line: ...", and what is wrong.
void tokenize_json_lines(const TextFile& file,
                         const TextEncoder& encoder,
                         const std::filesystem::path& target);

/// Writes the tokens of UTF-8 text to a token set of one record. Pieces of about a megabyte, two
/// for each compute thread, are encoded at once, which takes some ten times their size in memory;
/// they are cut where that changes no token. Where a gigabyte has no such place, and in texts for
/// SentencePiece's tokenizer.model, Error{input} is thrown, as for what is no UTF-8.
void tokenize_text(const TextFile& file,
                   const TextEncoder& encoder,
                   const std::filesystem::path& target);

}  // namespace dstrain::data
