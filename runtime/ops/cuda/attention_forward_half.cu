#include "runtime/ops/cuda/attention_forward.h"
#include "runtime/ops/cuda/attention_half.h"
#include "runtime/ops/cuda/turn_heads.h"

namespace dstrain::ops::gpu {
namespace {

template <class T>
struct HalfForward : AttentionForward<T> {
  bool copies_inputs = false;  ///< 16 bytes at a time, as the next one
  bool copies_output = false;
};

/// Blocks that a multiprocessor is to have room for, with tiles of so many columns.
constexpr int half_blocks_at_once(int columns) {
  return columns <= 64 ? 4 : columns <= 128 ? 3 : 2;
}

template <class T, int columns>
struct Shared {
  HalfTile<T, half_rows, columns> queries;  ///< then outputs
  HalfTile<T, key_tile, columns> keys;
  HalfTile<T, key_tile, columns> values;
  float biases[half_rows + key_tile];
};

/// What a thread knows of its two rows.
template <int columns>
struct Rows {
  float largest[2]{nothing, nothing};
  float sum[2]{};  ///< of the thread's own weights
  float factor[2]{};
  Sight::Range visible[2];
  FragmentC output[columns / 8]{};
};

using Scores = FragmentC[key_tile / 8];

template <class T, int columns>
DSTRAIN_DEVICE void start_keys(const HalfForward<T>& args,
                               const AttentionPlace& at,
                               Shared<T, columns>& s) {
  start_tile(key_rows(args.sizes, args.key, at), args.copies_inputs, s.keys);
  load_biases<half_threads, half_rows>(args.bias, args.bias_table, args.sizes.heads, at.head,
                                       at.key() - at.query, s.biases);
}

/// Turns the scores of a row into weights 2^(score - largest), and moves its maximum and sum on.
template <int columns>
DSTRAIN_DEVICE void weigh_row(int which, Rows<columns>& rows, Scores& scores) {
  float largest = rows.largest[which];
#pragma unroll
  for (const FragmentC& own : scores) {
    largest = fmaxf(largest, fmaxf(own.sums[2 * which], own.sums[2 * which + 1]));
  }
  largest = largest_of_row(largest);
  const float base = largest == nothing ? 0.0F : largest;
  float sum = 0;
#pragma unroll
  for (FragmentC& own : scores) {
#pragma unroll
    for (int i = 2 * which; i < 2 * which + 2; ++i) {
      own.sums[i] = approximate_exp2(own.sums[i] - base);
      sum += own.sums[i];
    }
  }
  rows.factor[which] = approximate_exp2(rows.largest[which] - base);
  rows.sum[which] = rows.sum[which] * rows.factor[which] + sum;
  rows.largest[which] = largest;
}

/// From queries and keys to weights, dropped where there is dropout.
template <class T, int columns>
DSTRAIN_DEVICE void compute_weights(const HalfForward<T>& args,
                                    const AttentionPlace& at,
                                    const Shared<T, columns>& s,
                                    Rows<columns>& rows,
                                    Scores& scores) {
  add_product_transposed(s.queries, warp() * 16, s.keys, scores);
  finish_scores(args, at, s.biases, rows.visible, scores);
#pragma unroll
  for (int which = 0; which < 2; ++which) {
    weigh_row(which, rows, scores);
    if (!args.mask.active()) continue;
    const std::int64_t query = at.query + block_row(which);
    drop_row(args.mask, at.sequence, dropout_group(args.sizes, at.head, query, at.tile), which,
             scores);
  }
}

/// output = output factor + weights values.
template <class T, int columns>
DSTRAIN_DEVICE void add_values(const Shared<T, columns>& s,
                               const Scores& weights,
                               Rows<columns>& rows) {
  for_each_sum(rows.output, [&](int which, int, float& output) { output *= rows.factor[which]; });
  add_rounded_product<T>(weights, s.values, rows.output);
}

/// Divides the outputs by the sums of weights and leaves them where queries were.
template <class T, int columns>
DSTRAIN_DEVICE void finish_rows(const HalfForward<T>& args,
                                const AttentionPlace& at,
                                const Rows<columns>& rows,
                                Shared<T, columns>& s) {
#pragma unroll
  for (int which = 0; which < 2; ++which) {
    const float sum = sum_of_row(rows.sum[which]);
    const bool sees = sum > 0;  // else it stands for nothing, and gets zeros
    const float inverse = sees ? 1.0F / sum : 0.0F;
    const int row = block_row(which);
#pragma unroll
    for (int i = 0; i < columns / 8; ++i) {
      const float* const own = &rows.output[i].sums[2 * which];
      store_pair(&s.queries.element[row][i * 8 + fragment_column()],
                 pack<T>(own[0] * inverse, own[1] * inverse));
    }
    const std::int64_t query = at.query + row;
    if (fragment_column() != 0 || query >= args.sizes.tokens) continue;
    args.logsumexp[(at.sequence * args.sizes.heads + at.head) * args.sizes.tokens + query] =
        sees ? ln_2 * (rows.largest[which] + log2f(sum)) : 0.0F;
  }
}

/// Blocks: tiles of queries, those that see most keys first, heads, sequences. Values are copied
/// while scores are computed, the next keys while values are added up.
template <class T, int columns>
DSTRAIN_KERNEL_AT_ONCE(half_threads, half_blocks_at_once(columns))
half_forward_kernel(DSTRAIN_ARGUMENT HalfForward<T> args) {
  auto& s = shared<Shared<T, columns>>();
  AttentionPlace at(block_z(), block_y(), block_y() / args.sizes.group());
  at.query = (blocks_x() - 1 - block_x()) * half_rows;
  start_tile(query_rows(args.sizes, args.query, at), args.copies_inputs, s.queries);
  Rows<columns> rows;
#pragma unroll
  for (int which = 0; which < 2; ++which) {
    rows.visible[which] = args.sight.of(at.sequence, at.query + block_row(which));
  }
  const Sight::Range range = args.sight.of_tile(at.sequence, at.query, half_rows);
  at.tile = range.begin / key_tile;
  if (at.key() < range.end) start_keys(args, at, s);
  while (at.key() < range.end) {
    Scores scores{};
    arrive();
    start_tile(key_rows(args.sizes, args.value, at), args.copies_inputs, s.values);
    compute_weights(args, at, s, rows, scores);
    arrive();
    ++at.tile;
    if (at.key() < range.end) start_keys(args, at, s);
    add_values(s, scores, rows);
  }
  arrive();  // where there are no keys, for the queries
  finish_rows(args, at, rows, s);
  sync();
  store_halves(s.queries, query_rows(args.sizes, args.output, at), args.copies_output);
}

}  // namespace

template <class T>
void launch_half_forward(const AttentionForward<T>& forward,
                         const TurnedHeads& turned,
                         StreamView stream) {
  const AttentionSizes& sizes = forward.sizes;
  HalfForward<T> args{forward};
  turn_inputs(args, turned, stream);
  args.copies_inputs = is_aligned(args.query, sizes.head_size) &&
                       is_aligned(args.key, sizes.head_size) &&
                       is_aligned(args.value, sizes.head_size);
  args.copies_output = is_aligned(args.output, sizes.head_size);
  with_columns(sizes.head_size, [&](auto columns) {
    launch("attention_forward", half_forward_kernel<T, columns>,
           {.x = divide_up(sizes.tokens, half_rows),
            .y = sizes.heads,
            .z = sizes.sequences,
            .threads = half_threads,
            .shared_bytes = sizeof(Shared<T, columns>)},
           args, stream);
  });
}
template void launch_half_forward<BFloat16>(const AttentionForward<BFloat16>&,
                                            const TurnedHeads&,
                                            StreamView);
template void launch_half_forward<Float16>(const AttentionForward<Float16>&,
                                           const TurnedHeads&,
                                           StreamView);

}  // namespace dstrain::ops::gpu
