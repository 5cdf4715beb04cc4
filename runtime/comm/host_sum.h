#pragma once
#include <cstdint>
#include <cstring>
#include <span>

#include "runtime/base/units.h"
#include "runtime/tensor/tensor_view.h"

/// Copies and sums of tensors in host memory: what the collectives on CPUs are made of.
namespace dstrain::comm {

/// Bytes of an element of a sum: sums are taken in f32.
inline constexpr Bytes float_bytes = size_of(DType::f32);

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
inline void copy_bytes(const void* from, void* to, Bytes bytes) {
  if (from == to || bytes == 0) return;
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
}
void copy_bytes(const void* from, void* to, Bytes bytes, Writes writes);

/// sum[i] = first[i] + second[i] for i in [0, numel). `sum` may be one of the two, but may not
/// overlap one in any other way.
void add_floats(
    const float* first, const float* second, float* sum, std::int64_t numel, Writes writes);

/// sum[i] = ((x_0[i] + x_1[i]) + x_2[i]) + ... for i in [0, numel), in fp32, where x_r is
/// `terms[r]`. `sum` may be one of the terms (then its lines are at hand and `writes` does not
/// matter), but may not overlap one in any other way.
void add_in_rank_order(std::span<const float* const> terms,
                       float* sum,
                       std::int64_t numel,
                       Writes writes = Writes::cached);

/// sum[i] = terms[0][i] + terms[1][i] + ... for each element of `sum`, whose dtype is i32 or i64,
/// wrapping around; `terms` holds so many times its elements, one after the other.
void add_integers(const std::byte* terms, int count, const HostView& sum);

}  // namespace dstrain::comm
