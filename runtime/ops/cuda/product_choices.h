#pragma once
#include <string>

#include "runtime/base/result.h"
#include "runtime/ops/cuda/product_plan.h"

namespace dstrain::ops::gpu {

/// The place where algorithms are chosen: another version of cuBLASLt does not know them, and on
/// another GPU other ones are the fastest.
struct ChoicePlace {
  std::string library;
  std::string gpu;
};
/// `ordinal` is CUDA's number of the GPU.
ChoicePlace choice_place(int ordinal);

/// Returns one line of JSON. An algorithm is the bytes of cublasLtMatmulAlgo_t, which cuBLASLt
/// promises to accept in the same version, without its attributes, whose number grows from version
/// to version.
std::string to_text(const ProductAlgorithms& algorithms, const ChoicePlace& place);

/// Parses such a text if it was written in a place like `here`; a failure says why it cannot be
/// used.
Result<ProductAlgorithms> read_algorithms(const std::string& text, const ChoicePlace& here);

}  // namespace dstrain::ops::gpu
