#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/tokenizer/pair_merger.h"

namespace dstrain::tokenizer {

/// The best path to a position in a word, for Unigram.
struct PathNode {
  double score = 0;
  std::int32_t id = -1;
  std::int32_t begin = -1;  ///< of the last token on the path; -1: unreachable
};

/// Working memory of a model, reused for all words. For one thread at a time.
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

  /// Appends the tokens of a word, which is valid UTF-8 of at most 2^31 - 1 bytes.
  virtual void encode(std::string_view word,
                      ModelMemory& memory,
                      std::vector<std::int32_t>& ids) const = 0;
};

}  // namespace dstrain::tokenizer
