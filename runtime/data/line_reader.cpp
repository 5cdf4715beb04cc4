#include "runtime/data/line_reader.h"

#include <algorithm>

namespace dstrain::data {

std::vector<Line> LineReader::next() {
  constexpr std::size_t bytes_max = std::size_t{4} << 20;
  std::vector<Line> lines;
  for (std::size_t bytes = 0; bytes < bytes_max && !rest_.empty();) {
    const std::string_view line = rest_.substr(0, rest_.find('\n'));
    rest_.remove_prefix(std::min(line.size() + 1, rest_.size()));
    ++number_;
    bytes += line.size();
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) lines.push_back({number_, line});
  }
  return lines;
}

}  // namespace dstrain::data
