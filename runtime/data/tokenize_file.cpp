#include "runtime/data/tokenize_file.h"

#include <exception>
#include <optional>
#include <set>

#include <fmt/ranges.h>

#include "runtime/base/error.h"
#include "runtime/base/printable.h"
#include "runtime/data/encode_record.h"
#include "runtime/data/json_record.h"
#include "runtime/data/token_set.h"
#include "runtime/data/tokenizer.h"
#include "runtime/numeric/parallel_for.h"

namespace dstrain::data {
namespace {

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

struct Encoded {
  RecordKind kind = RecordKind::text;
  EncodedRecord record;
  std::set<std::string> roles;  ///< in messages without an answer
  std::exception_ptr failure;
};

Encoded encode_raw(const RawRecord& raw,
                   const std::string& path,
                   const TextEncoder& encoder,
                   const RecordOptions& options) {
  const Record record = parse_record(raw, path, options);
  Encoded encoded{.kind = record.kind,
                  .record = encode_record(record, encoder, place_of(raw, path)),
                  .roles = {},
                  .failure = {}};
  if (!encoded.record.counted.empty()) return encoded;
  for (const auto& message : record.conversation.messages) {
    encoded.roles.insert(message.at("role").get<std::string>());
  }
  return encoded;
}

std::vector<Encoded> encode_records(const std::vector<RawRecord>& records,
                                    const std::string& path,
                                    const TextEncoder& encoder,
                                    const RecordOptions& options) {
  std::vector<Encoded> encoded(records.size());
  parallel_for(std::ssize(records), [&](std::int64_t i) {
    const auto at = static_cast<std::size_t>(i);
    try {
      encoded[at] = encode_raw(records[at], path, encoder, options);
    } catch (...) {
      encoded[at].failure = std::current_exception();
    }
  });
  return encoded;
}

/// Detects files in which no conversation has an answer, so that there is nothing to learn.
class AnswerCheck {
 public:
  void add(const Encoded& encoded) {
    learns_ |= !encoded.record.counted.empty();
    roles_.insert(encoded.roles.begin(), encoded.roles.end());
  }
  /// Throws Error{input} if there were conversations, and none had an answer.
  void finish(const std::string& path) const {
    if (learns_ || roles_.empty()) return;
    std::vector<std::string> roles;
    for (const std::string& role : roles_) roles.push_back(printable(role));
    fail(ErrorCode::input,
         "{}: no conversation has an answer (role assistant) to learn; the roles are {}", path,
         fmt::join(roles, ", "));
  }

 private:
  bool learns_ = false;
  std::set<std::string> roles_;
};

/// A part of a text that is encoded separately.
struct TextPiece {
  std::string_view text;
  std::size_t begin = 0;  ///< offset in the whole text
};

struct EncodedText {
  std::vector<std::int32_t> ids;
  std::exception_ptr failure;
};

/// Returns the size of the piece that `rest` begins with; `path` is for messages.
std::size_t piece_size(const TextPiece& rest, const TextEncoder& encoder, const std::string& path) {
  constexpr std::size_t bytes_max = std::size_t{1} << 30;  // limit of a Tokenizer
  const std::size_t size = first_piece(encoder, rest.text).size();
  if (size <= bytes_max) return size;
  fail(ErrorCode::input,
       "{}: the tokenizer cannot cut the text within {} bytes from byte {} on, which is too much "
       "to encode at once; give it in parts, or as JSON lines",
       path, bytes_max, rest.begin);
}

/// Cuts two pieces for each compute thread.
std::vector<TextPiece> next_pieces(TextPiece rest,
                                   const TextEncoder& encoder,
                                   const std::string& path) {
  const auto count = static_cast<std::size_t>(compute_threads()) * 2;
  std::vector<TextPiece> pieces;
  while (!rest.text.empty() && pieces.size() < count) {
    const std::size_t size = piece_size(rest, encoder, path);
    pieces.push_back({rest.text.substr(0, size), rest.begin});
    rest = {rest.text.substr(size), rest.begin + size};
  }
  return pieces;
}

std::vector<EncodedText> encode_pieces(const std::vector<TextPiece>& pieces,
                                       const TextEncoder& encoder) {
  std::vector<EncodedText> encoded(pieces.size());
  parallel_for(std::ssize(pieces), [&](std::int64_t i) {
    const TextPiece& piece = pieces[static_cast<std::size_t>(i)];
    EncodedText& result = encoded[static_cast<std::size_t>(i)];
    try {
      result.ids =
          piece.begin == 0 ? encoder.encode(piece.text) : encoder.encode_following(piece.text);
    } catch (...) {
      result.failure = std::current_exception();
    }
  });
  return encoded;
}

}  // namespace

void tokenize_records(const TextFile& file,
                      const TextEncoder& encoder,
                      RecordOptions options,
                      const std::filesystem::path& target) {
  options.has_chat_template = encoder.chat_template() != nullptr;
  RecordReader reader(as_text(file.bytes), file.path);
  std::optional<TokenSetWriter> writer;
  AnswerCheck answers;
  RecordKind kind{};
  std::int64_t first_line = 0;
  for (auto records = reader.next_batch(); !records.empty(); records = reader.next_batch()) {
    const std::vector<Encoded> encoded = encode_records(records, file.path, encoder, options);
    for (std::size_t i = 0; i < records.size(); ++i) {
      if (encoded[i].failure) std::rethrow_exception(encoded[i].failure);
      if (!writer) {
        kind = encoded[i].kind;
        first_line = records[i].line;
        writer.emplace(target, kind, encoder.vocabulary());
      }
      if (encoded[i].kind != kind) {
        fail(ErrorCode::input,
             "{}: holds {}, and line {} {}; a file holds one kind of record: split it",
             place_of(records[i], file.path), name_of(encoded[i].kind), first_line, name_of(kind));
      }
      answers.add(encoded[i]);
      writer->add(encoded[i].record);
    }
  }
  if (!writer) fail(ErrorCode::input, "{}: holds no record", file.path);
  answers.finish(file.path);
  writer->finish();
}

void tokenize_text(const TextFile& file,
                   const TextEncoder& encoder,
                   const std::filesystem::path& target) {
  check_utf8(file.bytes, file.path);
  TokenSetWriter writer(target, RecordKind::text, encoder.vocabulary());
  writer.add({});
  const std::string_view text = as_text(file.bytes);
  for (std::size_t begin = 0; begin < text.size();) {
    const auto pieces = next_pieces({text.substr(begin), begin}, encoder, file.path);
    for (const EncodedText& encoded : encode_pieces(pieces, encoder)) {
      if (encoded.failure) std::rethrow_exception(encoded.failure);
      writer.extend(encoded.ids);
    }
    begin = pieces.back().begin + pieces.back().text.size();
  }
  writer.finish();
}

}  // namespace dstrain::data
