#pragma once
#include <algorithm>

#include "runtime/ops/cuda/launch.h"

namespace dstrain::ops::gpu {

template <class Body>
struct Elements {
  std::int64_t count;
  Body body;
};

inline constexpr int elementwise_threads = 256;

template <class Body>
DSTRAIN_KERNEL(elementwise_threads)
elements_kernel(DSTRAIN_ARGUMENT Elements<Body> elements) {
  const std::int64_t step = blocks_x() * elementwise_threads;
#pragma unroll 1
  for (std::int64_t i = block_x() * elementwise_threads + thread(); i < elements.count; i += step) {
    elements.body(i);
  }
}

/// Calls `body(i)`, a DSTRAIN_DEVICE function, for every i in [0, count).
template <class Body>
void for_elements(const char* op, std::int64_t count, const Body& body, StreamView stream) {
  constexpr std::int64_t blocks_most = 132 * 32;  // some waves of blocks; more only cost starts
  const Grid grid{.x = std::min(divide_up(count, elementwise_threads), blocks_most),
                  .threads = elementwise_threads};
  launch(op, elements_kernel<Body>, grid, Elements<Body>{count, body}, stream);
}

}  // namespace dstrain::ops::gpu
