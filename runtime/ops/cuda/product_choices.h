#pragma once
#include <string>

#include "runtime/base/result.h"
#include "runtime/ops/cuda/product_plan.h"

namespace dstrain::ops::gpu {

/// Where algorithms are chosen: another version of cuBLASLt does not know them, and on another GPU
/// others are the fastest.
struct ChoicePlace {
  std::string library;
  std::string gpu;
};
/// `ordinal`: by which CUDA knows the GPU.
ChoicePlace choice_place(int ordinal);

/// JSON of one line. An algorithm is the bytes of cublasLtMatmulAlgo_t, which cuBLASLt promises to
/// take again in the same version: they need none of the attributes that it is made of, which grow
/// from version to version.
std::string to_text(const ProductAlgorithms& algorithms, const ChoicePlace& place);

/// What such a text says, if it was written in a place like `here`; else why it is of no use.
Result<ProductAlgorithms> read_algorithms(const std::string& text, const ChoicePlace& here);

}  // namespace dstrain::ops::gpu
