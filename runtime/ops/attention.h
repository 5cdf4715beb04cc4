#pragma once
#include <cstdint>
#include <limits>

#include "runtime/base/units.h"
#include "runtime/device/device.h"
#include "runtime/device/stream.h"
#include "runtime/ops/dropout_site.h"
#include "runtime/ops/relative_buckets.h"
#include "runtime/ops/rotary.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

/// Returns the largest head size; if there is no limit, the largest number.
constexpr std::int64_t attention_head_size_max(DeviceKind device) {
  return device == DeviceKind::cuda ? 256 : std::numeric_limits<std::int64_t>::max();
}

struct AttentionSizes {
  std::int64_t sequences;  ///< B
  std::int64_t tokens;     ///< T: queries of a sequence
  std::int64_t keys;       ///< S: keys of a sequence; T for self-attention
  std::int64_t heads;      ///< H, of queries
  std::int64_t kv_heads;   ///< K, of keys and values; H / K heads of queries share one
  std::int64_t head_size;  ///< D
  [[nodiscard]] constexpr std::int64_t group() const { return heads / kv_heads; }
};

/// Which keys a query sees, and how scores are computed.
struct AttentionRule {
  bool causal = true;         ///< only keys up to its own position
  std::int64_t window = 0;    ///< visible keys, up to its own position; 0: all. If causal
  float divisor = 1;          ///< of the scores, positive; commonly sqrt(D)
  Rotary rotary{};            ///< rotates queries and keys
  RelativeBuckets buckets{};  ///< of the bias added to scores after the division
};

/// Attention of H heads. Query and output have columns [h D, (h + 1) D) for head h; key and value
/// have columns [k D, (k + 1) D) for head k = h / (H / K). Rows may be strided, so that the tensors
/// may be packed in one. Dropout applies to the probabilities. Activations and their gradients have
/// one float dtype. The arithmetic is f32, but devices may round the operands of products to the
/// dtype.
/// Scores are computed in tiles of 64 x 64 (online softmax: Milakov & Gimelshein 2018, Dao et al.
/// 2022); T x S is never stored. 4 B T S H D FLOP forward, 10 backward; half of that if causal.
struct AttentionArgs {
  AttentionSizes sizes{};
  AttentionRule rule{};
  TensorView query;        ///< (B T, H D)
  TensorView key;          ///< (B S, K D)
  TensorView value;        ///< (B S, K D)
  TensorView key_count{};  ///< (B) i32 in [1, S]: number of valid keys of a sequence; empty: all
  /// (B, T) i32 in [0, t], not decreasing along a sequence: queries see no key before this one,
  /// such as keys of other documents; or empty. Requires causal.
  TensorView first_key{};
  TensorView bias{};       ///< (buckets, H), if there are any
  TensorView output;       ///< (B T, H D): written
  TensorView logsumexp;    ///< (B, H, T) f32: written, for backward
  TensorView workspace{};  ///< u8: at least attention_forward_workspace() bytes, 64-byte aligned
  DropoutSite dropout{};

  /// Calls `visit` with each tensor.
  void for_each_tensor(const auto& visit) {
    visit(query);
    visit(key);
    visit(value);
    visit(key_count);
    visit(first_key);
    visit(bias);
    visit(output);
    visit(logsumexp);
    visit(workspace);
    visit(dropout.counter);
  }
};

/// Returns the bytes that forward and backward need in addition to their tensors on a kind of
/// device, which need not be present. CPU: the angles of a rotary embedding and, for each of min(B
/// K, 64) heads in progress at once, about 2 S D and 3 T D floats, with T and S rounded up to 64
/// and D to 16; if heads share keys, 2 S D more in backward. CUDA: none in forward and B H T floats
/// in backward, and some for biases; with a rotary embedding, two bytes per element of queries and
/// keys; in backward up to 1.25 GiB of gradients of scores (ScoreGradients), but not for f32.
Bytes attention_forward_workspace(const AttentionSizes& sizes,
                                  const AttentionRule& rule,
                                  DeviceKind device);
Bytes attention_backward_workspace(const AttentionSizes& sizes,
                                   const AttentionRule& rule,
                                   DeviceKind device);

/// Parallel over sequences and heads of keys. Asynchronous on `stream`.
void attention_forward(const AttentionArgs& args, StreamView stream);

/// The tensors that forward read and wrote, and the gradients.
struct AttentionBackwardArgs {
  AttentionSizes sizes{};
  AttentionRule rule{};
  TensorView query;
  TensorView key;
  TensorView value;
  TensorView key_count{};
  TensorView first_key{};
  TensorView bias{};
  TensorView output;
  TensorView logsumexp;
  TensorView output_gradient;  ///< (B T, H D)
  TensorView query_gradient;   ///< (B T, H D): overwritten, like the next two
  TensorView key_gradient;     ///< (B S, K D)
  TensorView value_gradient;   ///< (B S, K D)
  TensorView bias_gradient{};  ///< (buckets, H) f32: written or added to; or empty
  bool accumulate_bias = false;
  TensorView workspace;   ///< u8: at least attention_backward_workspace() bytes
  DropoutSite dropout{};  ///< as in forward

  /// Calls `visit` with each tensor.
  void for_each_tensor(const auto& visit) {
    visit(query);
    visit(key);
    visit(value);
    visit(key_count);
    visit(first_key);
    visit(bias);
    visit(output);
    visit(logsumexp);
    visit(output_gradient);
    visit(query_gradient);
    visit(key_gradient);
    visit(value_gradient);
    visit(bias_gradient);
    visit(workspace);
    visit(dropout.counter);
  }
};

/// Parallel over sequences and heads of keys. Asynchronous on `stream`.
void attention_backward(const AttentionBackwardArgs& args, StreamView stream);

}  // namespace dstrain::ops
