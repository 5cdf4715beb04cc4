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

/// An ExactSum on its way, to which blocks add in any order.
using SquareDigits = ExactSum::Digits;
inline constexpr int square_digits = static_cast<int>(std::tuple_size_v<SquareDigits>);

/// Rows of an embedding's gradient that are sorted at once: the work grows with their square. Each
/// is compared with slabs of them.
inline constexpr std::int64_t sorted_rows = 8192;
inline constexpr std::int64_t sorted_slab_rows = 1024;

/// Sums of a matrix's rows begin as sums of slabs of rows, by so many blocks of threads at most:
/// two for each of an H100's multiprocessors. Each has two sums of so many columns.
inline constexpr std::int64_t row_sum_blocks = 264;
inline constexpr std::int64_t row_sum_columns = 256;

/// Gradients of a norm's weight and bias begin as sums of slabs of rows: so many elements at most,
/// two blocks for each of an H100's multiprocessors with two sums of 2,048 columns.
inline constexpr std::int64_t norm_partial_numel = row_sum_blocks * 2 * 2048;

/// Words of the device that ops of one stream use from one launch to the next.
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

/// What a stream keeps for its ops: cuBLASLt, the algorithms that it chose, some 850 KiB of the
/// device and, where it converts what comes from the host or goes there, staging(), and where it
/// has gradients of norms, norm_partials(), 4.1 MiB. No plan of memory counts it;
/// library_memory.cpp says so.
class OpState final : public cuda::CudaStream::Kept {
 public:
  explicit OpState(cuda::CudaStream& stream);
  OpState(const OpState&) = delete;
  OpState& operator=(const OpState&) = delete;
  OpState(OpState&&) = delete;
  OpState& operator=(OpState&&) = delete;
  ~OpState() override;

  [[nodiscard]] DeviceWords& words() const;  ///< an address of the device
  /// Returns device memory of at least this many bytes. One op's use of it ends before the next
  /// one's begins.
  [[nodiscard]] static constexpr std::int64_t staging_bytes() { return 4 << 20; }
  std::byte* staging();
  /// Likewise: norm_partial_numel of them.
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
