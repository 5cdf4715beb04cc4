#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/function_ref.h"
#include "runtime/data/text_encoder.h"
#include "runtime/preprocess/piece_reader.h"

namespace dstrain::preprocess {

/// The tokens of a piece, in order.
struct EncodedPiece {
  std::vector<std::int32_t> ids;
  /// Where documents end: how many of the tokens are before.
  std::vector<std::int64_t> document_ends;
};

/// What each document becomes.
struct DocumentOptions {
  std::string text_column = "text";  ///< of JSON lines: the key
  bool end_of_text = true;           ///< whether documents end with that token, where there is one
};

/// Calls `take` with the text of each document, or part of one, that a piece of `file` holds.
/// Throws Error{input} naming the file and the place.
void for_each_text(const Piece& piece,
                   const InputFile& file,
                   const std::string& text_column,
                   FunctionRef<void(std::string_view text)> take);

/// Each document: what the tokenizer puts before a text, its tokens, and the end-of-text token
/// unless they end with it. Records without a token are no documents. Throws Error{input} naming
/// the file and the place.
EncodedPiece encode_piece(const Piece& piece,
                          const InputFile& file,
                          const data::TextEncoder& encoder,
                          const DocumentOptions& options);

}  // namespace dstrain::preprocess
