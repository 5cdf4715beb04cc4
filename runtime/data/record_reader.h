#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dstrain::data {

/// How the records of a JSON file follow one another.
enum class RecordFraming {
  lines,   ///< JSON lines: one record a line
  values,  ///< objects over any number of lines
  array,   ///< the elements of one array
};

/// Decides by the beginning of a file, which may have a byte-order mark.
RecordFraming framing_of(std::string_view begin);

/// Returns the bytes before the first record: a byte-order mark, and the bracket of an array.
std::size_t head_bytes(std::string_view begin, RecordFraming framing);

/// A record in a file, not parsed.
struct RawRecord {
  std::string_view text;
  std::int64_t line = 1;    ///< of its first byte, from 1
  std::int64_t column = 1;  ///< the same, in bytes
};

/// Returns "data.jsonl:7", where a record begins.
std::string place_of(const RawRecord& record, const std::string& path);

/// Finds the records of a file, or of a piece of it that begins where cut_records() has cut,
/// without parsing them. Holds no copy of the text. The places of its records are exact.
class RecordReader {
 public:
  struct Piece {
    std::string_view text{};
    RecordFraming framing = RecordFraming::lines;
    std::int64_t line = 1;  ///< of its first byte
    std::int64_t column = 1;
    bool begins = true;  ///< at the first record of the file
    bool ends_file = true;
  };

  /// Reads a whole file. `path` is for messages.
  RecordReader(std::string_view text, std::string path);
  RecordReader(const Piece& piece, std::string path);

  /// Returns the next record; nothing at the end. Throws Error{input} "file:line:column: ..." for
  /// text between the elements of an array, or behind it.
  std::optional<RawRecord> next();
  /// Returns the next records, some megabytes of them; empty at the end.
  std::vector<RawRecord> next_batch();

 private:
  void pass(std::size_t bytes);
  void pass_blanks();
  std::optional<RawRecord> take(std::size_t bytes);
  std::optional<RawRecord> next_line();
  bool enter_element();
  [[noreturn]] void refuse(std::string_view why) const;

  std::string path_;
  RecordFraming framing_;
  std::string_view rest_;
  std::int64_t line_;
  std::int64_t column_;
  bool first_;
  bool ends_file_;
  bool closed_ = false;  ///< the end of the array has been read
};

/// Returns how many bytes at the beginning of `text`, which continues, are whole records; 0: none.
/// `first`: it begins with the first record of the file.
std::size_t cut_records(std::string_view text, RecordFraming framing, bool first);

}  // namespace dstrain::data
