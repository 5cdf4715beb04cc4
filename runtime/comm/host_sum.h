#pragma once
#include <cstdint>
#include <cstring>
#include <span>

#include "runtime/base/units.h"
#include "runtime/tensor/tensor_view.h"

/// Copies and sums of tensors in host memory, for the collectives on CPUs.
namespace dstrain::comm {

/// Blocks cut at a multiple of this have whole elements of any dtype.
inline constexpr Bytes element_bytes_max = 8;

/// How results are written. `streamed` bypasses the caches: a line is not read before it is
/// written, which saves a third of a large copy's traffic, and nothing useful is evicted. It uses
/// vectors of 16 bytes, which every x86-64 has. Wider ones measured the same, because a store of
/// either kind fills a whole line before it leaves the core. The results are visible to a thread
/// that sees a later atomic store of this one.
enum class Writes : std::uint8_t { cached, streamed };

/// Streams results from the size on that would not stay in the second-level cache anyway.
constexpr Writes writes_for(Bytes result_bytes) {
  return result_bytes >= mebibyte ? Writes::streamed : Writes::cached;
}

/// Copies `bytes` bytes, none if both are the same memory. The two overlap completely or not at
/// all.
inline void copy_bytes(const void* from, void* to, Bytes bytes) {
  if (from == to || bytes == 0) return;
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
}
void copy_bytes(const void* from, void* to, Bytes bytes, Writes writes);

/// Returns the elements of a dense view in the `bytes` bytes of it from byte `begin` on.
inline HostView part_in_bytes(const HostView& view, Bytes begin, Bytes bytes) {
  const Bytes element = size_of(view.dtype());
  return view.part(begin / element, {bytes / element});
}

/// sum[i] = ((x_0[i] + x_1[i]) + x_2[i]) + ... for each element of `sum`, whose dtype is f32, bf16
/// or f16, where x_r lies at `terms[r]`. Each addition is done in fp32 and rounded to the dtype, to
/// nearest even. `sum` may be one of the terms (then its lines are cached and `writes` does not
/// matter), but must not overlap one in any other way.
void add_in_rank_order(std::span<const std::byte* const> terms,
                       const HostView& sum,
                       Writes writes = Writes::cached);

/// sum[i] = terms[0][i] + terms[1][i] + ... for each element of `sum`, whose dtype is i32 or i64,
/// wrapping around; `terms` holds `count` times its elements, one after the other.
void add_integers(const std::byte* terms, int count, const HostView& sum);

}  // namespace dstrain::comm
