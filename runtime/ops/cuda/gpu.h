#pragma once
#include <cstddef>
#include <cstdint>

#include <cuda_runtime.h>

// The few parts of CUDA C++ that kernels use. The stand-in replaces this header.

/// Declares a kernel with blocks of `threads` threads; it has one argument, DSTRAIN_ARGUMENT.
#define DSTRAIN_KERNEL(threads) __global__ void __launch_bounds__(threads)
/// The same, with registers limited so that `blocks` blocks fit on a multiprocessor.
#define DSTRAIN_KERNEL_AT_ONCE(threads, blocks) __global__ void __launch_bounds__(threads, blocks)
#define DSTRAIN_ARGUMENT const __grid_constant__
/// Declares a function that kernels call.
#define DSTRAIN_DEVICE __device__ __forceinline__
/// Declares a function that kernels and the host call.
#define DSTRAIN_ANYWHERE __host__ __device__ __forceinline__

namespace dstrain::ops::gpu {

/// The number of blocks and threads of a kernel, and the shared memory per block.
struct Grid {
  std::int64_t x = 1;
  std::int64_t y = 1;
  std::int64_t z = 1;
  int threads = 256;
  std::size_t shared_bytes = 0;
};

inline constexpr int warp_threads = 32;

DSTRAIN_DEVICE int thread() {
  return static_cast<int>(threadIdx.x);
}
DSTRAIN_DEVICE std::int64_t block_x() {
  return blockIdx.x;
}
DSTRAIN_DEVICE std::int64_t block_y() {
  return blockIdx.y;
}
DSTRAIN_DEVICE std::int64_t block_z() {
  return blockIdx.z;
}
DSTRAIN_DEVICE std::int64_t blocks_x() {
  return gridDim.x;
}
DSTRAIN_DEVICE std::int64_t blocks_y() {
  return gridDim.y;
}
DSTRAIN_DEVICE std::int64_t blocks_z() {
  return gridDim.z;
}

/// Waits for all threads of the block; they then see each other's writes.
DSTRAIN_DEVICE void sync() {
  __syncthreads();
}
/// The same; returns whether any thread passed true.
DSTRAIN_DEVICE bool sync_any(bool yes) {
  return __syncthreads_or(yes ? 1 : 0) != 0;
}

/// Returns the value of the thread in lane `lane ^ lanes`. All threads of a warp must call.
template <class T>
DSTRAIN_DEVICE T shuffle_xor(T value, int lanes) {
  return __shfl_xor_sync(0xffffffffU, value, lanes);
}

DSTRAIN_DEVICE void atomic_add(std::uint64_t& target, std::uint64_t value) {
  atomicAdd(reinterpret_cast<unsigned long long*>(&target), static_cast<unsigned long long>(value));
}

/// Whether the calling block is the last of `blocks` to arrive at a counter. It then sees all
/// writes that the others made before. The counter is zero before the first block and after the
/// last. All threads of the block must call.
DSTRAIN_DEVICE bool is_last_block(std::uint32_t& counter, std::uint32_t blocks) {
  __threadfence();
  __syncthreads();
  const bool last = threadIdx.x == 0 && atomicInc(&counter, blocks - 1) == blocks - 1;
  if (!sync_any(last)) return false;
  __threadfence();
  return true;
}

/// The block's shared memory, Grid::shared_bytes long; not initialized.
template <class T>
DSTRAIN_DEVICE T& shared() {
  extern __shared__ __align__(16) std::byte dstrain_shared[];
  return *reinterpret_cast<T*>(dstrain_shared);
}

/// Whether the build has code of a kernel for the calling thread's GPU.
template <class Args>
bool has_code(void (*kernel)(Args)) {
  cudaFuncAttributes attributes{};
  const cudaError_t error =
      cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kernel));
  cudaGetLastError();
  return error == cudaSuccess;
}

template <class Args>
cudaError_t start(void (*kernel)(Args), const Grid& grid, const Args& args, cudaStream_t stream) {
  constexpr std::size_t usual_bytes = 48 * 1024;
  if (grid.shared_bytes > usual_bytes) {
    const cudaError_t error = cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                                   cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                   static_cast<int>(grid.shared_bytes));
    if (error != cudaSuccess) return error;
  }
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y),
                        static_cast<unsigned>(grid.z));
  config.blockDim = dim3(static_cast<unsigned>(grid.threads));
  config.dynamicSmemBytes = grid.shared_bytes;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, args);
}

}  // namespace dstrain::ops::gpu
