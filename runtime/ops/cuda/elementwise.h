#pragma once
#include <algorithm>

#include "runtime/ops/cuda/launch.h"
#include "runtime/ops/cuda/packs.h"

namespace dstrain::ops::gpu {

inline constexpr int elementwise_threads = 256;

inline Grid elementwise_grid(std::int64_t count) {
  constexpr std::int64_t blocks_most = 132 * 32;  // a few waves; more blocks only add start-up cost
  return {.x = std::min(divide_up(count, elementwise_threads), blocks_most),
          .threads = elementwise_threads};
}

template <class Body>
struct Elements {
  std::int64_t count;
  Body body;
};

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
  launch(op, elements_kernel<Body>, elementwise_grid(count), Elements<Body>{count, body}, stream);
}

template <class Body>
struct Packs {
  std::int64_t count;
  std::int64_t packs;  ///< of Body::numel elements; the remainder is processed one at a time
  Body body;
};

template <class Body>
DSTRAIN_KERNEL(elementwise_threads)
packs_kernel(DSTRAIN_ARGUMENT Packs<Body> args) {
  const std::int64_t step = blocks_x() * elementwise_threads;
  const std::int64_t first = block_x() * elementwise_threads + thread();
#pragma unroll 1
  for (std::int64_t pack = first; pack < args.packs; pack += step) {
    args.body.template apply<Body::numel>(pack * Body::numel);
  }
#pragma unroll 1
  for (std::int64_t i = args.packs * Body::numel + first; i < args.count; i += step) {
    args.body.template apply<1>(i);
  }
}

/// Covers [0, count) with calls of `body.apply<n>(i)`, a DSTRAIN_DEVICE function for elements
/// [i, i + n): n is Body::numel, or 1 for the remainder and if memory is not `aligned`.
template <class Body>
void for_packs(
    const char* op, std::int64_t count, bool aligned, const Body& body, StreamView stream) {
  const std::int64_t packs = aligned ? count / Body::numel : 0;
  launch(op, packs_kernel<Body>, elementwise_grid(packs == 0 ? count : packs),
         Packs<Body>{count, packs, body}, stream);
}

}  // namespace dstrain::ops::gpu
