#pragma once
#include <cstdint>

#include "runtime/base/units.h"
#include "runtime/device/stream.h"
#include "runtime/ops/dropout_site.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

struct AttentionSizes {
  std::int64_t sequences;  ///< B
  std::int64_t tokens;     ///< T
  std::int64_t heads;      ///< H
  std::int64_t channels;   ///< C
};
/// Those of qkv (B, T, 3C) and logsumexp (B, H, T). Throws Error{internal} when they do not fit.
AttentionSizes attention_sizes(const TensorView& qkv, const TensorView& logsumexp);

/// Causal self-attention of H heads of D = C / H over packed projections; all dense. Query, key and
/// value of head h are columns [h D, (h + 1) D) of the first, second and third C columns of qkv.
/// Scores are scaled by 1 / sqrt(D); dropout falls on the probabilities. Activations and their
/// gradients are all of one float dtype; the arithmetic is f32.
/// Scores live in tiles of 64 x 64 (online softmax: Milakov & Gimelshein 2018, Dao et al. 2022);
/// T x T is never stored. 2 B T^2 C FLOP forward, 5 B T^2 C backward.
struct AttentionArgs {
  TensorView qkv;        ///< (B, T, 3C)
  TensorView output;     ///< (B, T, C): written
  TensorView logsumexp;  ///< (B, H, T) f32: written, for backward
  TensorView workspace;  ///< u8: at least attention_forward_workspace() bytes, 64-byte aligned
  DropoutSite dropout;
};

/// Bytes that forward and backward need beside their tensors on a kind of device, whether there is
/// one here or not. CPU: for each of min(B H, 64) heads that may be at work at once about 2 T D and
/// 3 T D floats, with T rounded up to 64 and D to 16. CUDA: none and about B T C floats.
Bytes attention_forward_workspace(const AttentionSizes& sizes, DeviceKind device);
Bytes attention_backward_workspace(const AttentionSizes& sizes, DeviceKind device);

/// Parallel over sequences and heads. Asynchronous on `stream`.
void attention_forward(const AttentionArgs& args, StreamView stream);

/// What forward read and wrote, and the gradients.
struct AttentionBackwardArgs {
  TensorView qkv;              ///< (B, T, 3C)
  TensorView output;           ///< (B, T, C)
  TensorView logsumexp;        ///< (B, H, T) f32
  TensorView output_gradient;  ///< (B, T, C)
  TensorView qkv_gradient;     ///< (B, T, 3C): overwritten
  TensorView workspace;        ///< u8: at least attention_backward_workspace() bytes
  DropoutSite dropout;         ///< as in forward
};

/// Parallel over sequences and heads. Asynchronous on `stream`.
void attention_backward(const AttentionBackwardArgs& args, StreamView stream);

}  // namespace dstrain::ops
