#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "runtime/tokenizer/byte_tokens.h"
#include "runtime/tokenizer/merge_table.h"
#include "runtime/tokenizer/model.h"
#include "runtime/tokenizer/text_map.h"
#include "runtime/tokenizer/vocabulary.h"

namespace dstrain::tokenizer {

enum class BpeUnit {
  character,
  byte  ///< the vocabulary is written in GPT-2's alphabet of bytes (byte_level.h)
};

struct BpeSettings {
  BpeUnit unit = BpeUnit::character;
  bool byte_fallback =
      false;              ///< a character without a token becomes tokens <0xE2> ... for its bytes
  bool fuse_unk = false;  ///< consecutive unknown characters become one unknown token
  bool ignore_merges = false;         ///< a word that is a token becomes that token without merges
  std::optional<std::int32_t> unk{};  ///< for characters without a token; else they are dropped
};

/// Byte-pair encoding (Sennrich et al., arXiv:1508.07909) as Hugging Face's `tokenizers` does it.
class Bpe final : public Model {
 public:
  Bpe(const Vocabulary& vocabulary, const std::vector<Merge>& merges, const BpeSettings& settings);

  void encode(std::string_view word,
              ModelMemory& memory,
              std::vector<std::int32_t>& ids) const override;

  /// Whether no merge can join a token that ends in `left` with one that begins with `right`, so
  /// that cutting a text there does not change its tokens.
  [[nodiscard]] bool stay_apart(char32_t left, char32_t right) const;

 private:
  [[nodiscard]] std::int32_t id_of(char32_t unit) const;
  // The library delays an unknown token until a known character comes, or another unknown one if
  // they are not fused. Byte tokens overtake it.
  void add_symbols(std::string_view word, std::vector<std::int32_t>& symbols) const;
  void add_unknown(char32_t unit, bool& unk_pending, std::vector<std::int32_t>& symbols) const;
  void collect_whole_words(const Vocabulary& vocabulary);
  void collect_joints(const Vocabulary& vocabulary, const std::vector<Merge>& merges);

  static constexpr std::size_t direct_units = 256;

  BpeSettings settings_;
  MergeTable merges_;
  std::array<std::int32_t, direct_units> direct_id_of_{};  ///< of units below 256; -1: none
  std::unordered_map<char32_t, std::int32_t> id_of_;       ///< of the other units
  ByteTokens byte_tokens_;                                 ///< if byte_fallback
  TextMap<std::int32_t> whole_words_;                      ///< if ignore_merges
  std::unordered_set<std::uint64_t> joints_;  ///< character pairs at which a merge can join tokens
};

}  // namespace dstrain::tokenizer
