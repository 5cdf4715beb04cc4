#include "runtime/data/tokenize_file.h"

#include <exception>
#include <optional>

#include "runtime/base/error.h"
#include "runtime/base/parallel_for.h"
#include "runtime/data/encode_record.h"
#include "runtime/data/token_set.h"
#include "runtime/data/tokenizer.h"

namespace dstrain::data {
namespace {

struct Line {
  std::int64_t number = 0;  ///< from 1
  std::string_view text;
};

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Hands out the lines that hold more than white space, some megabytes at a time.
class LineReader {
 public:
  explicit LineReader(std::string_view text) : rest_(text) {
    constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
    if (rest_.starts_with(byte_order_mark)) rest_.remove_prefix(byte_order_mark.size());
  }

  /// Empty at the end.
  std::vector<Line> next() {
    constexpr std::size_t bytes_max = std::size_t{4} << 20;
    std::vector<Line> lines;
    for (std::size_t bytes = 0; bytes < bytes_max && !rest_.empty();) {
      const std::string_view line = rest_.substr(0, rest_.find('\n'));
      rest_.remove_prefix(std::min(line.size() + 1, rest_.size()));
      ++number_;
      bytes += line.size();
      if (line.find_first_not_of(" \t\r") != std::string_view::npos) {
        lines.push_back({number_, line});
      }
    }
    return lines;
  }

 private:
  std::string_view rest_;
  std::int64_t number_ = 0;
};

struct Encoded {
  RecordKind kind = RecordKind::text;
  EncodedRecord record;
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
  RecordKind kind{};
  std::int64_t first_line = 0;
  for (std::vector<Line> lines = reader.next(); !lines.empty(); lines = reader.next()) {
    const std::vector<Encoded> encoded = encode_lines(lines, file.path, encoder);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (encoded[i].failure) std::rethrow_exception(encoded[i].failure);
      if (!writer) {
        kind = encoded[i].kind;
        first_line = lines[i].number;
        writer.emplace(target, kind, encoder.vocabulary());
      }
      if (encoded[i].kind != kind) {
        fail(ErrorCode::input, "{}:{}: holds {}, and line {} {}; a file holds one kind of record",
             file.path, lines[i].number, name_of(encoded[i].kind), first_line, name_of(kind));
      }
      writer->add(encoded[i].record);
    }
  }
  if (!writer) fail(ErrorCode::input, "{}: holds no record", file.path);
  writer->finish();
}

void tokenize_text(const TextFile& file,
                   const TextEncoder& encoder,
                   const std::filesystem::path& target) {
  check_utf8(file.bytes, file.path);
  TokenSetWriter writer(target, RecordKind::text, encoder.vocabulary());
  writer.add({encoder.encode(as_text(file.bytes)), {}});
  writer.finish();
}

}  // namespace dstrain::data
