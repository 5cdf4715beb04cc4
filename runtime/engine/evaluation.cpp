#include "runtime/engine/evaluation.h"

#include <cmath>

#include "runtime/base/error.h"

namespace dstrain::engine {
namespace {

/// The sum of the losses of some labels, and the number of labels that count.
struct Losses {
  double sum = 0;
  std::int64_t labels = 0;
};

}  // namespace

double evaluate(Engine& engine, const data::EvaluationLoader& data, comm::ControlGroup& control) {
  data::SampleBuffer buffer(data.micro_batch(), data.sizes());
  Losses own;
  for (std::int64_t batch = 0; batch < data.batches(); ++batch) {
    data.fill(batch, buffer.rows());
    const MicroBatch loaded = micro_batch(buffer.rows(), 0);
    own.sum += engine.evaluate(loaded);
    own.labels += counted_labels({&loaded, 1});
  }
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

}  // namespace dstrain::engine
