#include "runtime/data/tokenize_file.h"

#include <exception>
#include <optional>
#include <set>

#include <fmt/ranges.h>

#include "runtime/base/error.h"
#include "runtime/base/printable.h"
#include "runtime/base/shell_word.h"
#include "runtime/data/encode_record.h"
#include "runtime/data/jq_command.h"
#include "runtime/data/line_reader.h"
#include "runtime/data/mixed_forms.h"
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

std::vector<Encoded> encode_lines(const std::vector<Line>& lines,
                                  const std::string& path,
                                  const TextEncoder& encoder) {
  std::vector<Encoded> encoded(lines.size());
  parallel_for(std::ssize(lines), [&](std::int64_t i) {
    const Line& line = lines[static_cast<std::size_t>(i)];
    Encoded& result = encoded[static_cast<std::size_t>(i)];
    try {
      const std::string place = fmt::format("{}:{}", path, line.number);
      const Record record = parse_record(line.text, place);
      result.kind = record.kind;
      result.record = encode_record(record, encoder, place);
      if (result.record.counted.empty()) {
        for (const auto& message : record.conversation.messages) {
          result.roles.insert(message.at("role").get<std::string>());
        }
      }
    } catch (...) {
      result.failure = std::current_exception();
    }
  });
  return encoded;
}

/// Throws the error of a line; a command for the file is only given if it fits all records.
[[noreturn]] void refuse_line(std::string_view text,
                              const Line& line,
                              const Encoded& encoded,
                              const std::string& path) {
  try {
    std::rethrow_exception(encoded.failure);
  } catch (const Error& error) {
    if (gives_jq_command(error.what())) refuse_mixed_forms(text, line, path);
    throw;
  }
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

void tokenize_json_lines(const TextFile& file,
                         const TextEncoder& encoder,
                         const std::filesystem::path& target) {
  LineReader reader(as_text(file.bytes));
  std::optional<TokenSetWriter> writer;
  AnswerCheck answers;
  RecordKind kind{};
  Line first;
  for (std::vector<Line> lines = reader.next(); !lines.empty(); lines = reader.next()) {
    const std::vector<Encoded> encoded = encode_lines(lines, file.path, encoder);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (encoded[i].failure) refuse_line(as_text(file.bytes), lines[i], encoded[i], file.path);
      if (!writer) {
        kind = encoded[i].kind;
        first = lines[i];
        writer.emplace(target, kind, encoder.vocabulary());
      }
      if (encoded[i].kind != kind) {
        fail(ErrorCode::input,
             "{}:{}: holds {}, and line {} {}; a file holds one kind of record; split it{}",
             file.path, lines[i].number, name_of(encoded[i].kind), first.number, name_of(kind),
             command_below(split_commands(as_text(file.bytes), first, file.path)));
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
