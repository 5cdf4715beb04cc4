#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/tokenizer/tokenizer.h"

namespace dstrain::test {

/// The random texts of tests/golden/tokenizers, which make_tokenizers.py draws alike.
class RandomTexts {
 public:
  static constexpr std::uint64_t texts_per_block = 500;

  /// @p folder tests/golden/tokenizers
  /// @p specials texts to draw besides
  RandomTexts(const std::filesystem::path& folder, const std::vector<std::string>& specials);

  [[nodiscard]] std::string text(std::uint64_t number) const;
  /// SHA-256, in hexadecimal, of what a tokenizer makes of a block of texts.
  [[nodiscard]] std::string block_hash(const tokenizer::Tokenizer& tokenizer,
                                       std::uint64_t block) const;

 private:
  std::vector<std::vector<std::string>> alphabets_;
};

}  // namespace dstrain::test
