#include "runtime/model/gpt2_block_parts.h"

#include <algorithm>

#include "runtime/model/gpt2_block_linear.h"
#include "runtime/ops/attention.h"

namespace dstrain::model {
namespace {

/// A block of memory for cuts that start at the same place: an empty one when only measuring.
std::span<std::byte> take_overlay(Arena& arena, Bytes bytes) {
  const TensorView overlay = arena.take({bytes}, DType::u8);
  if (overlay.empty()) return {};
  return {overlay.data(), static_cast<std::size_t>(bytes)};
}

ops::AttentionSizes attention_sizes(const Gpt2BlockSizes& sizes) {
  return {sizes.sequences, sizes.tokens, sizes.heads, sizes.channels};
}

void cut_attention(Arena& arena, const Gpt2BlockSizes& sizes, Gpt2BlockBackwardSpace& space) {
  space.qkv = arena.take(sizes.activation(3 * sizes.channels));
  space.attention = arena.take({ops::attention_backward_workspace(attention_sizes(sizes))});
}

}  // namespace

std::span<std::byte> take_products(Arena& arena, const Gpt2BlockSizes& sizes) {
  const auto need = [&sizes](std::int64_t inputs, std::int64_t outputs) {
    return linear_workspace({sizes.rows(), inputs, outputs}, sizes.dtype);
  };
  const std::int64_t channels = sizes.channels;
  return take_overlay(arena, std::max({need(channels, 3 * channels), need(channels, channels),
                                       need(channels, sizes.inner), need(sizes.inner, channels)}));
}

Gpt2BlockSizes::Gpt2BlockSizes(const Gpt2Config& config, BatchShape shape)
    : sequences(shape.sequences),
      tokens(shape.tokens),
      channels(config.n_embd),
      inner(config.n_inner),
      heads(config.n_head),
      drops_branches(config.resid_pdrop > 0) {}

Gpt2BlockSaved::Gpt2BlockSaved(Arena& arena, const Gpt2BlockSizes& sizes)
    : mean_1(arena.take({sizes.rows()})),
      rstd_1(arena.take({sizes.rows()})),
      qkv(arena.take(sizes.activation(3 * sizes.channels))),
      logsumexp(arena.take({sizes.sequences, sizes.heads, sizes.tokens})),
      attention(arena.take(sizes.activation(sizes.channels))),
      residual(arena.take(sizes.activation(sizes.channels))),
      mean_2(arena.take({sizes.rows()})),
      rstd_2(arena.take({sizes.rows()})),
      inner(arena.take(sizes.activation(sizes.inner))) {}

Gpt2BlockForwardSpace::Gpt2BlockForwardSpace(Arena& arena, const Gpt2BlockSizes& sizes)
    : normed(arena.take(sizes.activation(sizes.channels))) {
  const Shape keys_shape{ops::attention_forward_workspace(attention_sizes(sizes))};
  const Shape active_shape = sizes.activation(sizes.inner);
  const Bytes bytes = std::max(keys_shape.numel(), active_shape.numel()) * size_of(DType::f32);
  const std::span<std::byte> overlay = take_overlay(arena, round_up(bytes, 64));
  keys = Arena(overlay).take(keys_shape);
  active = Arena(overlay).take(active_shape);
  products = take_products(arena, sizes);
}

Gpt2BlockBackwardSpace::Gpt2BlockBackwardSpace(Arena& arena, const Gpt2BlockSizes& sizes)
    : residual(arena.take(sizes.activation(sizes.channels))) {
  if (sizes.drops_branches) branch = arena.take(sizes.activation(sizes.channels));
  normed = arena.take(sizes.activation(sizes.channels));
  Arena measured;
  cut_attention(measured, sizes, *this);
  Arena measured_inner;
  measured_inner.take(sizes.activation(sizes.inner));
  const std::span<std::byte> overlay =
      take_overlay(arena, std::max(measured.used(), measured_inner.used()));
  Arena attention_arena(overlay);
  cut_attention(attention_arena, sizes, *this);
  inner = Arena(overlay).take(sizes.activation(sizes.inner));
  products = take_products(arena, sizes);
}

}  // namespace dstrain::model
