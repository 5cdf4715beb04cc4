#pragma once
#include <cstdint>
#include <span>

#include "runtime/base/exact_sum.h"
#include "runtime/model/unit.h"
#include "runtime/tensor/arena.h"
#include "runtime/tensor/buffer.h"

namespace dstrain::engine {

/// What one rank trains on or evaluates at once.
struct MicroBatch {
  std::span<const std::int32_t> tokens;  ///< (B, T)
  std::span<const std::int32_t> labels;  ///< (B, T); -100 does not count; none: nothing has a loss
  std::int64_t first_sample = 0;  ///< index of sequence 0 within the global batch of the step
};

/// The labels that count.
std::int64_t counted_labels(std::span<const MicroBatch> batches);

/// What the units read of a micro batch, and what a step adds up, on the device.
class DeviceBatch {
 public:
  /// Of micro batches of at most `rows` tokens.
  static Bytes bytes(std::int64_t rows);
  DeviceBatch(std::int64_t rows, MemoryResource& memory, StreamView stream);

  /// The loss is 0 from here on, and each label's gradient scaled by `label_weight`. Asynchronous
  /// on `stream`.
  void begin(float label_weight, StreamView stream);
  /// Takes in a micro batch, which must stay as it is until the units that read it have run.
  /// Asynchronous on `stream`.
  void take(const MicroBatch& batch, model::BatchShape shape, StreamView stream);
  /// Hands what it holds to a unit.
  void show(model::UnitCall& call) const;
  /// Room for the sum of the squares of the gradients.
  [[nodiscard]] TensorView squares() const { return views_.squares; }
  /// The sum of the losses since begin(). Waits for all work on `stream`.
  [[nodiscard]] double loss(StreamView stream) const;

 private:
  struct Views {
    Views(Arena& arena, std::int64_t rows);
    TensorView tokens;        ///< (rows) i32
    TensorView labels;        ///< (rows) i32
    TensorView label_weight;  ///< (1) f32
    TensorView loss;          ///< (1) f64
    TensorView squares;       ///< (ExactSum::numel) i64
  };
  static Views cut(const TensorView& block, std::int64_t rows);

  Buffer memory_;
  Views views_;
  Shape shape_;             ///< (B, T) of the micro batch
  float label_weight_ = 0;  ///< on its way to the device
};

}  // namespace dstrain::engine
