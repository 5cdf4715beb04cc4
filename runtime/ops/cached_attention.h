#pragma once
#include "runtime/ops/attention.h"

namespace dstrain::ops {

/// The keys and values of positions that a model has seen, one slot per sequence. Position p of a
/// sequence is in row p mod R of its slot, so that a slot of a sliding window is a ring. Keys are
/// stored as they are multiplied: after the rotary embedding.
struct KeyValueCache {
  TensorView key;    ///< (slots, R, K D) f32, bf16 or f16, dense
  TensorView value;  ///< likewise
  [[nodiscard]] std::int64_t slots() const { return key.shape()[0]; }
  [[nodiscard]] std::int64_t rows() const { return key.shape()[1]; }
};

/// Where the sequences of a call are in the cache; all (B) i32.
struct CachePlaces {
  TensorView slot;    ///< in [0, slots), different for each sequence
  TensorView past;    ///< positions before the call's first one
  TensorView length;  ///< tokens of the sequence, which choose its frequencies (Rotary)
};

/// Stores the keys and values of N positions per sequence from position `past` on.
struct AppendCacheArgs {
  std::int64_t head_size = 0;  ///< D
  Rotary rotary{};             ///< rotates the keys
  TensorView key;              ///< (B N, K D), N <= R; rows may be strided
  TensorView value;            ///< (B N, K D)
  KeyValueCache cache;
  CachePlaces places;

  /// Calls `visit` with each tensor.
  void for_each_tensor(const auto& visit) {
    visit(key);
    visit(value);
    visit(cache.key);
    visit(cache.value);
    visit(places.slot);
    visit(places.past);
    visit(places.length);
  }
};

/// A place outside the cache is a bug; on the CPU it is an Error{internal} of the stream.
/// Asynchronous on `stream`.
void append_cache(const AppendCacheArgs& args, StreamView stream);

/// Attention of T queries per sequence, at positions `past` + t, to the keys of the cache, which
/// include those of the queries' own positions. If causal, a query sees the keys up to its own
/// position, as far back as the window; else the first `key_count` keys. The bits of a sequence's
/// output do not depend on the other sequences of the call, nor on the number of threads.
struct CachedAttentionArgs {
  AttentionSizes
      sizes{};  ///< keys: the most that a query sees or, for a window, that the cache has
  AttentionRule rule{};
  TensorView query;  ///< (B T, H D); rows may be strided
  KeyValueCache cache;
  CachePlaces places;
  TensorView key_count{};  ///< (B) i32 in [1, R]; empty if causal
  TensorView bias{};       ///< (buckets, H), if there are any
  TensorView output;       ///< (B T, H D): written
  TensorView workspace{};  ///< u8: at least cached_attention_workspace() bytes, 64-byte aligned

  /// Calls `visit` with each tensor.
  void for_each_tensor(const auto& visit) {
    visit(query);
    visit(cache.key);
    visit(cache.value);
    visit(places.slot);
    visit(places.past);
    visit(places.length);
    visit(key_count);
    visit(bias);
    visit(output);
    visit(workspace);
  }
};

/// Returns the bytes that it needs on a kind of device, which need not be present. CPU: the angles
/// of the queries, the rows of the table of biases by distance, and for each of min(B K, 64) heads
/// in progress at once two tiles of 64 keys and two rows per query or, for more than
/// `cached_few_queries` queries, as much as attention_forward() if that is more. CUDA: none.
Bytes cached_attention_workspace(const AttentionSizes& sizes,
                                 const AttentionRule& rule,
                                 DeviceKind device);

/// Up to so many queries per sequence are multiplied one by one with each key as it is read; more
/// are worth tiles.
inline constexpr std::int64_t cached_few_queries = 8;

/// Asynchronous on `stream`.
void cached_attention(const CachedAttentionArgs& args, StreamView stream);

}  // namespace dstrain::ops
