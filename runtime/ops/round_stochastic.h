#pragma once
#include <cstdint>

#include "runtime/device/stream.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

/// target[i] = source[i] rounded to one of its two neighbours in bf16 or f16, the nearer one with
/// the higher probability, so that the expected value is exact: sums of many small steps do not get
/// stuck (Gupta et al. 2015, arXiv 1502.02551). Values that need no rounding are unchanged. The
/// draws depend only on the key, the stream and the element's index: an element is rounded alike
/// however a tensor is cut, on any number of ranks and after a restart.
struct RoundStochasticArgs {
  TensorView source;         ///< f32, flat
  TensorView target;         ///< bf16 or f16, of the same numel
  TensorView key;            ///< (1) i64: of this step; read when the op runs
  std::uint32_t stream = 0;  ///< separates the draws of tensors
  std::int64_t first = 0;    ///< index of element 0 in its tensor

  /// Calls `visit` with each tensor.
  void for_each_tensor(const auto& visit) {
    visit(source);
    visit(target);
    visit(key);
  }
};

/// Element e of a tensor uses 16 bits of block 16 (e / 128) + e % 16 of Philox with the key as
/// seed: the lower half of word e % 128 / 32, or the upper half if e % 32 is 16 or more.
/// Asynchronous on `stream`.
void round_stochastic(const RoundStochasticArgs& args, StreamView stream);

}  // namespace dstrain::ops
