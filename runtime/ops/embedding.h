#pragma once
#include "runtime/device/stream.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

/// output[b, t] = token_table[tokens[b, t]] [+ position_table[past[b] + t - first_position[b, t]]];
/// all dense, all f32, all bf16 or all f16.
struct EmbeddingArgs {
  TensorView tokens;            ///< (B, T) i32, each in [0, V)
  TensorView first_position{};  ///< (B, T) i32 in [0, t]: start of positions; empty: 0
  TensorView past{};            ///< (B) i32: positions before token 0; empty: 0
  TensorView token_table;       ///< (V, C)
  TensorView position_table{};  ///< (P, C), P >= past + T; or empty
  TensorView output;            ///< (B, T, C)

  /// Calls `visit` with each tensor.
  void for_each_tensor(const auto& visit) {
    visit(tokens);
    visit(first_position);
    visit(past);
    visit(token_table);
    visit(position_table);
    visit(output);
  }
};

/// A token or a position outside its table is a bug; on the CPU it is an Error{internal} of the
/// stream. Asynchronous on `stream`.
void embedding_forward(const EmbeddingArgs& args, StreamView stream);

/// Gradients of both tables, f32, each overwritten or added to; all dense.
struct EmbeddingBackwardArgs {
  TensorView tokens;  ///< (B, T) i32, as in forward, like the next
  TensorView first_position{};
  TensorView output_gradient;    ///< (B, T, C) f32, bf16 or f16
  TensorView token_gradient;     ///< (V, C); empty: not computed
  TensorView position_gradient;  ///< (P, C); likewise
  bool accumulate_token = false;
  bool accumulate_position = false;

  /// Calls `visit` with each tensor.
  void for_each_tensor(const auto& visit) {
    visit(tokens);
    visit(first_position);
    visit(output_gradient);
    visit(token_gradient);
    visit(position_gradient);
  }
};

/// Adds rows in the order of the tokens. Work is split by columns, so no two threads share a row's
/// elements. Asynchronous on `stream`.
void embedding_backward(const EmbeddingBackwardArgs& args, StreamView stream);

}  // namespace dstrain::ops
