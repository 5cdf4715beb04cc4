#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/config/train_settings.h"

namespace dstrain::engine {

/// The checkpoint of a run with the best held-out loss.
struct BestCheckpoint {
  double metric = 0;
  std::int64_t step = 0;
  std::string directory{};  ///< from the output directory: "checkpoint-12"
};

/// Finds the best checkpoint among those of steps after which held-out data was evaluated. The same
/// on every rank. Without evaluation it keeps its initial value.
class BestTracker {
 public:
  BestTracker(const config::EvaluationSettings& settings, std::optional<BestCheckpoint> so_far);

  void evaluated(std::int64_t step, double loss);
  /// Whether a checkpoint of `step` would be the best one.
  [[nodiscard]] bool improves(std::int64_t step) const;
  /// The best checkpoint, if one of `step` is counted too.
  [[nodiscard]] std::optional<BestCheckpoint> including(std::int64_t step) const;
  /// Notes that a checkpoint of `step` is being written.
  void saving(std::int64_t step);
  /// Notes that the checkpoint of `step` is whole. No other is being written then.
  void saved(std::int64_t step);
  [[nodiscard]] const std::optional<BestCheckpoint>& best() const { return best_; }

 private:
  bool tracks_;
  bool greater_is_better_;
  std::optional<BestCheckpoint> best_;
  std::optional<BestCheckpoint> last_;     ///< the last evaluation
  std::optional<BestCheckpoint> pending_;  ///< being written, if it would be the best
};

}  // namespace dstrain::engine
