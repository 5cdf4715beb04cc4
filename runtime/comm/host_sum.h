#pragma once
#include <cstdint>
#include <cstring>
#include <span>

#include "runtime/base/units.h"
#include "runtime/tensor/tensor_view.h"

/// Copies and sums of tensors in host memory: what the collectives on CPUs are made of.
namespace dstrain::comm {

/// What is cut at a multiple of this has whole elements of any dtype.
inline constexpr Bytes element_bytes_max = 8;

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

/// The elements of a dense view that lie in `bytes` bytes of it, from byte `begin` on.
inline HostView part_in_bytes(const HostView& view, Bytes begin, Bytes bytes) {
  const Bytes element = size_of(view.dtype());
  return view.part(begin / element, {bytes / element});
}

/// sum[i] = ((x_0[i] + x_1[i]) + x_2[i]) + ... for each element of `sum`, whose dtype is f32, bf16
/// or f16, where x_r lies at `terms[r]`. Each addition is done in fp32 and rounded to the dtype, to
/// nearest even. `sum` may be one of the terms (then its lines are at hand and `writes` does not
/// matter), but may not overlap one in any other way.
void add_in_rank_order(std::span<const std::byte* const> terms,
                       const HostView& sum,
                       Writes writes = Writes::cached);

/// sum[i] = terms[0][i] + terms[1][i] + ... for each element of `sum`, whose dtype is i32 or i64,
/// wrapping around; `terms` holds so many times its elements, one after the other.
void add_integers(const std::byte* terms, int count, const HostView& sum);

}  // namespace dstrain::comm
