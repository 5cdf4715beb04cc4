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
  [[nodiscard]] UnitMemory memory(BatchShape shape) const override;
  /// Computes the loss or, with call.logits, the logits of all positions, or of the last of each
  /// sequence.
  void forward(const UnitCall& call, StreamView stream) const override;
  /// Computes loss and gradients together.
  void backward(const UnitCall& call, StreamView stream) const override;

 private:
  class Chunk;
  /// Bytes of the last rows of that many sequences, dense.
  [[nodiscard]] Bytes copied_bytes(std::int64_t rows) const;
  void last_logits(const UnitCall& call, StreamView stream) const;

  UnitRecord record_;
  UnitPlan plan_;
  int first_loss_;  ///< of the steps of forward, the others follow it
};

}  // namespace dstrain::model
