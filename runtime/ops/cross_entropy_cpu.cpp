#include "runtime/ops/cross_entropy_cpu.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/base/label.h"
#include "runtime/numeric/parallel_for.h"
#include "runtime/ops/elements.h"
#include "runtime/ops/fast_exp.h"
#include "runtime/ops/lanes.h"
#include "runtime/ops/simd.h"

namespace dstrain::ops::cpu {
namespace {

/// Logits read at once: they stay in the first-level cache while their maximum and sum are
/// computed, and are few enough to sum in float before that sum is added in double.
constexpr std::int64_t block_numel = 1024;

/// The running state of a row's softmax.
struct Softmax {
  float largest = -std::numeric_limits<float>::max();
  double sum = 0;  ///< of e^(logit - largest)
};

/// One pass over memory: a larger logit scales the sum so far down (Milakov & Gimelshein 2018).
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

float gradient_scale(const CrossEntropyRows& rows) {
  return rows.factor * floats(rows.label_weight)[0];
}

/// The factors of a row's gradient: that of logit x is e^(x - largest) scale, minus
/// gradient_scale() at the label.
struct RowSoftmax {
  float largest;
  float scale;  ///< gradient_scale() / sum of e^(x - largest); 0 in rows that do not count
};

std::int32_t label_of(const TensorView& labels, std::int64_t row) {
  return elements<std::int32_t>(labels)[row];
}

RowSoftmax* row_softmax(const TensorView& view) {
  return elements<RowSoftmax>(view);
}

/// The loss of one row.
float row_loss(const CrossEntropyRows& rows, std::int64_t row) {
  RowSoftmax* const left = rows.label_weight.empty() ? nullptr : row_softmax(rows.softmax) + row;
  const std::int32_t label = label_of(rows.labels, row);
  if (label == ignored_label) {
    if (left != nullptr) *left = {0, 0};
    return 0;
  }
  const auto [largest, sum] = softmax(rows.logits, row);
  if (left != nullptr) {
    *left = {largest, static_cast<float>(static_cast<double>(gradient_scale(rows)) / sum)};
  }
  const double own = logit_of(rows.logits, row, label);
  return rows.factor * static_cast<float>(std::log(sum) - (own - static_cast<double>(largest)));
}

/// The gradient of one row of a piece, through a block of f32 in the first-level cache.
template <class T>
void row_gradient(const CrossEntropyRows& rows, std::int64_t piece, std::int64_t row, T* gradient) {
  const std::int64_t width = rows.logits.width(piece);
  const float* const logits = floats(rows.logits.piece(piece)) + row * width;
  const std::int32_t label = label_of(rows.labels, row);
  if (label == ignored_label) {
    std::fill(gradient, gradient + width, T{});
    return;
  }
  const auto [largest, scale] = row_softmax(rows.softmax)[row];
  const std::int64_t own = label - rows.logits.first_column(piece);
  alignas(64) float block[block_numel];
  for (std::int64_t begin = 0; begin < width; begin += block_numel) {
    const std::int64_t numel = std::min(block_numel, width - begin);
    gradient_kernel(logits + begin, numel, largest, scale, block);
    if (begin <= own && own < begin + numel) block[own - begin] -= gradient_scale(rows);
    store_kernel(block, numel, gradient + begin);
  }
}

void require_known(const TensorView& labels, std::int64_t classes) {
  const std::span<const std::int32_t> ids = host_access(labels).as<const std::int32_t>();
  for (const std::int32_t label : ids) {
    DSTRAIN_CHECK(label == ignored_label || (label >= 0 && label < classes),
                  "label {} of {} classes", label, classes);
  }
}

}  // namespace

void cross_entropy_losses(const CrossEntropyRows& rows, const TensorView& loss_sum) {
  require_known(rows.labels, rows.logits.columns());
  float* const losses = floats(rows.losses);
  parallel_for(rows.logits.rows(), [&](std::int64_t row) { losses[row] = row_loss(rows, row); });
  double& sum = *elements<double>(loss_sum);
  for (std::int64_t row = 0; row < rows.logits.rows(); ++row) {
    if (label_of(rows.labels, row) != ignored_label) sum += static_cast<double>(losses[row]);
  }
}

void cross_entropy_gradient(const CrossEntropyRows& rows,
                            std::int64_t piece,
                            const TensorView& gradient) {
  with_element_type(gradient.dtype(), [&](auto element) {
    auto* const values = elements<decltype(element)>(gradient);
    parallel_for(rows.logits.rows(), [&](std::int64_t row) {
      row_gradient(rows, piece, row, values + row * rows.logits.width(piece));
    });
  });
}

}  // namespace dstrain::ops::cpu
