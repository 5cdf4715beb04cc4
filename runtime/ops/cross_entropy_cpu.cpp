#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/ops/checks.h"
#include "runtime/ops/chunks.h"
#include "runtime/ops/cross_entropy.h"
#include "runtime/ops/fast_exp.h"
#include "runtime/ops/lanes.h"
#include "runtime/ops/simd.h"

namespace dstrain::ops {
namespace {

/// Logits read at once: they stay in the first-level cache while their maximum and sum are taken,
/// and are few enough to add in float before they join a sum in double.
constexpr std::int64_t block_numel = 1024;

/// What is known of a row's softmax after some of its logits.
struct Softmax {
  float largest = -std::numeric_limits<float>::max();
  double sum = 0;  ///< of e^(logit - largest)
};

/// One pass over memory: the sum so far is scaled down when a larger logit comes (Milakov &
/// Gimelshein 2018).
DSTRAIN_SIMD_CLONES
void softmax_kernel(const float* logits, std::int64_t count, Softmax& softmax) {
  for (std::int64_t begin = 0; begin < count; begin += block_numel) {
    const float* const x = logits + begin;
    const std::int64_t numel = std::min(block_numel, count - begin);
    const float before = softmax.largest;
    const float largest = max_lanes(x, numel, before);
    const float sum = sum_lanes(
        numel, [x, largest](std::int64_t i) { return fast_exp2((x[i] - largest) * log2_e); });
    softmax.sum = softmax.sum * static_cast<double>(fast_exp2((before - largest) * log2_e)) +
                  static_cast<double>(sum);
    softmax.largest = largest;
  }
}

DSTRAIN_SIMD_CLONES
void gradient_kernel(float* logits, std::int64_t count, float largest, float scale) {
  for (std::int64_t i = 0; i < count; ++i) {
    logits[i] = fast_exp2((logits[i] - largest) * log2_e) * scale;
  }
}

/// The part of row `row` in each piece, in turn.
template <class Body>
void each_piece(const LogitPieces& logits, std::int64_t row, Body body) {
  for (std::int64_t piece = 0; piece < logits.count(); ++piece) {
    const std::int64_t width = logits.width(piece);
    body(floats(logits.piece(piece)) + row * width, width);
  }
}

Softmax softmax(const LogitPieces& logits, std::int64_t row) {
  Softmax result;
  each_piece(logits, row,
             [&](const float* part, std::int64_t width) { softmax_kernel(part, width, result); });
  return result;
}

float& logit_of(const LogitPieces& logits, std::int64_t row, std::int64_t column) {
  const std::int64_t piece = column / logits.piece_columns;
  return floats(logits.piece(piece))[row * logits.width(piece) + column % logits.piece_columns];
}

/// One row: the loss, and with `gradient` the logits overwritten by their gradient.
float row_loss(const CrossEntropyArgs& args, std::int64_t row, bool gradient) {
  const LogitPieces& logits = args.logits;
  const std::int32_t label = args.labels[static_cast<std::size_t>(row)];
  if (label == ignored_label) {
    if (gradient) {
      each_piece(logits, row,
                 [](float* part, std::int64_t width) { std::fill(part, part + width, 0.0F); });
    }
    return 0;
  }
  const auto [largest, sum] = softmax(logits, row);
  float& own = logit_of(logits, row, label);
  const double loss = std::log(sum) - (static_cast<double>(own) - static_cast<double>(largest));
  if (gradient) {
    const auto scale = static_cast<float>(static_cast<double>(args.label_weight) / sum);
    each_piece(logits, row, [largest = largest, scale](float* part, std::int64_t width) {
      gradient_kernel(part, width, largest, scale);
    });
    own -= args.label_weight;
  }
  return static_cast<float>(loss);
}

void launch(const CrossEntropyArgs& args, bool gradient, StreamView stream) {
  const Shape& shape = args.logits.values.shape();
  DSTRAIN_CHECK(shape.rank() == 2 && args.logits.piece_columns > 0,
                "logits {} are not (R, V) in pieces of {}", to_string(shape),
                args.logits.piece_columns);
  require_f32(args.logits.values, shape, "logits");
  require_f32(args.losses, {shape[0]}, "losses");
  DSTRAIN_CHECK(static_cast<std::int64_t>(args.labels.size()) == shape[0], "{} labels for {}",
                args.labels.size(), to_string(shape));
  DSTRAIN_CHECK(args.loss_sum != nullptr && args.label_count != nullptr, "no place for the loss");
  for (const std::int32_t label : args.labels) {
    DSTRAIN_CHECK(label == ignored_label || (label >= 0 && label < shape[1]),
                  "label {} of a vocabulary of {}", label, shape[1]);
  }
  stream.launch([args, gradient] {
    const std::int64_t rows = args.logits.rows();
    float* const losses = floats(args.losses);
    parallel_for(rows, [&](std::int64_t row) { losses[row] = row_loss(args, row, gradient); });
    for (std::int64_t row = 0; row < rows; ++row) {
      if (args.labels[static_cast<std::size_t>(row)] == ignored_label) continue;
      *args.loss_sum += static_cast<double>(losses[row]);
      ++*args.label_count;
    }
  });
}

}  // namespace

void cross_entropy_forward(const CrossEntropyArgs& args, StreamView stream) {
  launch(args, false, stream);
}

void cross_entropy_backward(const CrossEntropyArgs& args, StreamView stream) {
  launch(args, true, stream);
}

}  // namespace dstrain::ops
