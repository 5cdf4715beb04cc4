#pragma once
#include <optional>

namespace dstrain::tokenizer {

/// A place between two characters at which a text may be cut, so that its parts can be encoded
/// separately, the second one as a following piece. It may be cut there if a word ends there and
/// every step turns the whole text into the concatenation of what it makes of the parts, whatever
/// else they contain. Each step decides its share of this in `allows_cut(border)` and updates the
/// characters to those that its output has there.
struct Border {
  /// Nothing: unknown. The first part may even be empty after this step.
  std::optional<char32_t> left;
  char32_t right = 0;
  /// A pre-tokenizer ends a word there, so that later ones and the model see two words.
  bool ends_word = false;
};

}  // namespace dstrain::tokenizer
