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
#include "runtime/preprocess/byte_source.h"
#include "runtime/preprocess/csv.h"
#include "runtime/preprocess/input_file.h"

namespace dstrain::preprocess {

/// Where a piece begins: all that is needed to read on from there.
struct InputPosition {
  std::int64_t input = 0;   ///< index of the file
  std::int64_t offset = 0;  ///< bytes of its decompressed content before the piece
  std::int64_t line = 1;    ///< of the piece's first byte
  bool operator==(const InputPosition&) const = default;
};

/// Some of a file: of a text, up to a place where it can be cut; else whole records.
struct Piece {
  InputPosition position;
  std::string bytes;
  bool ends_file = false;
  CsvColumn column{};         ///< of CSV and TSV
  std::int64_t consumed = 0;  ///< bytes of all inputs on the disk that have been read by now
};

/// The length of the beginning of `text`, which goes on, that can be taken by itself; 0: none yet.
using CutText = FunctionRef<std::size_t(std::string_view text)>;

/// Reads files one after another in pieces of about a mebibyte, larger where a text cannot be cut
/// or a record is. The pieces are a function of the files alone. Use from one thread.
class PieceReader {
 public:
  struct Options {
    std::string text_column = "text";
    InputPosition from{};
    Bytes piece_bytes = mebibyte;  ///< about, where the text can be cut there
  };

  /// `inputs` and `cut_text` are used until the last piece is read.
  PieceReader(const std::vector<InputFile>& inputs, CutText cut_text, Options options);

  /// Nothing at the end of the last file. Files without a byte give no piece. Throws Error{input}
  /// naming the file, Error{io}.
  std::optional<Piece> next();

 private:
  [[nodiscard]] const InputFile& input() const;
  void open();
  void close();
  /// What stands before the records, in bytes: a byte-order mark, the names of columns.
  std::int64_t read_head();
  void seek(std::int64_t offset);
  /// Makes `window_` as large as that, unless the file ends.
  void fill(std::size_t bytes);
  /// Where the first bytes of `window_` can be cut; 0: nowhere.
  [[nodiscard]] std::size_t cut(std::size_t bytes) const;
  Piece take(std::size_t bytes);

  const std::vector<InputFile>& inputs_;
  CutText cut_text_;
  Options options_;
  InputPosition position_;
  std::unique_ptr<ByteSource> source_;  ///< of the file at `position_`, once it is open
  CsvColumn column_{};
  std::string window_;  ///< what was read and not taken
  bool at_end_ = false;
  std::int64_t consumed_before_ = 0;  ///< of the files before
};

}  // namespace dstrain::preprocess
