#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <typeinfo>

#include <cuda_runtime_api.h>

#include "tests/stand_in/blocks.h"
#include "tests/stand_in/refusals.h"
#include "tests/stand_in/slow_kernels.h"

// Replaces the real header of this name, for the CPU. Blocks run one after another, with threads as
// fibers, so that barriers and shuffles work; see blocks.h.

#define DSTRAIN_KERNEL(threads) void
#define DSTRAIN_KERNEL_AT_ONCE(threads, blocks) void
#define DSTRAIN_ARGUMENT const
#define DSTRAIN_DEVICE inline
#define DSTRAIN_ANYWHERE inline

namespace dstrain::ops::gpu {

struct Grid {
  std::int64_t x = 1;
  std::int64_t y = 1;
  std::int64_t z = 1;
  int threads = 256;
  std::size_t shared_bytes = 0;
};

inline constexpr int warp_threads = 32;

inline int thread() {
  return stand_in::here().thread;
}
inline std::int64_t block_x() {
  return stand_in::here().x;
}
inline std::int64_t block_y() {
  return stand_in::here().y;
}
inline std::int64_t block_z() {
  return stand_in::here().z;
}
inline std::int64_t blocks_x() {
  return stand_in::here().blocks_x;
}
inline std::int64_t blocks_y() {
  return stand_in::here().blocks_y;
}
inline std::int64_t blocks_z() {
  return stand_in::here().blocks_z;
}

inline void sync() {
  stand_in::sync_block(false);
}
inline bool sync_any(bool yes) {
  return stand_in::sync_block(yes);
}

template <class T>
T shuffle_xor(T value, int lanes) {
  static_assert(sizeof(T) <= sizeof(std::uint64_t));
  std::uint64_t word = 0;
  std::memcpy(&word, &value, sizeof(T));
  word = stand_in::exchange(word, lanes);
  std::memcpy(&value, &word, sizeof(T));
  return value;
}

inline void atomic_add(std::uint64_t& target, std::uint64_t value) {
  target += value;
}

inline bool is_last_block(std::uint32_t& counter, std::uint32_t blocks) {
  sync();
  bool last = false;
  if (thread() == 0) {
    last = counter + 1 == blocks;
    counter = last ? 0 : counter + 1;
  }
  return sync_any(last);
}

template <class T>
T& shared() {
  return *reinterpret_cast<T*>(stand_in::shared_memory(sizeof(T)));
}

template <class Args>
bool has_code(void (*)(Args) /*kernel*/) {
  return !stand_in::refuses("cudaFuncGetAttributes");
}

template <class Args>
cudaError_t start(void (*kernel)(Args), const Grid& grid, const Args& args, cudaStream_t stream) {
  stand_in::take_time(typeid(Args).name(), stream);
  return stand_in::start({grid.x, grid.y, grid.z, grid.threads, grid.shared_bytes}, stream,
                         reinterpret_cast<const void*>(kernel), [kernel, args] { kernel(args); });
}

}  // namespace dstrain::ops::gpu
