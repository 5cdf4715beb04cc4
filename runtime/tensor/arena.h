#pragma once
#include "runtime/base/units.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain {

/// Cuts tensors, aligned to 64 bytes, from one block of bytes (u8). Without a block it only
/// measures: the same cuts give the size to reserve and, later, the views.
class Arena {
 public:
  Arena() = default;
  explicit Arena(TensorView block) : block_(block) {}

  TensorView take(Shape shape, DType dtype = DType::f32) {
    const Bytes begin = used_;
    used_ += round_up(shape.numel() * size_of(dtype), 64);
    if (block_.empty()) return {dtype, shape};
    DSTRAIN_CHECK(used_ <= block_.bytes(), "{} in a block of {} bytes", to_string(shape),
                  block_.bytes());
    return block_.cut(begin, dtype, shape);
  }
  [[nodiscard]] Bytes used() const { return used_; }
  /// Returns the rest of the block.
  [[nodiscard]] TensorView rest() const {
    if (block_.empty()) return {};
    return block_.cut(used_, DType::u8, {block_.bytes() - used_});
  }

 private:
  TensorView block_;
  Bytes used_ = 0;
};

}  // namespace dstrain
