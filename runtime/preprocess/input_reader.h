#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/function_ref.h"
#include "runtime/base/units.h"
#include "runtime/data/record_reader.h"
#include "runtime/preprocess/byte_source.h"
#include "runtime/preprocess/csv.h"
#include "runtime/preprocess/input_file.h"

namespace dstrain::preprocess {

/// The beginning of a piece, from which reading can continue.
struct InputPosition {
  std::int64_t input = 0;   ///< index of the file
  std::int64_t offset = 0;  ///< bytes of its decompressed content before the piece
  std::int64_t line = 1;    ///< line of the piece's first byte
  std::int64_t column = 1;  ///< for JSON: its column, in bytes
  bool operator==(const InputPosition&) const = default;
};

/// A piece of a file: of a text, up to a place where it can be cut; otherwise whole records.
struct InputPiece {
  InputPosition position;
  std::string bytes;
  bool ends_file = false;
  CsvColumn column{};             ///< for CSV and TSV
  data::RecordFraming framing{};  ///< for JSON
  bool begins_records = true;     ///< for JSON: no record precedes it in the file
  std::int64_t consumed = 0;      ///< bytes of all inputs on disk that have been read so far
};

/// Returns the length of the beginning of `text`, which continues, that can be encoded separately;
/// 0: none yet.
using CutText = FunctionRef<std::size_t(std::string_view text)>;

/// Reads files one after another in pieces of about a mebibyte, larger if a text cannot be cut or a
/// record is larger. The pieces depend only on the files. Use from one thread.
class InputReader {
 public:
  struct Options {
    std::string text_column = "text";
    InputPosition from{};
    Bytes piece_bytes = mebibyte;  ///< approximately, if the text can be cut there
  };

  /// `inputs` and `cut_text` are used until the last piece is read.
  InputReader(const std::vector<InputFile>& inputs, CutText cut_text, Options options);

  /// Returns the next piece; nothing at the end of the last file. Empty files have no piece. Throws
  /// Error{input} naming the file, Error{io}.
  std::optional<InputPiece> next();

 private:
  [[nodiscard]] const InputFile& input() const;
  void open();
  void close();
  /// Reads the bytes before the records: a byte-order mark, the names of columns. Returns their
  /// number.
  std::int64_t read_head();
  void seek(std::int64_t offset);
  /// Counts the lines and, for JSON, the columns of bytes that are passed.
  void count(std::string_view passed);
  /// Extends `window_` to `bytes`, unless the file ends.
  void fill(std::size_t bytes);
  /// Returns where to cut the first bytes of `window_`; 0: nowhere.
  [[nodiscard]] std::size_t cut(std::size_t bytes) const;
  InputPiece take(std::size_t bytes);

  const std::vector<InputFile>& inputs_;
  CutText cut_text_;
  Options options_;
  InputPosition position_;
  std::unique_ptr<ByteSource> source_;  ///< the open file at `position_`, or null
  CsvColumn column_{};
  data::RecordFraming framing_{};
  std::int64_t head_ = 0;  ///< bytes of the file before its first record
  std::string window_;     ///< bytes that were read and not taken
  bool at_end_ = false;
  std::int64_t consumed_before_ = 0;  ///< bytes of the earlier files
};

}  // namespace dstrain::preprocess
