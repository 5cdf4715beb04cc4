#include "runtime/engine/evaluation.h"

#include <cmath>

#include "runtime/base/error.h"

namespace dstrain::engine {
namespace {

double mean_of(const Losses& losses) {
  return losses.sum / static_cast<double>(losses.labels);
}

std::int64_t bytes_of(std::span<const std::int32_t> labels,
                      std::span<const std::int32_t> text_bytes) {
  std::int64_t bytes = 0;
  for (const std::int32_t label : labels) {
    const bool known = label >= 0 && label < std::ssize(text_bytes);
    if (known) bytes += text_bytes[static_cast<std::size_t>(label)];
  }
  return bytes;
}

}  // namespace

void add_losses(Engine& engine, const MicroBatch& batch, Losses& own) {
  own.sum += engine.evaluate(batch);
  own.labels += counted_labels({&batch, 1});
}

Losses total_losses(const Losses& own, comm::ControlGroup& control) {
  Losses total;
  for (const Losses& rank : control.gather(own)) {
    total.sum += rank.sum;
    total.labels += rank.labels;
    total.bytes += rank.bytes;
  }
  const double mean = mean_of(total);
  if (!std::isfinite(mean)) {
    fail(ErrorCode::diverged, "the held-out loss is {}: the weights are too large, or no numbers",
         std::abs(mean));
  }
  return total;
}

double mean_loss(const Losses& own, comm::ControlGroup& control) {
  return mean_of(total_losses(own, control));
}

Losses add_all_losses(Engine& engine,
                      const data::EvaluationLoader& data,
                      comm::ControlGroup& control,
                      const EvaluationOptions& options) {
  data::SampleBuffer buffer(data.micro_batch(), data.sizes());
  Losses own;
  for (std::int64_t batch = 0; batch < data.batches(); ++batch) {
    data.fill(batch, buffer.rows());
    add_losses(engine, micro_batch(buffer.rows(), 0), own);
    own.bytes += bytes_of(buffer.rows().labels, options.text_bytes);
    if (options.progress) options.progress(batch + 1);
  }
  return total_losses(own, control);
}

double evaluate(Engine& engine, const data::EvaluationLoader& data, comm::ControlGroup& control) {
  return mean_of(add_all_losses(engine, data, control));
}

}  // namespace dstrain::engine
