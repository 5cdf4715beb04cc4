#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/tokenizer/vocabulary.h"

namespace dstrain::tokenizer {

/// SentencePiece's byte fallback: the tokens <0x00> to <0xFF>, as far as a vocabulary has them.
class ByteTokens {
 public:
  explicit ByteTokens(const Vocabulary& vocabulary);

  /// Appends the tokens of all bytes of `text`, or nothing when one has none; whether it did.
  bool append(std::string_view text, std::vector<std::int32_t>& ids) const;

 private:
  std::array<std::int32_t, 256> id_of_{};  ///< -1: none
};

/// The byte that a token of this form stands for. Both cases of digits are read.
std::optional<std::uint8_t> byte_of_token(std::string_view token);

}  // namespace dstrain::tokenizer
