#include <algorithm>
#include <type_traits>

#include "runtime/ops/cuda/attention_backward.h"
#include "runtime/ops/cuda/attention_tiles.h"
#include "runtime/ops/cuda/block_sum.h"
#include "runtime/ops/cuda/cuda_ops.h"
#include "runtime/ops/cuda/elementwise.h"
#include "runtime/ops/cuda/warp_instructions.h"

namespace dstrain::ops::gpu {
namespace {

constexpr int query_tile = static_cast<int>(attention_backward_queries);
constexpr int own_rows = query_tile / 16;
constexpr int own_keys = key_tile / 16;

using Backward = AttentionBackward<float>;
using Place = AttentionPlace;

template <int columns>
struct Shared {
  float queries[query_tile][columns + padding];
  float output_gradient[query_tile][columns + padding];
  float keys[key_tile][columns + padding];
  float values[key_tile][columns + padding];
  float weights[query_tile][key_tile + padding];    ///< P Z
  float gradients[query_tile][key_tile + padding];  ///< dS
  float biases[query_tile + key_tile];
  DiagonalSums<query_tile> diagonals;
};

template <int columns>
DSTRAIN_DEVICE void load_queries(const Backward& args, const Place& at, Shared<columns>& s) {
  load_turned<query_tile, columns, float>(query_rows(args.sizes, args.query, at), args.query_factor,
                                          args.rotary, s.queries);
  load_tile<query_tile, columns, float>(query_rows(args.sizes, args.output_gradient, at), 1,
                                        s.output_gradient);
}
template <int columns>
DSTRAIN_DEVICE void load_keys(const Backward& args, const Place& at, Shared<columns>& s) {
  load_turned<key_tile, columns, float>(key_rows(args.sizes, args.key, at), 1, args.rotary, s.keys);
  load_tile<key_tile, columns, float>(key_rows(args.sizes, args.value, at), 1, s.values);
}

/// The thread's part of the scores and dP of a tile.
struct Products {
  float scores[own_rows][own_keys];
  float gradients[own_rows][own_keys];
};

template <int columns>
DSTRAIN_DEVICE void multiply_products(const Shared<columns>& s, Products& p) {
#pragma unroll
  for (int i = 0; i < own_rows; ++i) {
#pragma unroll
    for (int j = 0; j < own_keys; ++j) p.scores[i][j] = p.gradients[i][j] = 0;
  }
#pragma unroll 2
  for (int k = 0; k < columns; k += 4) {
    float4 keys[own_keys];
    float4 values[own_keys];
#pragma unroll
    for (int j = 0; j < own_keys; ++j) {
      keys[j] = load4(&s.keys[tile_x() + 16 * j][k]);
      values[j] = load4(&s.values[tile_x() + 16 * j][k]);
    }
#pragma unroll
    for (int i = 0; i < own_rows; ++i) {
      const float4 query = load4(&s.queries[tile_y() + 16 * i][k]);
      const float4 gradient = load4(&s.output_gradient[tile_y() + 16 * i][k]);
#pragma unroll
      for (int j = 0; j < own_keys; ++j) {
        p.scores[i][j] = dot4(query, keys[j], p.scores[i][j]);
        p.gradients[i][j] = dot4(gradient, values[j], p.gradients[i][j]);
      }
    }
  }
}

/// Writes P Z and dS of a tile, with zeros where a query does not see a key.
template <int columns>
DSTRAIN_DEVICE void compute_tile(const Backward& args, const Place& at, Shared<columns>& s) {
  Products p;
  multiply_products(s, p);
#pragma unroll
  for (int i = 0; i < own_rows; ++i) {
    const int row = tile_y() + 16 * i;
    const std::int64_t query = at.query + row;
    const Sight::Range visible = args.sight.of(at.sequence, query);
    const std::int64_t of_query =
        (at.sequence * args.sizes.heads + at.head) * args.sizes.tokens + query;
    const bool exists = query < args.sizes.tokens;
    const float logsumexp = exists ? args.logsumexp[of_query] * log2_e : 0.0F;
    const float delta = exists ? args.delta[of_query] : 0.0F;
    DropoutMask::Four drawn{{1, 1, 1, 1}};
    if (args.mask.active()) {
      drawn =
          args.mask.draw(at.sequence, dropout_group(args.sizes, at.head, query, at.tile), tile_x());
    }
#pragma unroll
    for (int j = 0; j < own_keys; ++j) {
      const int column = tile_x() + 16 * j;
      float score = p.scores[i][j];
      if (args.bias.active()) score += s.biases[column - row + query_tile - 1];
      const bool sees = visible.contains(at.key() + column);
      const float weight = sees ? exp2f(score - logsumexp) : 0.0F;
      s.weights[row][column] = weight * drawn.multiplier[j];
      s.gradients[row][column] = weight * (p.gradients[i][j] * drawn.multiplier[j] - delta);
    }
  }
}

/// The thread's rows of the key and value gradients.
template <int columns>
struct KeyGradients {
  float keys[own_keys][columns / 16];
  float values[own_keys][columns / 16];
};

/// keys += dS' queries, values += (P Z)' output gradients.
template <int columns>
DSTRAIN_DEVICE void add_key_gradients(const Shared<columns>& s, KeyGradients<columns>& sums) {
#pragma unroll 2
  for (int query = 0; query < query_tile; ++query) {
    float gradients[own_keys];
    float weights[own_keys];
#pragma unroll
    for (int i = 0; i < own_keys; ++i) {
      gradients[i] = s.gradients[query][tile_y() + 16 * i];
      weights[i] = s.weights[query][tile_y() + 16 * i];
    }
#pragma unroll
    for (int j = 0; j < columns / 16; ++j) {
      const float value = s.queries[query][tile_x() + 16 * j];
      const float gradient = s.output_gradient[query][tile_x() + 16 * j];
#pragma unroll
      for (int i = 0; i < own_keys; ++i) {
        sums.keys[i][j] = fmaf(gradients[i], value, sums.keys[i][j]);
        sums.values[i][j] = fmaf(weights[i], gradient, sums.values[i][j]);
      }
    }
  }
}

template <int columns>
DSTRAIN_DEVICE void put_rows(const float (&sums)[own_keys][columns / 16],
                             float (&tile)[key_tile][columns + padding]) {
#pragma unroll
  for (int i = 0; i < own_keys; ++i) {
#pragma unroll
    for (int j = 0; j < columns / 16; ++j) tile[tile_y() + 16 * i][tile_x() + 16 * j] = sums[i][j];
  }
}

/// Grid: (key tiles, key heads, sequences). Sums in order over the query heads that share the key
/// head, and over their tiles.
template <int columns>
DSTRAIN_KERNEL_AT_ONCE(attention_threads, blocks_at_once(columns))
key_kernel(DSTRAIN_ARGUMENT Backward args) {
  auto& s = shared<Shared<columns>>();
  const std::int64_t group = args.sizes.group();
  Place at(block_z(), block_y() * group, block_y());
  at.tile = static_cast<std::int32_t>(block_x());
  load_keys(args, at, s);
  KeyGradients<columns> sums{};
  for (; at.head < (block_y() + 1) * group; ++at.head) {
    for (at.query = 0; at.query < args.sizes.tokens; at.query += query_tile) {
      if (!sees(args, at, query_tile)) continue;
      sync();
      load_queries(args, at, s);
      load_biases<attention_threads, query_tile>(args.bias, args.bias_table, args.sizes.heads,
                                                 at.head, at.key() - at.query, s.biases);
      sync();
      compute_tile(args, at, s);
      sync();
      add_key_gradients(s, sums);
    }
  }
  sync();
  put_rows<columns>(sums.keys, s.keys);
  put_rows<columns>(sums.values, s.values);
  sync();
  store_tile<attention_threads, key_tile, columns, float>(
      s.keys, ln_2, args.rotary, true, key_rows(args.sizes, args.key_gradient, at));
  store_tile<attention_threads, key_tile, columns, float>(
      s.values, 1, args.rotary, false, key_rows(args.sizes, args.value_gradient, at));
}

/// sums += dS keys.
template <int columns>
DSTRAIN_DEVICE void add_query_gradients(const Shared<columns>& s,
                                        float (&sums)[own_rows][columns / 16]) {
#pragma unroll 2
  for (int key = 0; key < key_tile; ++key) {
    float gradients[own_rows];
#pragma unroll
    for (int i = 0; i < own_rows; ++i) gradients[i] = s.gradients[tile_y() + 16 * i][key];
#pragma unroll
    for (int j = 0; j < columns / 16; ++j) {
      const float value = s.keys[key][tile_x() + 16 * j];
#pragma unroll
      for (int i = 0; i < own_rows; ++i) sums[i][j] = fmaf(gradients[i], value, sums[i][j]);
    }
  }
}

/// Grid: (query tiles, heads, sequences).
template <int columns>
DSTRAIN_KERNEL_AT_ONCE(attention_threads, blocks_at_once(columns))
query_kernel(DSTRAIN_ARGUMENT Backward args) {
  auto& s = shared<Shared<columns>>();
  Place at(block_z(), block_y(), block_y() / args.sizes.group());
  at.query = block_x() * query_tile;
  load_queries(args, at, s);
  float sums[own_rows][columns / 16] = {};
  float bias_sum = 0;
  const Sight::Range range = args.sight.of_tile(at.sequence, at.query, query_tile);
  for (at.tile = range.begin / key_tile; at.key() < range.end; ++at.tile) {
    sync();
    load_keys(args, at, s);
    load_biases<attention_threads, query_tile>(args.bias, args.bias_table, args.sizes.heads,
                                               at.head, at.key() - at.query, s.biases);
    sync();
    compute_tile(args, at, s);
    sync();
    add_query_gradients(s, sums);
    if (args.bias_sums == nullptr) continue;
    add_diagonals<attention_threads>(args.bias, at, s.gradients, s.diagonals);
    sync();
    bias_sum += sum_of_bias(s.diagonals, thread());
  }
  if (args.bias_sums != nullptr && thread() < args.bias.buckets) {
    const std::int64_t of_head = at.sequence * args.sizes.heads + at.head;
    args.bias_sums[(of_head * blocks_x() + block_x()) * args.bias.buckets + thread()] = bias_sum;
  }
  sync();
#pragma unroll
  for (int i = 0; i < own_rows; ++i) {
#pragma unroll
    for (int j = 0; j < columns / 16; ++j) {
      s.queries[tile_y() + 16 * i][tile_x() + 16 * j] = sums[i][j];
    }
  }
  sync();
  store_tile<attention_threads, query_tile, columns, float>(
      s.queries, args.query_gradient_factor, args.rotary, true,
      query_rows(args.sizes, args.query_gradient, at));
}

template <class T>
struct Delta {
  HeadMatrix<const T> output;
  HeadMatrix<const T> output_gradient;
  float* delta;
  AttentionSizes sizes;
  bool copies;  ///< whether rows can be copied 16 bytes at a time
};

/// 16 bytes of elements, padded with zeros past the end.
template <class T>
struct alignas(16) DeltaChunk {
  static constexpr int count = 16 / sizeof(T);
  T element[count];

  DSTRAIN_DEVICE DeltaChunk(const T* from, std::int64_t there, bool copies) {
    if (copies) {
      copy_chunk(element, from);
    } else {
#pragma unroll
      for (int i = 0; i < count; ++i) element[i] = i < there ? from[i] : T{};
    }
  }
};

/// `lanes` threads per query of a head.
template <class T, int lanes>
DSTRAIN_KERNEL(attention_threads)
delta_kernel(DSTRAIN_ARGUMENT Delta<T> args) {
  using Chunk = DeltaChunk<T>;
  const AttentionSizes& sizes = args.sizes;
  const std::int64_t index = block_x() * (attention_threads / lanes) + thread() / lanes;
  const bool exists = index < sizes.sequences * sizes.heads * sizes.tokens;  // in (B, H, T)
  float sum = 0;
  if (exists) {
    const std::int64_t query = index % sizes.tokens;
    const std::int64_t head = index / sizes.tokens % sizes.heads;
    const std::int64_t sequence = index / sizes.tokens / sizes.heads;
    const T* const output = args.output.at(sequence, head, query, sizes.head_size);
    const T* const gradient = args.output_gradient.at(sequence, head, query, sizes.head_size);
    for (std::int64_t i = thread() % lanes * Chunk::count; i < sizes.head_size;
         i += lanes * Chunk::count) {
      const Chunk a(output + i, sizes.head_size - i, args.copies);
      const Chunk b(gradient + i, sizes.head_size - i, args.copies);
#pragma unroll
      for (int j = 0; j < Chunk::count; ++j) {
        sum = fmaf(to_float(a.element[j]), to_float(b.element[j]), sum);
      }
    }
  }
#pragma unroll
  for (int other = lanes / 2; other > 0; other /= 2) sum += shuffle_xor(sum, other);
  if (exists && thread() % lanes == 0) args.delta[index] = sum;
}

/// Sums the bias gradients of all sequences and tiles, in order, into `gradient` (buckets, H).
struct AddBiasSums {
  const float* sums;
  float* gradient;
  std::int64_t sequences;
  std::int64_t heads;
  std::int64_t tiles;
  std::int64_t buckets;
  bool accumulate;
  DSTRAIN_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t row = i / heads;
    const std::int64_t head = i % heads;
    float sum = 0;
    for (std::int64_t sequence = 0; sequence < sequences; ++sequence) {
      for (std::int64_t tile = 0; tile < tiles; ++tile) {
        sum += sums[((sequence * heads + head) * tiles + tile) * buckets + row];
      }
    }
    gradient[i] = accumulate ? gradient[i] + sum : sum;
  }
};

template <class T>
AttentionBackward<T> make_arguments(const AttentionBackwardArgs& args,
                                    const AttentionScratch& scratch) {
  const AttentionSizes& sizes = args.sizes;
  const bool biased = !args.bias_gradient.empty() && args.rule.buckets.active();
  return {.sizes = sizes,
          .rotary = rotary_of(args.rule, std::max(sizes.tokens, sizes.keys)),
          .query_factor = log2_e / args.rule.divisor,
          .query_gradient_factor = 1.0F / args.rule.divisor,
          .sight = Sight(args),
          .bias = DistanceBias(args),
          .bias_table = elements<const T>(args.bias),
          .mask = DropoutMask(args.dropout),
          .query = head_matrix<const T>(args.query, sizes.tokens),
          .key = head_matrix<const T>(args.key, sizes.keys),
          .value = head_matrix<const T>(args.value, sizes.keys),
          .output = head_matrix<const T>(args.output, sizes.tokens),
          .output_gradient = head_matrix<const T>(args.output_gradient, sizes.tokens),
          .query_gradient = head_matrix<T>(args.query_gradient, sizes.tokens),
          .key_gradient = head_matrix<T>(args.key_gradient, sizes.keys),
          .value_gradient = head_matrix<T>(args.value_gradient, sizes.keys),
          .logsumexp = floats(args.logsumexp),
          .delta = floats(scratch.delta),
          .bias_sums = biased ? floats(scratch.bias_sums) : nullptr};
}

template <class T>
void launch_delta(const AttentionBackward<T>& backward, StreamView stream) {
  const AttentionSizes& sizes = backward.sizes;
  const bool copies = is_aligned(backward.output, sizes.head_size) &&
                      is_aligned(backward.output_gradient, sizes.head_size);
  with_columns(sizes.head_size, [&](auto columns) {
    constexpr int lanes = std::min(columns / DeltaChunk<T>::count, warp_threads);
    launch("attention_backward", delta_kernel<T, lanes>,
           {.x = divide_up(sizes.sequences * sizes.heads * sizes.tokens, attention_threads / lanes),
            .threads = attention_threads},
           Delta<T>{backward.output, backward.output_gradient, backward.delta, sizes, copies},
           stream);
  });
}

/// For f32: products are exact up to the order of their sums.
void launch_backward(const Backward& backward, StreamView stream) {
  const AttentionSizes& sizes = backward.sizes;
  with_columns(sizes.head_size, [&](auto columns) {
    Grid grid{.x = divide_up(sizes.keys, key_tile),
              .y = sizes.kv_heads,
              .z = sizes.sequences,
              .threads = attention_threads,
              .shared_bytes = sizeof(Shared<columns>)};
    launch("attention_backward", key_kernel<columns>, grid, backward, stream);
    grid.x = divide_up(sizes.tokens, query_tile);
    grid.y = sizes.heads;
    launch("attention_backward", query_kernel<columns>, grid, backward, stream);
  });
}

}  // namespace

void attention_backward(const AttentionBackwardArgs& args, StreamView stream) {
  const AttentionSizes& sizes = args.sizes;
  const std::int64_t buckets = args.rule.buckets.count;
  Arena arena(args.workspace);
  const AttentionScratch scratch(arena, sizes, args.rule);
  with_element_type(args.query.dtype(), [&](auto element) {
    using T = decltype(element);
    const AttentionBackward<T> backward = make_arguments<T>(args, scratch);
    constexpr bool halves = !std::is_same_v<T, float>;
    launch_delta(backward, stream);
    if constexpr (halves) {
      launch_half_backward(backward, scratch, stream);
    } else {
      launch_backward(backward, stream);
    }
    if (backward.bias_sums == nullptr) return;
    const std::int64_t tile = halves ? attention_backward_half_queries : query_tile;
    for_elements(
        "attention_backward", buckets * sizes.heads,
        AddBiasSums{backward.bias_sums, floats(args.bias_gradient), sizes.sequences, sizes.heads,
                    divide_up(sizes.tokens, tile), buckets, args.accumulate_bias},
        stream);
  });
}

}  // namespace dstrain::ops::gpu
