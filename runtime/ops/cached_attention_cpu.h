#pragma once
#include "runtime/ops/attention_tiles.h"
#include "runtime/ops/cached_attention.h"

namespace dstrain::ops {

/// A sequence of a call, for kernels.
struct CachedSequence {
  std::int64_t slot;
  std::int64_t past;
  RotaryTable angles;  ///< of its queries, from position `past` on
};

/// Returns head `head` of slot `slot` in a cache.
template <class T>
HeadRows<const T> cached_rows(const TensorView& cache,
                              const HeadLayout& layout,
                              std::int64_t slot,
                              std::int64_t head) {
  const std::int64_t columns = layout.kv_heads * layout.head_size;
  const T* const rows = elements<const T>(cache) + slot * cache.shape()[1] * columns;
  return {rows + head * layout.head_size, columns, layout.head_size};
}

/// Causal attention, without biases, of the heads of queries that share a head of keys, in tiles.
/// `held` has as many keys as its slot of the workspace holds.
void run_cached_tiles(const CachedAttentionArgs& args,
                      const HeadLayout& held,
                      const CachedSequence& sequence,
                      const KvHead& at,
                      float* slot);

}  // namespace dstrain::ops
