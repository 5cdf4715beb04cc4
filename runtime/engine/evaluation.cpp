#include "runtime/engine/evaluation.h"

#include <vector>
namespace dstrain::engine {

double evaluate(Engine& engine,
                const data::EvaluationLoader& data,
                model::BatchShape shape,
                comm::ControlGroup& control) {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(shape.rows()));
  std::vector<std::int32_t> labels(tokens.size());
  model::LossSum own;
  for (std::int64_t batch = 0; batch < data.batches(); ++batch) {
    data.fill(batch, tokens, labels);
    const model::LossSum loss = engine.evaluate({tokens, labels, 0});
    own.sum += loss.sum;
    own.labels += loss.labels;
  }
  model::LossSum total;
  for (const model::LossSum& rank : control.gather(own)) {
    total.sum += rank.sum;
    total.labels += rank.labels;
  }
  return total.sum / static_cast<double>(total.labels);
}

}  // namespace dstrain::engine
