#pragma once
#include <array>
#include <cstdint>
#include <memory>

#include <cublasLt.h>

#include "runtime/base/unique_handle.h"
#include "runtime/device/cuda/cuda_stream_access.h"
#include "runtime/numeric/exact_sum.h"

namespace dstrain::ops::gpu {

struct DeviceBytesTraits {
  using Raw = std::byte*;
  static constexpr std::byte* null() noexcept { return nullptr; }
  static void release(std::byte* address) noexcept { cudaFree(address); }
};
struct CublasLtTraits {
  using Raw = cublasLtHandle_t;
  static constexpr cublasLtHandle_t null() noexcept { return nullptr; }
  static void release(cublasLtHandle_t handle) noexcept { cublasLtDestroy(handle); }
};

/// The digits of an ExactSum that is being summed. Blocks add in any order.
using SquareDigits = ExactSum::Digits;
inline constexpr int square_digits = static_cast<int>(std::tuple_size_v<SquareDigits>);

/// Rows of an embedding's gradient that are sorted at once, because the work grows with their
/// square. Each row is compared with one slab of rows at a time.
inline constexpr std::int64_t sorted_rows = 8192;
inline constexpr std::int64_t sorted_slab_rows = 1024;

/// Row sums begin with sums over slabs of rows, in at most row_sum_blocks blocks: two per
/// multiprocessor of an H100. Each block has two sums of row_sum_columns columns.
inline constexpr std::int64_t row_sum_blocks = 264;
inline constexpr std::int64_t row_sum_columns = 256;

/// Gradients of a norm's weight and bias begin with sums over slabs of rows. This is the most
/// elements: two blocks per multiprocessor of an H100, each with two sums of 2,048 columns.
inline constexpr std::int64_t norm_partial_numel = row_sum_blocks * 2 * 2048;

/// Device memory that the ops of one stream use across launches.
struct DeviceWords {
  std::int32_t order[sorted_rows];
  std::int32_t sorted[sorted_rows];
  std::int32_t smaller[sorted_rows / sorted_slab_rows][sorted_rows];
  float row_sums[2 * row_sum_blocks * row_sum_columns];
  std::uint32_t arrivals[row_sum_blocks];  ///< zero between ops
  SquareDigits squares[2];                 ///< zero between ops
  std::int32_t flag;
  float step_size;
};

struct ProductPlans;

/// State that a stream keeps for its ops: cuBLASLt, the chosen algorithms and about 850 KiB of
/// device memory; also staging() if it converts between host and device, and norm_partials(),
/// 4.1 MiB, if it computes gradients of norms. No memory plan counts these (library_memory.cpp).
class OpState final : public cuda::CudaStream::Kept {
 public:
  explicit OpState(cuda::CudaStream& stream);
  OpState(const OpState&) = delete;
  OpState& operator=(const OpState&) = delete;
  OpState(OpState&&) = delete;
  OpState& operator=(OpState&&) = delete;
  ~OpState() override;

  [[nodiscard]] DeviceWords& words() const;  ///< a device address
  /// staging() returns at least this many bytes of device memory. Each op finishes with it before
  /// the next op uses it.
  [[nodiscard]] static constexpr std::int64_t staging_bytes() { return 4 << 20; }
  std::byte* staging();
  /// Likewise, with norm_partial_numel elements.
  float* norm_partials();
  [[nodiscard]] cublasLtHandle_t cublas();
  ProductPlans& plans() { return *plans_; }

 private:
  int ordinal_;
  UniqueHandle<DeviceBytesTraits> words_;
  UniqueHandle<DeviceBytesTraits> staging_;
  UniqueHandle<DeviceBytesTraits> norm_partials_;
  UniqueHandle<CublasLtTraits> cublas_;
  std::unique_ptr<ProductPlans> plans_;
};

inline OpState& op_state(StreamView stream) {
  return cuda::cuda_stream(stream).kept<OpState>();
}

}  // namespace dstrain::ops::gpu
