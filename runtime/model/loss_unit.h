#pragma once
#include "runtime/model/unit_plan.h"

namespace dstrain::model {

/// Of `rows` rows, how many a unit that computes the loss works on at a time: at most 1024, so that
/// logits of so many rows are all that exists, and enough that reading, and in 16 bits packing, all
/// of the classifier's weight each time costs little.
std::int64_t loss_chunk_rows(std::int64_t rows);

/// A recorded unit that ends in a classifier and computes the loss. Its layers work on each row by
/// itself: all of them run over some rows, forward and backward, then over the next ones.
class LossUnit final : public Unit {
 public:
  explicit LossUnit(UnitRecord record) : record_(std::move(record)), plan_(plan_unit(record_)) {}
  [[nodiscard]] const UnitSpec& spec() const override { return record_.spec; }
  [[nodiscard]] UnitMemory memory(BatchShape shape) const override;
  /// The loss, or with call.logits those of the last position of each sequence.
  void forward(const UnitCall& call, StreamView stream) const override;
  /// Loss and gradients in one go.
  void backward(const UnitCall& call, StreamView stream) const override;

 private:
  class Chunk;
  /// What the last rows of so many sequences take, dense.
  [[nodiscard]] Bytes copied_bytes(std::int64_t rows) const;
  void last_logits(const UnitCall& call, StreamView stream) const;

  UnitRecord record_;
  UnitPlan plan_;
};

}  // namespace dstrain::model
