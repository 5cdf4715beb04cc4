#pragma once
#include "runtime/model/unit.h"

namespace dstrain::model {

/// A weight (K, N): whole, or in tiles of rows, as in DeepSpeed's TiledLinear with in_splits. Then
/// the output is the sum of what the tiles make of their columns of the input, added in f32; they
/// are taken in order in forward, the last one first in backward.
struct LinearWeight {
  TensorView whole{};         ///< empty when in tiles
  GradientTarget gradient{};  ///< likewise
  std::span<const ParameterTile> tiles{};
  std::size_t first_tile = 0;  ///< the index of tiles[0] for the lender
  TileLender* lender = nullptr;
};
/// The weight that is `parameter` of a unit in a call.
LinearWeight weight_of(const UnitCall& call, const UnitSpec& spec, std::size_t parameter);

/// Tiles of equal numbers of rows, `splits` at most and the last perhaps shorter, for a parameter
/// with `rows` rows.
std::vector<ParameterTile> split_rows(std::size_t parameter,
                                      std::int64_t rows,
                                      std::int64_t splits);

/// Bytes of workspace for the forward and backward of a linear layer: what its products need and,
/// in tiles, the columns of the input that belong to one, and an f32 sum when outputs are rounded.
struct LinearSizes {
  std::int64_t rows = 0;
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
};
Bytes linear_workspace(const LinearSizes& sizes, const UnitOptions& options);

// The `workspace` of the calls is u8, of at least linear_workspace() bytes.

/// output (..., N) = input (..., K) weight (K, N) + bias (N): Hugging Face's Conv1D.
struct LinearArgs {
  TensorView input;
  LinearWeight weight;
  TensorView bias;
  TensorView output;
  TensorView active{};  ///< (..., N) or empty: becomes gelu(output)
};
void linear_forward(const LinearArgs& args, const TensorView& workspace, StreamView stream);

/// Gradients of weight and bias from input (..., K) and output_gradient (..., N). The weight must
/// not be used after that. With `over_input` the gradient of the input takes its place.
struct LinearBackwardArgs {
  TensorView input;
  TensorView output_gradient;
  LinearWeight weight;
  GradientTarget bias;
  bool over_input = false;
};
void linear_backward(const LinearBackwardArgs& args,
                     const TensorView& workspace,
                     StreamView stream);

/// input_gradient (..., K) = output_gradient (..., N) weight (K, N) transposed, where the input is
/// needed later. With `inner` the input is gelu(inner), and the gradient becomes that of `inner`.
struct LinearInputGradient {
  TensorView output_gradient;
  LinearWeight weight;
  TensorView input_gradient;
  TensorView inner{};   ///< (..., K) or empty
  TensorView active{};  ///< (..., K) with `inner`: becomes gelu(inner)
};
void linear_backward_input(const LinearInputGradient& args,
                           const TensorView& workspace,
                           StreamView stream);

}  // namespace dstrain::model
