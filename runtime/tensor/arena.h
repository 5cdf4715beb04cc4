#pragma once
#include <cstddef>
#include <span>

#include "runtime/base/error.h"
#include "runtime/base/units.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain {

/// Cuts tensors, aligned to 64 bytes, out of one block. Without a block it only measures: the same
/// cuts give the size to reserve and, later, the views.
class Arena {
 public:
  Arena() = default;
  explicit Arena(std::span<std::byte> block) : block_(block) {}

  TensorView take(Shape shape, DType dtype = DType::f32) {
    const Bytes begin = used_;
    used_ += round_up(shape.numel() * size_of(dtype), 64);
    if (block_.data() == nullptr) return {nullptr, dtype, shape};
    DSTRAIN_CHECK(used_ <= static_cast<Bytes>(block_.size()), "{} in a block of {} bytes",
                  to_string(shape), block_.size());
    return {block_.data() + begin, dtype, shape};
  }
  [[nodiscard]] Bytes used() const { return used_; }

 private:
  std::span<std::byte> block_;
  Bytes used_ = 0;
};

}  // namespace dstrain
