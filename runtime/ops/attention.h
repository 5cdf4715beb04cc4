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

/// The most features of a head, where there is a limit.
constexpr std::int64_t attention_head_size_max(DeviceKind device) {
  return device == DeviceKind::cuda ? 256 : std::numeric_limits<std::int64_t>::max();
}

struct AttentionSizes {
  std::int64_t sequences;  ///< B
  std::int64_t tokens;     ///< T: queries of a sequence
  std::int64_t keys;       ///< S: keys of a sequence; T where it attends to itself
  std::int64_t heads;      ///< H, of queries
  std::int64_t kv_heads;   ///< K, of keys and values, of which H / K heads share one
  std::int64_t head_size;  ///< D
  [[nodiscard]] constexpr std::int64_t group() const { return heads / kv_heads; }
};

/// What a query sees, and how its scores come about.
struct AttentionRule {
  bool causal = true;         ///< only keys up to its own position
  std::int64_t window = 0;    ///< only so many keys, up to its own position; 0: all. If causal
  float divisor = 1;          ///< of the scores, positive; commonly sqrt(D)
  Rotary rotary{};            ///< turns queries and keys
  RelativeBuckets buckets{};  ///< of the bias that scores get behind the division
};

/// Attention of H heads. Query and output have columns [h D, (h + 1) D) for head h, key and value
/// columns [k D, (k + 1) D) for head k = h / (H / K). Their rows may be strided, so that they may
/// be packed in one tensor. Dropout falls on the probabilities. Activations and their gradients are
/// all of one float dtype; the arithmetic is f32, but that devices may round what they multiply to
/// the dtype.
/// Scores live in tiles of 64 x 64 (online softmax: Milakov & Gimelshein 2018, Dao et al. 2022);
/// T x S is never stored. 4 B T S H D FLOP forward, 10 backward, and half of that if causal.
struct AttentionArgs {
  AttentionSizes sizes{};
  AttentionRule rule{};
  TensorView query;        ///< (B T, H D)
  TensorView key;          ///< (B S, K D)
  TensorView value;        ///< (B S, K D)
  TensorView key_count{};  ///< (B) i32 in [1, S]: so many keys of a sequence count; or empty: all
  /// (B, T) i32 in [0, t], never less than that of the query before: queries see no key before
  /// this one, such as those of other documents; or empty. If causal.
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

/// Bytes that forward and backward need beside their tensors on a kind of device, whether there is
/// one here or not. CPU: the angles of a rotary embedding and, for each of min(B K, 64) heads that
/// may be at work at once, about 2 S D and 3 T D floats, with T and S rounded up to 64 and D to 16;
/// where heads share keys, 2 S D more in backward. CUDA: none and B H T floats, and some by bias;
/// with a rotary embedding two bytes for each element of queries and keys, and in backward up to
/// 1.25 GiB of gradients of scores (ScoreGradients), which f32 leaves alone.
Bytes attention_forward_workspace(const AttentionSizes& sizes,
                                  const AttentionRule& rule,
                                  DeviceKind device);
Bytes attention_backward_workspace(const AttentionSizes& sizes,
                                   const AttentionRule& rule,
                                   DeviceKind device);

/// Parallel over sequences and heads of keys. Asynchronous on `stream`.
void attention_forward(const AttentionArgs& args, StreamView stream);

/// What forward read and wrote, and the gradients.
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
  TensorView query_gradient;   ///< (B T, H D): overwritten, as the next two
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
