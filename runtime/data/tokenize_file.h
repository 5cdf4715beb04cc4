#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "runtime/data/record_kind.h"
#include "runtime/data/text_encoder.h"

namespace dstrain::data {

/// A text file in memory.
struct TextFile {
  std::string path;  ///< for messages
  std::span<const std::byte> bytes;
};

/// Writes the tokens of records, in JSON lines or one JSON document, to a token set at `target`;
/// all compute threads encode records, each of which has one of them parsed at a time. Skips empty
/// lines and a byte-order mark. The encoder decides `options.has_chat_template`. Throws
/// Error{input}: "file:line:column: ...", "file:line: ...", and the reason.
void tokenize_records(const TextFile& file,
                      const TextEncoder& encoder,
                      RecordOptions options,
                      const std::filesystem::path& target);

/// Writes the tokens of UTF-8 text to a token set of one record. Encodes two pieces of about a
/// megabyte for each compute thread at once, which takes about ten times their size in memory.
/// Pieces are cut where that changes no token. Throws Error{input} if a gigabyte has no such place,
/// as with SentencePiece's tokenizer.model, or if the text is not UTF-8.
void tokenize_text(const TextFile& file,
                   const TextEncoder& encoder,
                   const std::filesystem::path& target);

}  // namespace dstrain::data
