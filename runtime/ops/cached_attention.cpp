#include "runtime/ops/cached_attention.h"

#include "runtime/ops/checks.h"
#include "runtime/ops/op_table.h"

namespace dstrain::ops {
namespace {

/// Requires a cache of rows with `columns` columns.
void require_cache(const KeyValueCache& cache, DType dtype, std::int64_t columns) {
  DSTRAIN_CHECK(cache.key.shape().rank() == 3, "{} is not (slots, R, K D)",
                to_string(cache.key.shape()));
  const Shape shape{cache.slots(), cache.rows(), columns};
  require_tensor(cache.key, dtype, shape, "cached keys");
  require_tensor(cache.value, dtype, shape, "cached values");
}

void require_places(const CachePlaces& places) {
  const Shape shape = places.slot.shape();
  DSTRAIN_CHECK(shape.rank() == 1, "{} is not (B)", to_string(shape));
  require_tensor(places.slot, DType::i32, shape, "slot");
  require_tensor(places.past, DType::i32, shape, "past");
  require_tensor(places.length, DType::i32, shape, "length");
}

void require_rotary(const Rotary& rotary, std::int64_t head_size) {
  DSTRAIN_CHECK(rotary.dims % 2 == 0 && rotary.dims <= head_size && rotary.dims <= Rotary::dims_max,
                "{} of {} features turn", rotary.dims, head_size);
}

}  // namespace

void append_cache(const AppendCacheArgs& args, StreamView stream) {
  const DType dtype = element_dtype(args.key, "key");
  const Shape shape = args.key.shape();
  require_places(args.places);
  const std::int64_t sequences = args.places.slot.shape()[0];
  DSTRAIN_CHECK(shape.rank() == 2 && sequences > 0 && shape[0] % sequences == 0,
                "{} keys of {} sequences", to_string(shape), sequences);
  require_strided(args.value, dtype, shape[0], shape[1], "value");
  require_cache(args.cache, dtype, shape[1]);
  DSTRAIN_CHECK(shape[0] / sequences <= args.cache.rows(), "{} positions in a cache of {}",
                shape[0] / sequences, args.cache.rows());
  DSTRAIN_CHECK(args.head_size > 0 && shape[1] % args.head_size == 0, "heads of {} in {}",
                args.head_size, shape[1]);
  require_rotary(args.rotary, args.head_size);
  op_table(stream).append_cache(args, stream);
}

void cached_attention(const CachedAttentionArgs& args, StreamView stream) {
  const AttentionSizes& s = args.sizes;
  const AttentionRule& rule = args.rule;
  DSTRAIN_CHECK(s.kv_heads > 0 && s.heads % s.kv_heads == 0, "{} heads share {}", s.heads,
                s.kv_heads);
  DSTRAIN_CHECK(rule.divisor > 0, "divisor {}", rule.divisor);
  DSTRAIN_CHECK(rule.window == 0 || (rule.causal && rule.window > 0), "window {}", rule.window);
  require_rotary(rule.rotary, s.head_size);
  const DType dtype = element_dtype(args.query, "query");
  const std::int64_t rows = s.sequences * s.tokens;
  require_strided(args.query, dtype, rows, s.heads * s.head_size, "query");
  require_matrix(args.output, dtype, rows, s.heads * s.head_size, "output");
  require_cache(args.cache, dtype, s.kv_heads * s.head_size);
  require_places(args.places);
  DSTRAIN_CHECK(args.places.slot.shape()[0] == s.sequences, "places of {} sequences",
                args.places.slot.shape()[0]);
  DSTRAIN_CHECK(args.key_count.empty() == rule.causal, "key counts of causal attention");
  if (!rule.causal) require_tensor(args.key_count, DType::i32, {s.sequences}, "key_count");
  if (rule.buckets.active()) {
    require_tensor(args.bias, dtype, {rule.buckets.count, s.heads}, "bias");
  }
  require_workspace(args.workspace, cached_attention_workspace(s, rule, stream.device().kind));
  op_table(stream).cached_attention(args, stream);
}

}  // namespace dstrain::ops
