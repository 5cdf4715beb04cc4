#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/function_ref.h"
#include "runtime/data/text_encoder.h"
#include "runtime/preprocess/input_reader.h"

namespace dstrain::preprocess {

/// The tokens of the documents in a piece, in order.
struct EncodedDocuments {
  std::vector<std::int32_t> ids;
  /// The ends of documents: the number of tokens before each.
  std::vector<std::int64_t> document_ends;
};

/// Options for encoding documents.
struct DocumentOptions {
  std::string text_column = "text";  ///< for JSON lines: the key
  bool end_of_text = true;           ///< end documents with that token, if there is one
};

/// Calls `take` with the text of each document, or part of one, in a piece of `file`. Throws
/// Error{input} naming the file and the place.
void for_each_text(const InputPiece& piece,
                   const InputFile& file,
                   const std::string& text_column,
                   FunctionRef<void(std::string_view text)> take);

/// Encodes each document: the tokens that the tokenizer puts before a text, its own tokens, and the
/// end-of-text token unless they end with it. Records without tokens are skipped. Throws
/// Error{input} naming the file and the place.
EncodedDocuments encode_piece(const InputPiece& piece,
                              const InputFile& file,
                              const data::TextEncoder& encoder,
                              const DocumentOptions& options);

}  // namespace dstrain::preprocess
