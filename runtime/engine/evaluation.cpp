#include "runtime/engine/evaluation.h"

#include <cmath>
#include <vector>

#include "runtime/base/error.h"

namespace dstrain::engine {
namespace {

/// Of some labels: their sum, and how many count.
struct Losses {
  double sum = 0;
  std::int64_t labels = 0;
};

}  // namespace

double evaluate(Engine& engine,
                const data::EvaluationLoader& data,
                model::BatchShape shape,
                comm::ControlGroup& control) {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(shape.rows()));
  std::vector<std::int32_t> labels(tokens.size());
  Losses own;
  for (std::int64_t batch = 0; batch < data.batches(); ++batch) {
    data.fill(batch, tokens, labels);
    const MicroBatch loaded{tokens, labels, 0};
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
