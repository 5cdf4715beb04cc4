#pragma once
#include <cstdint>
#include <type_traits>

#include "runtime/ops/attention_scratch.h"
#include "runtime/ops/cuda/attention_rows.h"

namespace dstrain::ops::gpu {

/// The sizes of a tensor of queries or keys.
struct HeadCounts {
  std::int64_t rows;
  std::int64_t heads;
  std::int64_t head_size;
};

/// Writes the heads after their rotary embedding, rounded once to T, a 16-bit type. Kernels read a
/// row once per tile that it meets, so rotating in advance pays.
template <class T>
void turn_heads(const HeadCounts& counts,
                const Rotary& rotary,
                const HeadMatrix<const T>& from,
                const HeadMatrix<T>& to,
                StreamView stream);

/// If there is a rotary embedding, rotates the queries and keys of `args` into `turned` and makes
/// `args` refer to those.
template <class Args>
void turn_inputs(Args& args, const TurnedHeads& turned, StreamView stream) {
  if (args.rotary.dims == 0) return;
  const AttentionSizes& sizes = args.sizes;
  const auto turn = [&](auto& matrix, const TensorView& to, std::int64_t heads) {
    using T = std::remove_const_t<std::remove_pointer_t<decltype(matrix.data)>>;
    const HeadMatrix<T> there = head_matrix<T>(to, matrix.rows);
    turn_heads<T>({sizes.sequences * matrix.rows, heads, sizes.head_size}, args.rotary, matrix,
                  there, stream);
    matrix = {there.data, there.stride, there.rows};
  };
  turn(args.query, turned.query, sizes.heads);
  turn(args.key, turned.key, sizes.kv_heads);
}

}  // namespace dstrain::ops::gpu
