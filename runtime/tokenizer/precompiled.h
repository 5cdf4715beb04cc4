#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/function_ref.h"

namespace dstrain::tokenizer {

/// SentencePiece's table of replacements ("charsmap", github.com/google/sentencepiece,
/// src/normalizer.cc): u32 size of a double array, the double array (github.com/s-yata/darts-clone,
/// u32 units), the replacements, each ended by a zero byte. Little-endian. Immutable.
class Precompiled {
 public:
  /// Throws Error{input}, which begins with `place`.
  Precompiled(std::string_view charsmap, const std::string& place);

  /// Appends `text` normalized like the `tokenizers` library: a grapheme of up to 5 bytes is
  /// replaced as the shortest of its prefixes in the table; of longer graphemes, each character
  /// separately. Calls `on_grapheme` after each grapheme that was looked up.
  void append_normalized(std::string_view text,
                         std::string& result,
                         FunctionRef<void()> on_grapheme) const;

  /// Whether an entry begins with this character, so that it may be replaced, alone or with the
  /// characters after it.
  [[nodiscard]] bool begins_entry(char32_t code) const;

 private:
  [[nodiscard]] std::optional<std::string_view> replacement_of(std::string_view text) const;
  void append_grapheme(std::string_view grapheme, std::string& result) const;

  std::vector<std::uint32_t> units_;
  std::string replacements_;
  std::array<bool, 128> keeps_ascii_{};  ///< characters that are never replaced
};

}  // namespace dstrain::tokenizer
