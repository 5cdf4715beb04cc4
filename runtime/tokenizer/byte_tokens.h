#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/tokenizer/vocabulary.h"

namespace dstrain::tokenizer {

/// SentencePiece's byte fallback: those of the tokens <0x00> to <0xFF> that a vocabulary has.
class ByteTokens {
 public:
  explicit ByteTokens(const Vocabulary& vocabulary);

  /// Appends the tokens of all bytes of `text`, or nothing if one is missing. Returns whether it
  /// did.
  bool append(std::string_view text, std::vector<std::int32_t>& ids) const;

 private:
  std::array<std::int32_t, 256> id_of_{};  ///< -1: none
};

/// Returns the byte that such a token represents. Hexadecimal digits may have any case.
std::optional<std::uint8_t> byte_of_token(std::string_view token);

}  // namespace dstrain::tokenizer
