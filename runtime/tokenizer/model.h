#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/tokenizer/pair_merger.h"

namespace dstrain::tokenizer {

/// The best way to each place of a word, for Unigram.
struct PathNode {
  double score = 0;
  std::int32_t id = -1;
  std::int32_t begin = -1;  ///< of the last token on the way; -1 where no way leads
};

/// What a model needs besides the word; of one thread at a time, and kept between words.
struct ModelMemory {
  PairMerger merger;
  std::vector<PathNode> path;
};

/// Cuts words into tokens. Immutable, so threads may share one.
class Model {
 public:
  Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  virtual ~Model() = default;

  /// Appends the tokens of a word of valid UTF-8, at most 2^31 - 1 bytes.
  virtual void encode(std::string_view word,
                      ModelMemory& memory,
                      std::vector<std::int32_t>& ids) const = 0;
};

}  // namespace dstrain::tokenizer
