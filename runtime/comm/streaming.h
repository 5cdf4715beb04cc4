#pragma once
#include <cstdint>

#include "runtime/base/units.h"

namespace dstrain::comm {

/// How results are written. `streamed` goes past the caches: a line is not read before it is
/// written, which saves a third of a large copy's traffic, and nothing useful is pushed out.
/// Vectors of 16 bytes, which any x86-64 has: wider ones measured the same, as a store of either
/// kind fills a whole line before it leaves the core. What was written is visible to whoever sees a
/// later atomic store of this thread.
enum class Writes : std::uint8_t { cached, streamed };

/// Streamed from the size on at which a result would not stay in the second-level cache anyway.
constexpr Writes writes_for(Bytes result_bytes) {
  return result_bytes >= mebibyte ? Writes::streamed : Writes::cached;
}

/// Copies `bytes` bytes, none when both are one place. The two overlap wholly or not at all.
void copy_bytes(const void* from, void* to, Bytes bytes, Writes writes);

/// sum[i] = first[i] + second[i] for i in [0, numel). `sum` may be one of the two, but may not
/// overlap one in any other way.
void add_floats(
    const float* first, const float* second, float* sum, std::int64_t numel, Writes writes);

}  // namespace dstrain::comm
