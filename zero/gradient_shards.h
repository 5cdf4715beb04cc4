#pragma once
#include <span>
#include <vector>

#include "runtime/tensor/buffer.h"
#include "zero/flat_layout.h"
#include "zero/offload.h"

namespace dstrain::zero {

/// A rank's f32 shards of the gradients of some segments, one after another.
class GradientShards {
 public:
  struct Place {
    std::span<const MemoryTier> homes;  ///< per segment
    bool offloaded = false;             ///< those in host memory, or those on the device
  };
  GradientShards(const FlatLayout& layout, Place place, MemoryResource& memory, StreamView stream);
  static Bytes bytes(const FlatLayout& layout, Place place);

  /// Empty when it lies elsewhere.
  [[nodiscard]] TensorView of(int segment) const {
    return shards_[static_cast<std::size_t>(segment)];
  }

 private:
  Buffer memory_;
  std::vector<TensorView> shards_;  ///< per segment
};

}  // namespace dstrain::zero
