#pragma once
#include <string>
#include <string_view>

#include "runtime/base/function_ref.h"

namespace dstrain::launcher {

/// Cuts a byte stream into lines: '\n', "\r\n" and '\r' (a progress bar's) end one. A line of more
/// than 64 KiB is given in pieces, never within a UTF-8 character, so that memory stays bounded.
class LineSplitter {
 public:
  using OnLine = FunctionRef<void(std::string_view)>;  ///< the line without its end

  static constexpr std::size_t piece_bytes_max = 64U << 10;

  void feed(std::string_view bytes, OnLine on_line);
  /// Gives the rest without a line end, if any.
  void finish(OnLine on_line);

 private:
  void cut_pieces(OnLine on_line);
  std::string partial_;
  bool skip_newline_ = false;  ///< a '\r' ended the last line; a '\n' right after belongs to it
};

}  // namespace dstrain::launcher
