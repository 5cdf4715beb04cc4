#pragma once
#include <cstdint>
#include <string>

#include "runtime/device/memory_resource.h"
#include "runtime/device/stream.h"

namespace dstrain::ops::gpu {

/// Times, for each product that was launched on `stream`, the algorithms that cuBLASLt proposes,
/// and returns the fastest as text (product_choices.h). Nothing else should run meanwhile. The
/// operands are taken from `memory`, of the stream's GPU, up to `room` bytes of it; a product that
/// gets less is left out. Waits for the stream. Throws Error{device}.
std::string tune_products(StreamView stream, MemoryResource& memory, Bytes room);

/// Products that are launched on `stream` from now on take the algorithms of such a text, others
/// the first of cuBLASLt's heuristic. Returns why it is of no use here; empty: it is. Throws
/// Error{device} where cuBLASLt refuses one of the algorithms.
std::string use_algorithms(const std::string& text, StreamView stream);

struct ProductCount {
  std::int64_t all = 0;
  std::int64_t chosen = 0;  ///< by their times
};
/// Of the products that were launched on `stream`.
ProductCount count_products(StreamView stream);

}  // namespace dstrain::ops::gpu
