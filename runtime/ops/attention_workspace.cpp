#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/ops/attention_layout.h"
#include "runtime/ops/attention_scratch.h"
#include "runtime/tensor/dtype.h"

namespace dstrain::ops {
namespace {

/// Bytes of the CPU's tables of angles and biases, rounded so that slots start on cache lines.
Bytes table_bytes(const HeadLayout& layout, const AttentionRule& rule) {
  const std::int64_t angles = layout.positions() * rule.rotary.dims;
  return round_up(angles * size_of(DType::f32), 64) +
         layout.heads * layout.distances() * size_of(DType::f32);
}

/// The gradients of biases, by sequence, head and row of their table.
Bytes bias_sum_bytes(const HeadLayout& layout) {
  return round_up(layout.bias_sums() * size_of(DType::f32), 64);
}

/// Bytes in a GPU's forward; a tile's sums stay in registers.
Bytes turned_bytes(const AttentionSizes& sizes, const AttentionRule& rule) {
  Arena arena;
  const TurnedHeads turned(arena, sizes, rule);
  return arena.used();
}

/// Bytes in a GPU's backward.
Bytes scratch_bytes(const AttentionSizes& sizes, const AttentionRule& rule) {
  Arena arena;
  const AttentionScratch scratch(arena, sizes, rule);
  return arena.used();
}

}  // namespace

Bytes attention_forward_workspace(const AttentionSizes& sizes,
                                  const AttentionRule& rule,
                                  DeviceKind device) {
  const HeadLayout layout{sizes, false, rule.buckets.count};
  switch (device) {
    case DeviceKind::cpu:
      return table_bytes(layout, rule) +
             layout.slots() * forward_slot_numel(layout) * size_of(DType::f32);
    case DeviceKind::cuda:
      return turned_bytes(sizes, rule);
  }
  fail(ErrorCode::internal, "no such kind of device");
}

Bytes attention_backward_workspace(const AttentionSizes& sizes,
                                   const AttentionRule& rule,
                                   DeviceKind device) {
  const HeadLayout layout{sizes, false, rule.buckets.count};
  switch (device) {
    case DeviceKind::cpu:
      return table_bytes(layout, rule) + bias_sum_bytes(layout) +
             layout.slots() * backward_slot_numel(layout) * size_of(DType::f32);
    case DeviceKind::cuda:
      return scratch_bytes(sizes, rule);
  }
  fail(ErrorCode::internal, "no such kind of device");
}

Bytes cached_attention_workspace(const AttentionSizes& sizes,
                                 const AttentionRule& rule,
                                 DeviceKind device) {
  if (device == DeviceKind::cuda) return 0;
  const auto numel = [&](const AttentionSizes& own) {
    HeadLayout layout{own, false, rule.buckets.count};
    const bool few = attends_one_by_one(own, rule);
    if (!few) layout.keys = cached_tile_keys(own, rule);
    return CachedWorkspace(layout, rule, few).numel;
  };
  // What is planned for more queries has room for fewer.
  AttentionSizes few = sizes;
  few.tokens = std::min(sizes.tokens, cached_few_queries);
  return std::max(numel(sizes), numel(few)) * size_of(DType::f32);
}

}  // namespace dstrain::ops
