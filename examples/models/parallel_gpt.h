#pragma once
#include <cstdint>

#include "runtime/model/model.h"

namespace dstrain::examples {

/// Sizes of a GPT whose blocks run attention and MLP side by side, as GPT-J's do (Wang &
/// Komatsuzaki 2021): both read one norm, and both join the residual stream at once.
struct ParallelGptSizes {
  std::int64_t vocabulary = 256;
  std::int64_t positions = 1024;
  std::int64_t hidden = 256;
  std::int64_t layers = 4;
  std::int64_t heads = 8;
  std::int64_t kv_heads = 2;      ///< of keys and values, which heads share
  std::int64_t rotary_dims = 16;  ///< of each head; the rest of its features does not turn
  float dropout = 0;              ///< of each branch
};

/// Units "embedding", "blocks.0" ... and "head", which shares the embedding's table.
model::Model make_parallel_gpt(const ParallelGptSizes& sizes,
                               const model::UnitOptions& options = {});

}  // namespace dstrain::examples
