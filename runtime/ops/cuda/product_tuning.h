#pragma once
#include <cstdint>
#include <string>

#include "runtime/device/memory_resource.h"
#include "runtime/device/stream.h"

namespace dstrain::ops::gpu {

/// For each product launched on `stream`, times the algorithms that cuBLASLt proposes, and returns
/// the fastest as text (product_choices.h). Nothing else should run meanwhile. Operands take up to
/// `room` bytes of `memory`, which is on the stream's GPU. Omits products that need more, or for
/// which no algorithm runs. Waits for the stream. Throws Error{device}.
std::string tune_products(StreamView stream, MemoryResource& memory, Bytes room);

/// Makes later products on `stream` use the algorithms of such a text. Products without one, or
/// with one that cuBLASLt rejects, use the heuristic's first. Returns why the text cannot be used
/// here; empty if it can.
std::string use_algorithms(const std::string& text, StreamView stream);

struct ProductCount {
  std::int64_t all = 0;
  std::int64_t chosen = 0;  ///< use a timed algorithm
};
/// Counts the products launched on `stream`.
ProductCount count_products(StreamView stream);

}  // namespace dstrain::ops::gpu
