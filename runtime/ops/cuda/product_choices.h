#pragma once
#include <string>

#include "runtime/base/result.h"
#include "runtime/ops/cuda/product_plan.h"

namespace dstrain::ops::gpu {

/// Where algorithms were chosen: another version of cuBLASLt does not know them, and another GPU
/// may have other fastest ones.
struct ChoicePlace {
  std::string library;
  std::string gpu;
};
/// `ordinal` is CUDA's number of the GPU.
ChoicePlace choice_place(int ordinal);

/// Returns one line of JSON. An algorithm is stored as the bytes of cublasLtMatmulAlgo_t, which the
/// same version of cuBLASLt promises to accept. Its attributes are not stored, because their number
/// grows from version to version.
std::string to_text(const ProductAlgorithms& algorithms, const ChoicePlace& place);

/// Parses such a text if it was written in the same place as `here`; a failure says why it cannot
/// be used.
Result<ProductAlgorithms> read_algorithms(const std::string& text, const ChoicePlace& here);

}  // namespace dstrain::ops::gpu
