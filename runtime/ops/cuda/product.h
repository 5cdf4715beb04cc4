#pragma once
#include <compare>
#include <cstdint>

#include "runtime/device/stream.h"
#include "runtime/ops/matmul.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops::gpu {

/// A matrix in GPU memory; rows may be strided.
struct ProductMatrix {
  void* data = nullptr;
  DType dtype = DType::f32;
  std::int64_t stride = 0;  ///< elements from one row to the next
};

/// out (M, N) = a (M, K) b (K, N) [+ bias] [+ out], as in MatmulArgs. a and b have one dtype; out
/// has that dtype or f32. A bias requires that all have the same dtype.
struct Product {
  const char* op;
  ProductMatrix a;
  ProductMatrix b;
  ProductMatrix out;
  MatmulShape shape{};
  const void* bias = nullptr;
  bool a_transposed = false;
  bool b_transposed = false;
  bool accumulate = false;
  bool tf32 = false;  ///< for f32 by f32; multiply() sets it from the stream
};

/// Runs a product in cuBLASLt with the algorithm chosen for it (product_tuning.h), or else the
/// heuristic's first, which is the same for the same product on the same kind of GPU, so that bits
/// repeat. f32 by f32 uses TF32 if the stream does (use_tf32). `workspace`: u8.
void multiply(const Product& product, const TensorView& workspace, StreamView stream);

/// Computes later products of f32 by f32 on `stream` in TF32.
void use_tf32(StreamView stream);

ProductMatrix product_matrix(const TensorView& view);

}  // namespace dstrain::ops::gpu
