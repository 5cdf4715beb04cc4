#include "runtime/engine/evaluation.h"

#include <cmath>

#include "runtime/base/error.h"

namespace dstrain::engine {
void add_losses(Engine& engine, const MicroBatch& batch, Losses& own) {
  own.sum += engine.evaluate(batch);
  own.labels += counted_labels({&batch, 1});
}

double mean_loss(const Losses& own, comm::ControlGroup& control) {
  Losses total;
  for (const Losses& rank : control.gather(own)) {
    total.sum += rank.sum;
    total.labels += rank.labels;
  }
  const double mean = total.sum / static_cast<double>(total.labels);
  if (!std::isfinite(mean)) {
    fail(ErrorCode::diverged, "the held-out loss is {}: the weights are too large, or no numbers",
         std::abs(mean));
  }
  return mean;
}

double evaluate(Engine& engine, const data::EvaluationLoader& data, comm::ControlGroup& control) {
  data::SampleBuffer buffer(data.micro_batch(), data.sizes());
  Losses own;
  for (std::int64_t batch = 0; batch < data.batches(); ++batch) {
    data.fill(batch, buffer.rows());
    add_losses(engine, micro_batch(buffer.rows(), 0), own);
  }
  return mean_loss(own, control);
}

}  // namespace dstrain::engine
