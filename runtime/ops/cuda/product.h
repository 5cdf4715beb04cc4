#pragma once
#include <compare>
#include <cstdint>

#include "runtime/device/stream.h"
#include "runtime/ops/matmul.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops::gpu {

/// A matrix of the GPU whose rows may be strided.
struct ProductMatrix {
  void* data = nullptr;
  DType dtype = DType::f32;
  std::int64_t stride = 0;  ///< elements from one row to the next
};

/// out (M, N) = a (M, K) b (K, N) [+ bias] [+ out], as MatmulArgs has it: a and b of one dtype, out
/// of that or f32, the bias of out's where the two are the same.
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
  bool tf32 = false;  ///< of f32 by f32; what multiply() is given does not say
};

/// Runs it in cuBLASLt, by the algorithm that was chosen for it (product_tuning.h), else the first
/// of its heuristic: the same for the same product on the same kind of GPU, so that bits repeat.
/// f32 by f32 uses TF32 where the stream does (use_tf32). `workspace`: u8.
void multiply(const Product& product, const TensorView& workspace, StreamView stream);

/// Later products of f32 by f32 on `stream` are computed in TF32.
void use_tf32(StreamView stream);

/// Of a dense view.
ProductMatrix product_matrix(const TensorView& view);

}  // namespace dstrain::ops::gpu
