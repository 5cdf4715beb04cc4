#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/tokenizer/byte_tokens.h"
#include "runtime/tokenizer/byte_trie.h"
#include "runtime/tokenizer/model.h"
#include "runtime/tokenizer/vocabulary.h"

namespace dstrain::tokenizer {

struct UnigramSettings {
  std::int32_t unk = 0;
  bool byte_fallback = false;  ///< unknown characters become the tokens <0xE2> ... for their bytes
};

/// The unigram language model (Kudo, arXiv:1804.10959): of all ways to cut a word into tokens,
/// chooses the one with the largest sum of scores. Like Hugging Face's `tokenizers`, makes one
/// token of consecutive unknown characters.
class Unigram final : public Model {
 public:
  /// @p scores by id. `vocabulary` must outlive it.
  Unigram(const Vocabulary& vocabulary,
          std::vector<double> scores,
          const UnigramSettings& settings);

  void encode(std::string_view word,
              ModelMemory& memory,
              std::vector<std::int32_t>& ids) const override;

 private:
  void find_path(std::string_view word, std::vector<PathNode>& path) const;
  void add_unknown(std::string_view text, std::vector<std::int32_t>& ids) const;

  const Vocabulary& vocabulary_;
  std::vector<double> scores_;
  UnigramSettings settings_;
  double unk_score_ = 0;
  ByteTrie trie_;
  ByteTokens byte_tokens_;
};

}  // namespace dstrain::tokenizer
