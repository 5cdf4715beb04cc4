#pragma once
#include <cstdint>
#include <type_traits>

#include "runtime/ops/attention_scratch.h"
#include "runtime/ops/cuda/attention_rows.h"

namespace dstrain::ops::gpu {

/// The heads of a tensor of queries or keys, as many rows of as many heads.
struct HeadCounts {
  std::int64_t rows;
  std::int64_t heads;
  std::int64_t head_size;
};

/// to = the heads as their rotary embedding turns them, rounded once to T, a type of halves.
/// Kernels read a row for each tile that it meets, so that it pays to turn it before.
template <class T>
void turn_heads(const HeadCounts& counts,
                const Rotary& rotary,
                const HeadMatrix<const T>& from,
                const HeadMatrix<T>& to,
                StreamView stream);

/// Turns the queries and keys that forward or backward read into `turned`, and lets them read
/// those, where there is a rotary embedding.
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
