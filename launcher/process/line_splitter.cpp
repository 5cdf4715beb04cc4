#include "launcher/process/line_splitter.h"

namespace dstrain::launcher {
namespace {

bool continues_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

/// Where to cut `text`, longer than `most`: at `most`, or up to three bytes before it when that is
/// inside a character.
std::size_t piece_size(std::string_view text, std::size_t most) {
  for (std::size_t size = most; size + 4 > most; --size) {
    if (!continues_character(text[size])) return size;
  }
  return most;  // not UTF-8
}

}  // namespace

void LineSplitter::cut_pieces(OnLine on_line) {
  std::string_view rest = partial_;
  while (rest.size() > piece_bytes_max) {
    const std::size_t size = piece_size(rest, piece_bytes_max);
    on_line(rest.substr(0, size));
    rest.remove_prefix(size);
  }
  partial_.erase(0, partial_.size() - rest.size());
}

void LineSplitter::feed(std::string_view bytes, OnLine on_line) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find_first_of("\r\n");
    if (end == bytes.npos) break;
    const bool newline = bytes[end] == '\n';
    const bool belongs_to_return = skip_newline_ && newline && end == 0 && partial_.empty();
    std::string_view line = bytes.substr(0, end);
    if (!partial_.empty() || line.size() > piece_bytes_max) {
      partial_.append(line);
      cut_pieces(on_line);
      line = partial_;
    }
    if (!belongs_to_return && (newline || !line.empty())) {
      on_line(line);
      skip_newline_ = !newline;
    } else if (newline) {
      skip_newline_ = false;
    }
    partial_.clear();
    bytes.remove_prefix(end + 1);
  }
  if (bytes.empty()) return;
  partial_.append(bytes);
  cut_pieces(on_line);
}

void LineSplitter::finish(OnLine on_line) {
  if (!partial_.empty()) on_line(partial_);
  partial_.clear();
  skip_newline_ = false;
}

}  // namespace dstrain::launcher
