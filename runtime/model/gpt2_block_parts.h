#pragma once
#include "runtime/model/gpt2_config.h"
#include "runtime/model/unit.h"
#include "runtime/tensor/arena.h"

namespace dstrain::model {

/// The parameters of a block, in the order of its spec.
enum Gpt2BlockParameter : std::size_t {
  ln_1_weight,
  ln_1_bias,
  c_attn_weight,
  c_attn_bias,
  attn_c_proj_weight,
  attn_c_proj_bias,
  ln_2_weight,
  ln_2_bias,
  c_fc_weight,
  c_fc_bias,
  mlp_c_proj_weight,
  mlp_c_proj_bias,
};

/// The sizes of one call of a block.
struct Gpt2BlockSizes {
  Gpt2BlockSizes(const Gpt2Config& config, BatchShape shape, const UnitOptions& unit);
  std::int64_t sequences;  ///< B
  std::int64_t tokens;     ///< T
  std::int64_t channels;   ///< C
  std::int64_t inner;      ///< F
  std::int64_t heads;      ///< H
  bool drops_branches;
  UnitOptions options;
  TensorView take_activation(Arena& arena, std::int64_t features) const {
    return arena.take({sequences, tokens, features}, options.dtype);
  }
  [[nodiscard]] std::int64_t rows() const { return sequences * tokens; }
};

/// What forward keeps for backward.
struct Gpt2BlockSaved {
  Gpt2BlockSaved(Arena& arena, const Gpt2BlockSizes& sizes);
  TensorView mean_1;     ///< (B T) f32
  TensorView rstd_1;     ///< (B T) f32
  TensorView qkv;        ///< (B, T, 3C)
  TensorView logsumexp;  ///< (B, H, T) f32
  TensorView attention;  ///< (B, T, C): output of the heads
  TensorView residual;   ///< (B, T, C): after attention
  TensorView mean_2;     ///< (B T) f32
  TensorView rstd_2;     ///< (B T) f32
  TensorView inner;      ///< (B, T, F): before GELU
};

/// Workspace of every matrix product of a block.
TensorView take_products(Arena& arena, const Gpt2BlockSizes& sizes);

/// Workspace of forward. `keys` and `active` share memory: one is done before the other begins.
struct Gpt2BlockForwardSpace {
  Gpt2BlockForwardSpace(Arena& arena, const Gpt2BlockSizes& sizes);
  TensorView normed;    ///< (B, T, C)
  TensorView keys;      ///< workspace of attention
  TensorView active;    ///< (B, T, F): after GELU
  TensorView products;  ///< u8
};

/// Workspace of backward. `inner` and `active` share memory with `qkv` and `attention`.
struct Gpt2BlockBackwardSpace {
  Gpt2BlockBackwardSpace(Arena& arena, const Gpt2BlockSizes& sizes);
  TensorView residual;   ///< (B, T, C): gradient of the residual after attention
  TensorView branch;     ///< (B, T, C) or empty: gradient of a branch before its dropout
  TensorView normed;     ///< (B, T, C): a norm's output or its gradient
  TensorView inner;      ///< (B, T, F): gradient of GELU's output or of its input
  TensorView active;     ///< (B, T, F): after GELU
  TensorView qkv;        ///< (B, T, 3C): gradient
  TensorView attention;  ///< workspace of attention
  TensorView products;   ///< u8
};

}  // namespace dstrain::model
