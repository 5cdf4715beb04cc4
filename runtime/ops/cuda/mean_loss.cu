#include "runtime/ops/cuda/block_sum.h"
#include "runtime/ops/cuda/cuda_ops.h"
#include "runtime/ops/cuda/launch.h"
#include "runtime/ops/cuda/loss_sum.h"
#include "runtime/ops/cuda/row_parts.h"
#include "runtime/ops/elements.h"
#include "runtime/ops/mean_loss.h"

namespace dstrain::ops::gpu {
namespace {

constexpr int row_threads = 128;

template <class T>
struct MeanLoss {
  const T* values;
  const float* targets;  ///< null: `values` are the terms
  const std::int32_t* labels;
  const float* label_weight;  ///< null: no gradient
  float* losses;
  T* gradient;  ///< may alias `values`
  std::int64_t columns;
  float factor;  ///< of a term in the loss
  bool aligned;
};

/// One block per row. `squares`: there are targets.
template <class T, bool squares>
DSTRAIN_KERNEL(row_threads)
mean_loss_kernel(DSTRAIN_ARGUMENT MeanLoss<T> args) {
  constexpr int numel = pack_numel<T>;
  const std::int64_t row = block_x();
  const T* const values = args.values + row * args.columns;
  const float* const targets = squares ? args.targets + row * args.columns : nullptr;
  const auto errors = [&](const auto& part) {
    Pack<float, numel> all{};
    const auto x = part.load(values);
    part.each([&](int j) { all.at[j] = to_float(x.at[j]); });
    if constexpr (squares) {
      const auto target = part.load(targets);
      part.each([&](int j) { all.at[j] -= target.at[j]; });
    }
    return all;
  };
  const bool counts = args.labels[row] != ignored_label;
  float own = 0;
  if (counts) {
    for_parts<numel, row_threads>(args.columns, args.aligned, [&](const auto& part) {
      const auto error = errors(part);
      part.each([&](int j) { own += squares ? error.at[j] * error.at[j] : error.at[j]; });
    });
  }
  const float sum = shared<BlockSum<float, row_threads>>().add(own);
  if (thread() == 0) args.losses[row] = sum * args.factor;
  if (args.label_weight == nullptr) return;
  const float scale = counts ? args.factor * *args.label_weight : 0;
  T* const gradient = args.gradient + row * args.columns;
  for_parts<numel, row_threads>(args.columns, args.aligned, [&](const auto& part) {
    const auto error = errors(part);
    Pack<float, numel> out{};
    part.each([&](int j) {
      const float slope = squares ? 2 * scale * error.at[j] : scale;
      out.at[j] = counts ? slope : 0;
    });
    part.store(rounded<T>(out), gradient);
  });
}

}  // namespace

void mean_loss(const MeanLossArgs& args, StreamView stream) {
  const std::int64_t columns = args.values.shape()[1];
  with_element_type(args.values.dtype(), [&](auto element) {
    using T = decltype(element);
    MeanLoss<T> body{.values = elements<T>(args.values),
                     .targets = floats(args.targets),
                     .labels = elements<std::int32_t>(args.labels),
                     .label_weight = floats(args.label_weight),
                     .losses = floats(args.losses),
                     .gradient = elements<T>(args.gradient),
                     .columns = columns,
                     .factor = args.factor / static_cast<float>(columns),
                     .aligned = columns % pack_numel<T> == 0};
    body.aligned = body.aligned && are_aligned(body.values, body.targets, body.gradient);
    const bool squares = !args.targets.empty();
    launch("mean_loss", squares ? mean_loss_kernel<T, true> : mean_loss_kernel<T, false>,
           {.x = args.values.shape()[0],
            .threads = row_threads,
            .shared_bytes = sizeof(BlockSum<float, row_threads>)},
           body, stream);
  });
  add_losses("mean_loss", args.losses, args.loss_sum, stream);
}

}  // namespace dstrain::ops::gpu
