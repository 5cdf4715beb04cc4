#pragma once
#include <memory>
#include <vector>

#include "runtime/ops/matmul.h"

namespace dstrain::test {

/// Of a linear layer.
struct LayerSizes {
  std::int64_t rows, inputs, outputs;
};

/// Memory of the host for the workspace of a product.
class ProductSpace {
 public:
  /// As much as `product` needs, until the next call.
  TensorView of(const ops::MatmulArgs& product) {
    memory_.resize(static_cast<std::size_t>(ops::matmul_workspace(product, DeviceKind::cpu)) + 64);
    void* start = memory_.data();
    std::size_t space = memory_.size();
    std::align(64, 1, start, space);
    return HostView(start, DType::u8, {static_cast<std::int64_t>(space)});
  }

 private:
  std::vector<std::byte> memory_;
};

}  // namespace dstrain::test
