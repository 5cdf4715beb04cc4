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

/// Terms added in float before they join a sum in double.
constexpr std::int64_t float_sum_numel = 1024;

struct Softmax {
  float largest;
  double sum;  ///< of e^(logit - largest)
};

DSTRAIN_SIMD_CLONES
Softmax softmax_kernel(const float* logits, std::int64_t count) {
  Softmax result{max_lanes(logits, count, -std::numeric_limits<float>::max()), 0};
  for (std::int64_t begin = 0; begin < count; begin += float_sum_numel) {
    const float* const x = logits + begin;
    const float largest = result.largest;
    result.sum += static_cast<double>(
        sum_lanes(std::min(float_sum_numel, count - begin),
                  [x, largest](std::int64_t i) { return fast_exp(x[i] - largest); }));
  }
  return result;
}

DSTRAIN_SIMD_CLONES
void gradient_kernel(float* logits, std::int64_t count, float largest, float scale) {
  for (std::int64_t i = 0; i < count; ++i) logits[i] = fast_exp(logits[i] - largest) * scale;
}

/// One row: the loss, and with `gradient` the logits overwritten by their gradient.
float row_loss(const CrossEntropyArgs& args, std::int64_t row, bool gradient) {
  const std::int64_t columns = args.logits.shape()[1];
  float* const logits = floats(args.logits) + row * columns;
  const std::int32_t label = args.labels[static_cast<std::size_t>(row)];
  if (label == ignored_label) {
    if (gradient) std::fill(logits, logits + columns, 0.0F);
    return 0;
  }
  const Softmax softmax = softmax_kernel(logits, columns);
  const double loss = std::log(softmax.sum) -
                      (static_cast<double>(logits[label]) - static_cast<double>(softmax.largest));
  if (gradient) {
    const auto scale = static_cast<float>(static_cast<double>(args.label_weight) / softmax.sum);
    gradient_kernel(logits, columns, softmax.largest, scale);
    logits[label] -= args.label_weight;
  }
  return static_cast<float>(loss);
}

void launch(const CrossEntropyArgs& args, bool gradient, StreamView stream) {
  const Shape& shape = args.logits.shape();
  DSTRAIN_CHECK(shape.rank() == 2, "logits {} are not (R, V)", to_string(shape));
  require_f32(args.logits, shape, "logits");
  require_f32(args.losses, {shape[0]}, "losses");
  DSTRAIN_CHECK(static_cast<std::int64_t>(args.labels.size()) == shape[0], "{} labels for {}",
                args.labels.size(), to_string(shape));
  DSTRAIN_CHECK(args.loss_sum != nullptr && args.label_count != nullptr, "no place for the loss");
  for (const std::int32_t label : args.labels) {
    DSTRAIN_CHECK(label == ignored_label || (label >= 0 && label < shape[1]),
                  "label {} of a vocabulary of {}", label, shape[1]);
  }
  stream.launch([args, gradient] {
    const std::int64_t rows = args.logits.shape()[0];
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
