#include "runtime/preprocess/encode_piece.h"

#include <fmt/format.h>

#include "runtime/data/json_record.h"
#include "runtime/data/tokenizer.h"

namespace dstrain::preprocess {
namespace {

using Ids = std::vector<std::int32_t>;

void append(Ids& ids, const Ids& more) {
  ids.insert(ids.end(), more.begin(), more.end());
}

/// Appends the tokens of a whole document; encodes a long one piece by piece, which takes less
/// memory.
void append_tokens(Ids& ids, std::string_view text, const data::TextEncoder& encoder) {
  const std::string_view first = data::first_piece(encoder, text);
  append(ids, encoder.encode(first));
  text.remove_prefix(first.size());
  while (!text.empty()) {
    const std::string_view piece = data::first_piece(encoder, text);
    append(ids, encoder.encode_following(piece));
    text.remove_prefix(piece.size());
  }
}

void for_each_json_text(const InputPiece& piece,
                        const InputFile& file,
                        const std::string& key,
                        FunctionRef<void(std::string_view text)> take) {
  data::RecordReader reader({.text = piece.bytes,
                             .framing = piece.framing,
                             .line = piece.position.line,
                             .column = piece.position.column,
                             .begins = piece.begins_records,
                             .ends_file = piece.ends_file},
                            file.path);
  for (auto record = reader.next(); record; record = reader.next()) {
    take(data::parse_text(*record, key, file.path));
  }
}

void check_text(std::string_view text, const std::string& path, std::int64_t before) {
  data::check_utf8(std::as_bytes(std::span(text)), path, before);
}

/// A text is in one piece or several.
EncodedDocuments encode_text(const InputPiece& piece,
                             const data::TextEncoder& encoder,
                             const std::optional<std::int32_t>& end) {
  EncodedDocuments encoded;
  if (piece.position.offset == 0) {
    encoded.ids = encoder.beginning();
    append(encoded.ids, encoder.encode(piece.bytes));
  } else {
    encoded.ids = encoder.encode_following(piece.bytes);
  }
  if (!piece.ends_file) return encoded;
  if (end && (encoded.ids.empty() || encoded.ids.back() != *end)) encoded.ids.push_back(*end);
  encoded.document_ends = {std::ssize(encoded.ids)};
  return encoded;
}

}  // namespace

void for_each_text(const InputPiece& piece,
                   const InputFile& file,
                   const std::string& text_column,
                   FunctionRef<void(std::string_view text)> take) {
  if (file.layout == Layout::json_lines) {
    for_each_json_text(piece, file, text_column, take);
    return;
  }
  check_text(piece.bytes, file.path, piece.position.offset);
  if (file.layout == Layout::text) return take(piece.bytes);
  for_each_csv_text(piece.bytes, piece.column, file.path, piece.position.line, take);
}

EncodedDocuments encode_piece(const InputPiece& piece,
                              const InputFile& file,
                              const data::TextEncoder& encoder,
                              const DocumentOptions& options) {
  const auto end = options.end_of_text ? encoder.end_of_text() : std::nullopt;
  if (file.layout == Layout::text) {
    check_text(piece.bytes, file.path, piece.position.offset);
    return encode_text(piece, encoder, end);
  }
  EncodedDocuments encoded;
  for_each_text(piece, file, options.text_column, [&](std::string_view text) {
    Ids ids = encoder.beginning();
    append_tokens(ids, text, encoder);
    if (end && (ids.empty() || ids.back() != *end)) ids.push_back(*end);
    if (ids.empty()) return;
    append(encoded.ids, ids);
    encoded.document_ends.push_back(std::ssize(encoded.ids));
  });
  return encoded;
}

}  // namespace dstrain::preprocess
