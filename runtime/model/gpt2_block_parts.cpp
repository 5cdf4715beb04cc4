#include "runtime/model/gpt2_block_parts.h"

#include <algorithm>

#include "runtime/model/linear.h"
#include "runtime/ops/attention.h"

namespace dstrain::model {
namespace {

/// A block of bytes, for cuts that start at the same place, say.
TensorView take_bytes(Arena& arena, Bytes bytes) {
  return arena.take({bytes}, DType::u8);
}

ops::AttentionSizes attention_sizes(const Gpt2BlockSizes& sizes) {
  return {sizes.sequences, sizes.tokens, sizes.heads, sizes.channels};
}

void cut_attention(Arena& arena, const Gpt2BlockSizes& sizes, Gpt2BlockBackwardSpace& space) {
  space.qkv = sizes.take_activation(arena, 3 * sizes.channels);
  space.attention = take_bytes(
      arena, ops::attention_backward_workspace(attention_sizes(sizes), sizes.options.device));
}

void cut_inner(Arena& arena, const Gpt2BlockSizes& sizes, Gpt2BlockBackwardSpace& space) {
  space.inner = sizes.take_activation(arena, sizes.inner);
  space.active = sizes.take_activation(arena, sizes.inner);
}

}  // namespace

TensorView take_products(Arena& arena, const Gpt2BlockSizes& sizes) {
  const auto need = [&sizes](std::int64_t inputs, std::int64_t outputs) {
    return linear_workspace({sizes.rows(), inputs, outputs}, sizes.options);
  };
  const std::int64_t channels = sizes.channels;
  return take_bytes(arena, std::max({need(channels, 3 * channels), need(channels, channels),
                                     need(channels, sizes.inner), need(sizes.inner, channels)}));
}

Gpt2BlockSizes::Gpt2BlockSizes(const Gpt2Config& config, BatchShape shape, const UnitOptions& unit)
    : sequences(shape.sequences),
      tokens(shape.tokens),
      channels(config.n_embd),
      inner(config.n_inner),
      heads(config.n_head),
      drops_branches(config.resid_pdrop > 0),
      options(unit) {}

Gpt2BlockSaved::Gpt2BlockSaved(Arena& arena, const Gpt2BlockSizes& sizes)
    : mean_1(arena.take({sizes.rows()})),
      rstd_1(arena.take({sizes.rows()})),
      qkv(sizes.take_activation(arena, 3 * sizes.channels)),
      logsumexp(arena.take({sizes.sequences, sizes.heads, sizes.tokens})),
      attention(sizes.take_activation(arena, sizes.channels)),
      residual(sizes.take_activation(arena, sizes.channels)),
      mean_2(arena.take({sizes.rows()})),
      rstd_2(arena.take({sizes.rows()})),
      inner(sizes.take_activation(arena, sizes.inner)) {}

Gpt2BlockForwardSpace::Gpt2BlockForwardSpace(Arena& arena, const Gpt2BlockSizes& sizes)
    : normed(sizes.take_activation(arena, sizes.channels)) {
  const Bytes keys_bytes =
      ops::attention_forward_workspace(attention_sizes(sizes), sizes.options.device);
  Arena measured_active;
  sizes.take_activation(measured_active, sizes.inner);
  const TensorView overlay = take_bytes(arena, std::max(keys_bytes, measured_active.used()));
  keys = overlay.part(0, {keys_bytes});
  Arena active_arena(overlay);
  active = sizes.take_activation(active_arena, sizes.inner);
  products = take_products(arena, sizes);
}

Gpt2BlockBackwardSpace::Gpt2BlockBackwardSpace(Arena& arena, const Gpt2BlockSizes& sizes)
    : residual(sizes.take_activation(arena, sizes.channels)) {
  if (sizes.drops_branches) branch = sizes.take_activation(arena, sizes.channels);
  normed = sizes.take_activation(arena, sizes.channels);
  Arena measured;
  cut_attention(measured, sizes, *this);
  Arena measured_inner;
  cut_inner(measured_inner, sizes, *this);
  const TensorView overlay = take_bytes(arena, std::max(measured.used(), measured_inner.used()));
  Arena attention_arena(overlay);
  cut_attention(attention_arena, sizes, *this);
  Arena inner_arena(overlay);
  cut_inner(inner_arena, sizes, *this);
  products = take_products(arena, sizes);
}

}  // namespace dstrain::model
