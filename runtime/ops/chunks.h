#pragma once
#include <algorithm>
#include <cstdint>

#include "runtime/numeric/parallel_for.h"

namespace dstrain::ops {

/// Elements that one task of an elementwise kernel handles: large enough to hide the cost of a
/// task, small enough to stay in cache.
inline constexpr std::int64_t elementwise_chunk = 16384;

/// Returns how many chunks of `chunk` elements cover `count`; the last one may be short.
constexpr std::int64_t chunk_count(std::int64_t count, std::int64_t chunk) {
  return (count + chunk - 1) / chunk;
}

/// Calls `body(begin, end)` for the fixed chunks of [0, count), in parallel. The chunks depend only
/// on the sizes, not on the number of threads.
template <class Body>
void for_chunks(std::int64_t count, std::int64_t chunk, const Body& body) {
  parallel_for(chunk_count(count, chunk),
               [&](std::int64_t i) { body(i * chunk, std::min(count, (i + 1) * chunk)); });
}

}  // namespace dstrain::ops
