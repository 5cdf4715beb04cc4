#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/base/utf8.h"

namespace dstrain::data {

/// A line of a file, without its end.
struct Line {
  std::int64_t number = 0;  ///< from 1
  std::string_view text;
};

/// Returns the lines that hold more than white space, some megabytes at a time.
class LineReader {
 public:
  explicit LineReader(std::string_view text) : rest_(text) {
    if (rest_.starts_with(byte_order_mark)) rest_.remove_prefix(byte_order_mark.size());
  }
  /// Returns the next lines; empty at the end.
  std::vector<Line> next();

 private:
  std::string_view rest_;
  std::int64_t number_ = 0;
};

}  // namespace dstrain::data
