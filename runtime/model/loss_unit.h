#pragma once
#include "runtime/model/unit_plan.h"

namespace dstrain::model {

/// Returns the rows, out of `rows`, that a unit that computes the loss processes at a time. At most
/// 1024, so that only the logits of those exist, and enough that reading (in 16 bits also packing)
/// all of the classifier's weight for each chunk costs little.
std::int64_t loss_chunk_rows(std::int64_t rows);

/// A recorded unit that ends in the layers of losses. All its layers work on each row
/// independently: they run forward and backward over some rows, then over the next ones.
class LossUnit final : public Unit {
 public:
  explicit LossUnit(UnitRecord record);
  [[nodiscard]] const UnitSpec& spec() const override { return record_.spec; }
  /// The forward of the result computes the loss or, with call.logits, the logits of all positions,
  /// or of the last of each sequence. Its backward computes loss and gradients together.
  [[nodiscard]] std::unique_ptr<const PlannedUnit> plan(BatchShape shape) const override;
  [[nodiscard]] Bytes cache_bytes(const CacheShape& /*shape*/) const override { return 0; }
  [[nodiscard]] std::vector<CachedTensor> cached(const CacheCall& /*cache*/) const override {
    return {};
  }

  [[nodiscard]] const UnitRecord& record() const { return record_; }
  [[nodiscard]] const UnitPlan& steps() const { return plan_; }

 private:
  class Chunk;
  class Planned;

  UnitRecord record_;
  UnitPlan plan_;
  int first_loss_;  ///< of the steps of forward, the others follow it
};

}  // namespace dstrain::model
