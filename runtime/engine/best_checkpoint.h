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

/// Finds it, among the checkpoints of steps after which held-out data was evaluated. The same on
/// every rank. Where nothing is evaluated it keeps what it began with.
class BestTracker {
 public:
  BestTracker(const config::EvaluationSettings& settings, std::optional<BestCheckpoint> so_far);

  void evaluated(std::int64_t step, double loss);
  /// Whether a checkpoint of `step` would be the best one.
  [[nodiscard]] bool improves(std::int64_t step) const;
  /// What a checkpoint of `step` says is the best one, itself included.
  [[nodiscard]] std::optional<BestCheckpoint> including(std::int64_t step) const;
  /// A checkpoint of `step` is being written ...
  void saving(std::int64_t step);
  /// ... and that of `step` is the last that is whole.
  void saved(std::int64_t step);
  [[nodiscard]] const std::optional<BestCheckpoint>& best() const { return best_; }

 private:
  bool tracks_;
  bool greater_is_better_;
  std::optional<BestCheckpoint> best_;
  std::optional<BestCheckpoint> last_;     ///< the last evaluation
  std::optional<BestCheckpoint> pending_;  ///< what is being written, if it would be the best
};

}  // namespace dstrain::engine
