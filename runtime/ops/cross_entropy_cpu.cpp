#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/device/cpu_stream_access.h"
#include "runtime/ops/chunks.h"
#include "runtime/ops/cpu_ops.h"
#include "runtime/ops/cross_entropy.h"
#include "runtime/ops/elements.h"
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
void gradient_kernel(
    const float* logits, std::int64_t count, float largest, float scale, float* gradient) {
  for (std::int64_t i = 0; i < count; ++i) {
    gradient[i] = fast_exp2((logits[i] - largest) * log2_e) * scale;
  }
}

template <class T>
DSTRAIN_SIMD_CLONES void store_kernel(const float* values, std::int64_t count, T* to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = from_float<T>(values[i]);
}

Softmax softmax(const LogitPieces& logits, std::int64_t row) {
  Softmax result;
  for (std::int64_t piece = 0; piece < logits.count(); ++piece) {
    const std::int64_t width = logits.width(piece);
    softmax_kernel(floats(logits.piece(piece)) + row * width, width, result);
  }
  return result;
}

float logit_of(const LogitPieces& logits, std::int64_t row, std::int64_t column) {
  const std::int64_t piece = column / logits.piece_columns;
  return floats(logits.piece(piece))[row * logits.width(piece) + column % logits.piece_columns];
}

/// What the gradient of a row is made of: that of logit x is e^(x - largest) scale, less
/// label_weight at the label.
struct RowSoftmax {
  float largest;
  float scale;  ///< label_weight / sum of e^(x - largest); 0 in rows that do not count
};

std::int32_t label_of(const TensorView& labels, std::int64_t row) {
  return elements<std::int32_t>(labels)[row];
}

RowSoftmax* row_softmax(const TensorView& view) {
  return elements<RowSoftmax>(view);
}

/// The loss of one row.
float row_loss(const CrossEntropyArgs& args, std::int64_t row) {
  RowSoftmax* const left = args.label_weight.empty() ? nullptr : row_softmax(args.softmax) + row;
  const std::int32_t label = label_of(args.labels, row);
  if (label == ignored_label) {
    if (left != nullptr) *left = {0, 0};
    return 0;
  }
  const auto [largest, sum] = softmax(args.logits, row);
  if (left != nullptr) {
    *left = {largest, static_cast<float>(static_cast<double>(floats(args.label_weight)[0]) / sum)};
  }
  const double own = logit_of(args.logits, row, label);
  return static_cast<float>(std::log(sum) - (own - static_cast<double>(largest)));
}

/// The gradient of one row of a piece, through a block of f32 in the first-level cache.
template <class T>
void piece_gradient(const CrossEntropyArgs& args, std::int64_t piece, std::int64_t row) {
  const std::int64_t width = args.logits.width(piece);
  const float* const logits = floats(args.logits.piece(piece)) + row * width;
  T* const gradient = elements<T>(args.logits.gradient(piece)) + row * width;
  const std::int32_t label = label_of(args.labels, row);
  if (label == ignored_label) {
    std::fill(gradient, gradient + width, T{});
    return;
  }
  const auto [largest, scale] = row_softmax(args.softmax)[row];
  const std::int64_t own = label - args.logits.first_column(piece);
  alignas(64) float block[block_numel];
  for (std::int64_t begin = 0; begin < width; begin += block_numel) {
    const std::int64_t numel = std::min(block_numel, width - begin);
    gradient_kernel(logits + begin, numel, largest, scale, block);
    if (begin <= own && own < begin + numel) block[own - begin] -= floats(args.label_weight)[0];
    store_kernel(block, numel, gradient + begin);
  }
}

/// While the row is in cache.
void row_gradient(const CrossEntropyArgs& args, std::int64_t row) {
  for (std::int64_t piece = 0; piece < args.logits.count(); ++piece) {
    piece_gradient<float>(args, piece, row);
  }
}

/// A piece is overwritten when all rows have read it.
void rounded_gradient(const CrossEntropyArgs& args) {
  for (std::int64_t piece = 0; piece < args.logits.count(); ++piece) {
    parallel_for(args.logits.rows(),
                 [&](std::int64_t row) { piece_gradient<BFloat16>(args, piece, row); });
  }
}

void require_known(const TensorView& labels, std::int64_t vocabulary) {
  for (const std::int32_t label : host_access(labels).as<const std::int32_t>()) {
    DSTRAIN_CHECK(label == ignored_label || (label >= 0 && label < vocabulary),
                  "label {} of a vocabulary of {}", label, vocabulary);
  }
}

}  // namespace

namespace cpu {

void cross_entropy(const CrossEntropyArgs& args, StreamView stream) {
  cpu_stream(stream).launch([args] {
    const std::int64_t rows = args.logits.rows();
    require_known(args.labels, args.logits.columns());
    const bool in_place = !args.label_weight.empty() && args.logits.rounded.empty();
    float* const losses = floats(args.losses);
    parallel_for(rows, [&](std::int64_t row) {
      losses[row] = row_loss(args, row);
      if (in_place) row_gradient(args, row);
    });
    double& sum = *elements<double>(args.loss_sum);
    for (std::int64_t row = 0; row < rows; ++row) {
      if (label_of(args.labels, row) != ignored_label) sum += static_cast<double>(losses[row]);
    }
    if (!args.logits.rounded.empty() && !args.label_weight.empty()) rounded_gradient(args);
  });
}

}  // namespace cpu
}  // namespace dstrain::ops
