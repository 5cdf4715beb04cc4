#pragma once
#include <cstdint>
#include <memory>

#include "runtime/device/stream.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

/// out (M, N) = a (M, K) b (K, N) [+ bias (N)] [+ out]. All f32; rows may be strided.
struct MatmulArgs {
  TensorView a;     ///< (M, K), or (K, M) when a_transposed
  TensorView b;     ///< (K, N), or (N, K) when b_transposed
  TensorView out;   ///< (M, N)
  TensorView bias;  ///< (N) dense, or empty
  bool a_transposed = false;
  bool b_transposed = false;
  bool accumulate = false;  ///< add to `out` instead of overwriting it
};

/// Matrix products, each shape prepared once and kept (a oneDNN primitive on the CPU). One per
/// process; use from one thread at a time. Results are the same for the same number of threads.
class Matmuls {
 public:
  Matmuls();
  Matmuls(const Matmuls&) = delete;
  Matmuls& operator=(const Matmuls&) = delete;
  Matmuls(Matmuls&&) = delete;
  Matmuls& operator=(Matmuls&&) = delete;
  ~Matmuls();

  /// Asynchronous on `stream`.
  void run(const MatmulArgs& args, StreamView stream);

 private:
  struct Cache;
  std::unique_ptr<Cache> cache_;
};

}  // namespace dstrain::ops
