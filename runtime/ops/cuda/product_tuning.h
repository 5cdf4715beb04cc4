#pragma once
#include <cstdint>
#include <string>

#include "runtime/device/memory_resource.h"
#include "runtime/device/stream.h"

namespace dstrain::ops::gpu {

/// Times, for each product that was launched on `stream`, the algorithms that cuBLASLt proposes,
/// and returns the fastest as text (product_choices.h). Nothing else should run meanwhile. The
/// operands are taken from `memory`, of the stream's GPU, up to `room` bytes of it; a product that
/// gets less is left out, and so is one of which no algorithm runs. Waits for the stream. Throws
/// Error{device}.
std::string tune_products(StreamView stream, MemoryResource& memory, Bytes room);

/// Products that are launched on `stream` from now on take the algorithms of such a text, others
/// and those whose algorithm cuBLASLt refuses the first of its heuristic. Returns why the text is
/// of no use here; empty: it is.
std::string use_algorithms(const std::string& text, StreamView stream);

struct ProductCount {
  std::int64_t all = 0;
  std::int64_t chosen = 0;  ///< by their times
};
/// Of the products that were launched on `stream`.
ProductCount count_products(StreamView stream);

}  // namespace dstrain::ops::gpu
