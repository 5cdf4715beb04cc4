#include "runtime/base/error.h"
#include "runtime/ops/attention_layout.h"
#include "runtime/tensor/dtype.h"

namespace dstrain::ops {
namespace {

/// Of a deterministic flash attention on Hopper: a sum of dQ in f32, log-sum-exp and delta per
/// query and a counter per tile that puts its additions in order (Dao-AILab/flash-attention,
/// hopper/flash_api.cpp). Queries are rounded up to tiles of 64, columns of a head to 32.
Bytes flash_backward_workspace(const AttentionSizes& sizes) {
  constexpr std::int64_t block = 64;
  constexpr std::int64_t columns = 32;
  const std::int64_t queries = round_up(sizes.tokens, block);
  const std::int64_t head_size = round_up(sizes.head_size, columns);
  const std::int64_t words = queries * head_size + 2 * queries + queries / block;
  return sizes.sequences * sizes.heads * words * size_of(DType::f32);
}

/// Of the CPU's tables of angles and of biases, rounded so that slots begin on lines.
Bytes table_bytes(const HeadLayout& layout, const AttentionRule& rule) {
  const std::int64_t angles = layout.positions() * rule.rotary.dims;
  return round_up(angles * size_of(DType::f32), 64) +
         layout.heads * layout.distances() * size_of(DType::f32);
}

/// The gradients of biases, by sequence, head and row of their table.
Bytes bias_sum_bytes(const HeadLayout& layout) {
  return round_up(layout.bias_sums() * size_of(DType::f32), 64);
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
      return 0;  // a tile's sums stay in registers
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
      return flash_backward_workspace(sizes) + bias_sum_bytes(layout);
  }
  fail(ErrorCode::internal, "no such kind of device");
}

}  // namespace dstrain::ops
