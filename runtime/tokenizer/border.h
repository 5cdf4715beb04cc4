#pragma once
#include <optional>

namespace dstrain::tokenizer {

/// A place between two characters at which a text may be cut, its parts to be encoded by
/// themselves, the second one as a piece that follows. It may be cut there when every step makes of
/// the whole what it makes of the parts, whatever else they hold, and when a word ends there. Each
/// step tells its part of this by `allows_cut(border)`, and moves the characters on to what stands
/// there behind the step.
struct Border {
  /// Where it is not known, the first part may even have become empty.
  std::optional<char32_t> left;
  char32_t right = 0;
  /// Some pre-tokenizer ends a word there, so that those behind it and the model see two.
  bool ends_word = false;
};

}  // namespace dstrain::tokenizer
