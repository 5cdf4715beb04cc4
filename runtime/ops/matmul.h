#pragma once
#include <cstdint>

#include "runtime/base/units.h"
#include "runtime/device/stream.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

/// out (M, N) = a (M, K) b (K, N) [+ bias (N)] [+ out]. All dense; each f32, bf16 or f16, in any
/// mix; sums are f32.
struct MatmulArgs {
  TensorView a;       ///< (M, K), or (K, M) if a_transposed
  TensorView b;       ///< (K, N), or (N, K) if b_transposed
  TensorView out;     ///< (M, N)
  TensorView bias{};  ///< (N), or empty
  bool a_transposed = false;
  bool b_transposed = false;
  bool accumulate = false;  ///< add to `out`, which is f32, instead of overwriting it
  TensorView workspace{};   ///< u8: at least matmul_workspace() bytes, 64-byte aligned

  /// Calls `visit` with each tensor.
  void for_each_tensor(const auto& visit) {
    visit(a);
    visit(b);
    visit(out);
    visit(bias);
    visit(workspace);
  }
};

/// Returns the bytes of workspace that a product needs on a kind of device, which need not be
/// present; only shapes, dtypes and flags count. CPU: the data converted or packed at a time. CUDA:
/// 32 MiB, the most that cuBLASLt may use for any product.
Bytes matmul_workspace(const MatmulArgs& args, DeviceKind device);

/// The sizes of a product: (M, K) times (K, N).
struct MatmulShape {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
};
/// Returns the sizes of `args`. Throws Error{internal} if the views do not fit together. Views
/// without memory are allowed.
MatmulShape matmul_shape(const MatmulArgs& args);
/// Does the same, and throws if the workspace is too small for the stream's device. Every op that
/// contains a product calls it.
MatmulShape check_product(const MatmulArgs& args, StreamView stream);

/// Results are the same for the same device and, on a CPU, the same number of threads. With few
/// rows on a CPU (few_rows.h) the bits of a row depend on that row, b and the bias only.
/// Asynchronous on `stream`.
void matmul(const MatmulArgs& args, StreamView stream);

}  // namespace dstrain::ops
