#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/tensor/dtype.h"
#include "runtime/tensor/shape.h"

namespace dstrain::safetensors {

/// A tensor to be written: f32, bf16 or f16.
struct TensorInfo {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
};

/// A file as it will be: what precedes the data, and where each tensor lies.
struct Layout {
  std::string head;                    ///< the length word and the header, padded to 8 bytes
  std::vector<std::uint64_t> offsets;  ///< first byte of each tensor in the file, in their order
  std::uint64_t bytes = 0;             ///< of the whole file
};

/// Tensors lie in the order given, without holes. Names must differ.
Layout lay_out(std::span<const TensorInfo> tensors);

}  // namespace dstrain::safetensors
