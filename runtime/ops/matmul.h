#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "runtime/base/units.h"
#include "runtime/device/stream.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

/// out (M, N) = a (M, K) b (K, N) [+ bias (N)] [+ out]. All dense; each f32 or bf16, mixed at will;
/// sums are f32.
struct MatmulArgs {
  TensorView a;       ///< (M, K), or (K, M) when a_transposed
  TensorView b;       ///< (K, N), or (N, K) when b_transposed
  TensorView out;     ///< (M, N)
  TensorView bias{};  ///< (N), or empty
  bool a_transposed = false;
  bool b_transposed = false;
  bool accumulate = false;  ///< add to `out`, which is f32, instead of overwriting it
  TensorView workspace{};   ///< u8: at least matmul_workspace() bytes, 64-byte aligned
};

/// Bytes of workspace that a product needs, on any CPU; only shapes, dtypes and flags count.
Bytes matmul_workspace(const MatmulArgs& args);

/// How products with a bf16 operand are computed.
enum class Bf16Products : std::uint8_t {
  native,  ///< bf16 dot products (AVX512_BF16, AMX), summed in f32
  widened  ///< operands widened to f32 in cache, f32 products
};

/// What is faster on this CPU. Intel's VDPBF16PS runs at half the rate of f32 FMA, AMD's at twice
/// it; AMX is faster than both.
Bf16Products preferred_bf16_products();

/// Matrix products, each shape prepared once and kept (a oneDNN primitive on the CPU) while it is
/// among the last that were used. One per process; use from one thread at a time. Results are the
/// same for the same number of threads and the same CPU.
class Matmuls {
 public:
  /// A training step uses some dozens of shapes, again and again. Generating uses others for each
  /// token.
  static constexpr std::size_t prepared_max = 256;

  explicit Matmuls(Bf16Products bf16_products = preferred_bf16_products());
  Matmuls(const Matmuls&) = delete;
  Matmuls& operator=(const Matmuls&) = delete;
  Matmuls(Matmuls&&) = delete;
  Matmuls& operator=(Matmuls&&) = delete;
  ~Matmuls();

  /// Asynchronous on `stream`.
  void run(const MatmulArgs& args, StreamView stream);
  /// Products that are kept, at most prepared_max. No run() is under way.
  [[nodiscard]] std::size_t prepared() const;

 private:
  struct Cache;
  class Run;
  std::unique_ptr<Cache> cache_;
};

}  // namespace dstrain::ops
