#include <limits>

#include "runtime/ops/cached_attention.h"
#include "runtime/ops/cuda/attention_rows.h"
#include "runtime/ops/cuda/attention_rules.h"
#include "runtime/ops/cuda/cuda_ops.h"
#include "runtime/ops/cuda/elementwise.h"

namespace dstrain::ops::gpu {
namespace {

constexpr int warps = 4;
constexpr int threads = warps * warp_threads;
constexpr int lane_features = static_cast<int>(head_size_most) / warp_threads;

/// The rotary embedding of a sequence by its length.
struct LengthRotary {
  explicit LengthRotary(const Rotary& rotary) : by_length(rotary) {}
  Rotary by_length;
  DSTRAIN_DEVICE Turn turn(std::int64_t position, int feature, std::int64_t length) const {
    const auto half = static_cast<int>(by_length.dims / 2);
    const auto pair = static_cast<std::size_t>(feature < half ? feature : feature - half);
    const bool is_long = by_length.short_positions > 0 && length > by_length.short_positions;
    const float frequency =
        is_long ? by_length.long_frequencies[pair] : by_length.frequencies[pair];
    const SinCos at = sin_cos(static_cast<float>(position) * frequency);
    const float direction = feature < half ? -1.0F : 1.0F;
    return {at.cosine * by_length.magnitude, direction * (at.sine * by_length.magnitude)};
  }
  /// Returns a feature of a row of a head after the rotation.
  template <class T>
  DSTRAIN_DEVICE float turned(const T* row,
                              int feature,
                              std::int64_t position,
                              std::int64_t length) const {
    const float value = to_float(row[feature]);
    if (feature >= by_length.dims) return value;
    const Turn by = turn(position, feature, length);
    return value * by.cosine + to_float(row[partner_of(by_length, feature)]) * by.sine;
  }
};

/// Where sequences are in the cache.
struct Places {
  explicit Places(const CachePlaces& places)
      : slot(elements<const std::int32_t>(places.slot)),
        past(elements<const std::int32_t>(places.past)),
        length(elements<const std::int32_t>(places.length)) {}
  const std::int32_t* slot;
  const std::int32_t* past;
  const std::int32_t* length;
};

/// Element i of the new keys and values. A place outside the cache is skipped: a bug of the host.
template <class T>
struct Append {
  std::int64_t tokens;  ///< per sequence
  std::int64_t columns;
  std::int64_t head_size;
  std::int64_t slots;
  std::int64_t rows;  ///< of a slot
  LengthRotary rotary;
  Places places;
  HeadMatrix<const T> key;
  HeadMatrix<const T> value;
  T* cached_key;
  T* cached_value;

  DSTRAIN_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t row = i / columns;
    const std::int64_t column = i % columns;
    const std::int64_t sequence = row / tokens;
    const std::int64_t slot = places.slot[sequence];
    const std::int64_t position = places.past[sequence] + row % tokens;
    if (slot < 0 || slot >= slots || position < 0) return;
    const std::int64_t target = (slot * rows + position % rows) * columns + column;
    const auto feature = static_cast<int>(column % head_size);
    const T* const head = key.data + row * key.stride + column - feature;
    cached_key[target] =
        from_float<T>(rotary.turned(head, feature, position, places.length[sequence]));
    cached_value[target] = value.data[row * value.stride + column];
  }
};

template <class T>
struct Cached {
  AttentionSizes sizes;
  bool causal;
  std::int64_t window;
  float query_factor;  ///< scales scores: log2(e) / divisor
  LengthRotary rotary;
  DistanceBias bias;
  const T* bias_table;
  Places places;
  const std::int32_t* key_count;  ///< null if causal
  std::int64_t rows;              ///< of a slot
  HeadMatrix<const T> query;
  const T* cached_key;
  const T* cached_value;
  HeadMatrix<T> output;
};

/// What a warp makes of its keys.
struct Shared {
  float largest[warps];
  float sum[warps];
  float output[warps][head_size_most];
};

/// Grid: (queries, heads, sequences). Warp w attends to the keys w, w + 4, ...; a lane holds every
/// 32nd feature.
template <class T>
DSTRAIN_KERNEL(threads)
cached_kernel(DSTRAIN_ARGUMENT Cached<T> args) {
  auto& s = shared<Shared>();
  const std::int64_t sequence = block_z();
  const std::int64_t head = block_y();
  const auto head_size = static_cast<int>(args.sizes.head_size);
  const std::int64_t past = args.places.past[sequence];
  const std::int64_t position = past + block_x();
  const int warp = thread() / warp_threads;
  const int lane = thread() % warp_threads;

  float query[lane_features];
  float output[lane_features];
  const T* const source = args.query.at(sequence, head, block_x(), head_size);
#pragma unroll
  for (int i = 0; i < lane_features; ++i) {
    const int feature = lane + i * warp_threads;
    query[i] = feature < head_size
                   ? args.query_factor *
                         args.rotary.turned(source, feature, position, args.places.length[sequence])
                   : 0.0F;
    output[i] = 0;
  }

  const std::int64_t columns = args.sizes.kv_heads * head_size;
  const std::int64_t begin_of_slot =
      args.places.slot[sequence] * args.rows * columns + head / args.sizes.group() * head_size;
  const std::int64_t end = args.causal ? position + 1 : std::int64_t{args.key_count[sequence]};
  const std::int64_t begin =
      args.window > 0 && end > args.window ? end - args.window : std::int64_t{0};
  float largest = -std::numeric_limits<float>::infinity();
  float sum = 0;
#pragma unroll 1
  for (std::int64_t key = begin + warp; key < end; key += warps) {
    const std::int64_t row = begin_of_slot + key % args.rows * columns;
    float score = 0;
#pragma unroll
    for (int i = 0; i < lane_features; ++i) {
      const int feature = lane + i * warp_threads;
      if (feature < head_size) score += query[i] * to_float(args.cached_key[row + feature]);
    }
    for (int lanes = warp_threads / 2; lanes > 0; lanes /= 2) score += shuffle_xor(score, lanes);
    if (args.bias.active()) {
      const std::int64_t bias = args.bias.row_of(key - position) * args.sizes.heads + head;
      score += to_float(args.bias_table[bias]) * log2_e;
    }
    const float before = largest;
    largest = fmaxf(largest, score);
    const float factor = exp2f(before - largest);
    const float weight = exp2f(score - largest);
    sum = sum * factor + weight;
#pragma unroll
    for (int i = 0; i < lane_features; ++i) {
      const int feature = lane + i * warp_threads;
      if (feature >= head_size) continue;
      output[i] = output[i] * factor + weight * to_float(args.cached_value[row + feature]);
    }
  }
  if (lane == 0) {
    s.largest[warp] = largest;
    s.sum[warp] = sum;
  }
#pragma unroll
  for (int i = 0; i < lane_features; ++i) s.output[warp][lane + i * warp_threads] = output[i];
  sync();

  // Warp 0 has a key if any has.
  float total_largest = s.largest[0];
  for (const float each : s.largest) total_largest = fmaxf(total_largest, each);
  float total = 0;
  for (int i = 0; i < warps; ++i) total += s.sum[i] * exp2f(s.largest[i] - total_largest);
  T* const target = args.output.at(sequence, head, block_x(), head_size);
#pragma unroll 1
  for (int feature = thread(); feature < head_size; feature += threads) {
    float value = 0;
    for (int i = 0; i < warps; ++i) {
      value += s.output[i][feature] * exp2f(s.largest[i] - total_largest);
    }
    target[feature] = from_float<T>(value / total);
  }
}

}  // namespace

void append_cache(const AppendCacheArgs& args, StreamView stream) {
  with_element_type(args.key.dtype(), [&](auto element) {
    using T = decltype(element);
    const Shape& shape = args.key.shape();
    const std::int64_t tokens = shape[0] / args.places.slot.numel();
    for_elements(
        "append_cache", shape.numel(),
        Append<T>{tokens, shape[1], args.head_size, args.cache.slots(), args.cache.rows(),
                  LengthRotary(args.rotary), Places(args.places),
                  head_matrix<const T>(args.key, tokens), head_matrix<const T>(args.value, tokens),
                  elements<T>(args.cache.key), elements<T>(args.cache.value)},
        stream);
  });
}

void cached_attention(const CachedAttentionArgs& args, StreamView stream) {
  const AttentionSizes& sizes = args.sizes;
  DSTRAIN_CHECK(sizes.head_size <= head_size_most,
                "GPUs attend with heads of up to {} features, not {}", head_size_most,
                sizes.head_size);
  with_element_type(args.query.dtype(), [&](auto element) {
    using T = decltype(element);
    launch("cached_attention", cached_kernel<T>,
           {.x = sizes.tokens,
            .y = sizes.heads,
            .z = sizes.sequences,
            .threads = threads,
            .shared_bytes = sizeof(Shared)},
           Cached<T>{
               sizes, args.rule.causal, args.rule.window, log2_e / args.rule.divisor,
               LengthRotary(args.rule.rotary), DistanceBias(args), elements<const T>(args.bias),
               Places(args.places), elements<const std::int32_t>(args.key_count), args.cache.rows(),
               head_matrix<const T>(args.query, sizes.tokens), elements<const T>(args.cache.key),
               elements<const T>(args.cache.value), head_matrix<T>(args.output, sizes.tokens)},
           stream);
  });
}

}  // namespace dstrain::ops::gpu
