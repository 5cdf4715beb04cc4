#include "runtime/engine/best_checkpoint.h"

#include <utility>

#include "runtime/checkpoint/catalog.h"

namespace dstrain::engine {

BestTracker::BestTracker(const config::EvaluationSettings& settings,
                         std::optional<BestCheckpoint> so_far)
    : tracks_(settings.enabled),
      greater_is_better_(settings.greater_is_better),
      best_(std::move(so_far)) {}

void BestTracker::evaluated(std::int64_t step, double loss) {
  last_ = {loss, step, checkpoint::directory_name(step)};
}

bool BestTracker::improves(std::int64_t step) const {
  if (!tracks_ || !last_ || last_->step != step) return false;
  if (!best_) return true;
  return greater_is_better_ ? last_->metric > best_->metric : last_->metric < best_->metric;
}

void BestTracker::saving(std::int64_t step) {
  pending_ = improves(step) ? last_ : std::nullopt;
}

void BestTracker::saved(std::int64_t step) {
  if (pending_ && pending_->step == step) best_ = pending_;
  pending_.reset();
}

std::optional<BestCheckpoint> BestTracker::including(std::int64_t step) const {
  return improves(step) ? last_ : best_;
}

}  // namespace dstrain::engine
