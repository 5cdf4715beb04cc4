#pragma once
#include <compare>
#include <cstdint>
#include <map>
#include <vector>

#include <cublasLt.h>

#include "runtime/base/unique_handle.h"
#include "runtime/ops/cuda/product.h"

namespace dstrain::ops::gpu {

/// Throws Error{device} that names the op, the call, the product and cuBLASLt's reason.
void check_cublas(cublasStatus_t status, const char* call, const Product& product);

/// The key of a plan.
struct ProductKey {
  std::int64_t m, n, k;
  std::int64_t a_stride, b_stride, out_stride;
  DType operands, out;
  bool a_transposed, b_transposed, bias, accumulate, tf32;
  /// Alignment of addresses in bytes, up to 16.
  std::uint32_t a_alignment, b_alignment, out_alignment;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang takes the 0 that <=> is compared with for one
  friend auto operator<=>(const ProductKey&, const ProductKey&) = default;
};
ProductKey key_of(const Product& product);

struct MatmulDescTraits {
  using Raw = cublasLtMatmulDesc_t;
  static constexpr Raw null() noexcept { return nullptr; }
  static void release(Raw raw) noexcept { cublasLtMatmulDescDestroy(raw); }
};
struct MatrixLayoutTraits {
  using Raw = cublasLtMatrixLayout_t;
  static constexpr Raw null() noexcept { return nullptr; }
  static void release(Raw raw) noexcept { cublasLtMatrixLayoutDestroy(raw); }
};
struct PreferenceTraits {
  using Raw = cublasLtMatmulPreference_t;
  static constexpr Raw null() noexcept { return nullptr; }
  static void release(Raw raw) noexcept { cublasLtMatmulPreferenceDestroy(raw); }
};

/// A product described for cuBLASLt, with an algorithm, initially the heuristic's first choice.
/// cuBLASLt's matrices are column-major, so it computes out' (N, M) = b' a'.
class ProductPlan {
 public:
  ProductPlan(cublasLtHandle_t handle, const Product& product);
  /// Returns at most `most` algorithms from the heuristic, in its order of expected speed. All of
  /// them reduce in a fixed order.
  [[nodiscard]] std::vector<cublasLtMatmulAlgo_t> propose(cublasLtHandle_t handle,
                                                          const Product& product,
                                                          int most) const;
  /// Uses this algorithm from now on, unless cuBLASLt rejects it. Returns whether it does.
  bool take(cublasLtHandle_t handle, const Product& product, const cublasLtMatmulAlgo_t& algorithm);
  /// Whether take() has set its algorithm.
  [[nodiscard]] bool chosen() const { return chosen_; }
  /// `workspace`: GPU memory, aligned to 256 bytes, `workspace_bytes` long.
  void run(cublasLtHandle_t handle, const Product& product, void* workspace, cudaStream_t stream);
  /// The bytes of the op's workspace that remain after alignment, whatever its address.
  static constexpr std::size_t workspace_bytes = (32U << 20) - 256;

 private:
  void assume_bias(const Product& product);

  UniqueHandle<MatmulDescTraits> desc_;
  UniqueHandle<MatrixLayoutTraits> left_;   ///< b'
  UniqueHandle<MatrixLayoutTraits> right_;  ///< a'
  UniqueHandle<MatrixLayoutTraits> out_;
  cublasLtMatmulAlgo_t algorithm_{};
  bool chosen_ = false;
};

using ProductAlgorithms = std::map<ProductKey, cublasLtMatmulAlgo_t>;

/// The plans of a stream.
struct ProductPlans {
  std::map<ProductKey, ProductPlan> by_key;
  ProductAlgorithms chosen;  ///< for present and future products
  bool tf32 = false;         ///< for products of f32 by f32
};

}  // namespace dstrain::ops::gpu
