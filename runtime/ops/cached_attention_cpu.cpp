#include "runtime/ops/cached_attention_cpu.h"

#include <algorithm>
#include <limits>

#include "runtime/device/cpu_stream_access.h"
#include "runtime/ops/chunks.h"
#include "runtime/ops/cpu_ops.h"
#include "runtime/ops/simd.h"
#include "runtime/ops/vector16.h"

namespace dstrain::ops {
namespace {

/// The places of a call, checked.
class Places {
 public:
  Places(const CachePlaces& places, const KeyValueCache& cache)
      : slot_(elements<const std::int32_t>(places.slot)),
        past_(elements<const std::int32_t>(places.past)),
        length_(elements<const std::int32_t>(places.length)) {
    for (std::int64_t i = 0; i < places.slot.numel(); ++i) {
      DSTRAIN_CHECK(slot(i) >= 0 && slot(i) < cache.slots(), "slot {} of {}", slot(i),
                    cache.slots());
      DSTRAIN_CHECK(past(i) >= 0, "{} positions before a sequence", past(i));
    }
  }
  [[nodiscard]] std::int64_t slot(std::int64_t sequence) const { return slot_[sequence]; }
  [[nodiscard]] std::int64_t past(std::int64_t sequence) const { return past_[sequence]; }
  [[nodiscard]] std::int64_t length(std::int64_t sequence) const { return length_[sequence]; }

 private:
  const std::int32_t* slot_;
  const std::int32_t* past_;
  const std::int32_t* length_;
};

template <class T>
DSTRAIN_SIMD_CLONES void copy_kernel(const T* __restrict from,
                                     std::int64_t count,
                                     T* __restrict to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = from[i];
}

/// to = from, with its first 2 `half` features rotated by `angles`.
template <class T>
DSTRAIN_SIMD_CLONES void turn_kernel(const T* __restrict from,
                                     const float* __restrict angles,
                                     std::int64_t half,
                                     T* __restrict to) {
  for (std::int64_t i = 0; i < half; ++i) {
    const float low = to_float(from[i]);
    const float high = to_float(from[half + i]);
    to[i] = from_float<T>(low * angles[i] - high * angles[half + i]);
    to[half + i] = from_float<T>(high * angles[i] + low * angles[half + i]);
  }
}

template <class T>
void append(const AppendCacheArgs& args) {
  const Places places(args.places, args.cache);
  const std::int64_t columns = args.key.shape()[1];
  const std::int64_t tokens = args.key.shape()[0] / args.places.slot.numel();
  const std::int64_t half = args.rotary.dims / 2;
  for_chunks(args.key.shape()[0], 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t sequence = row / tokens;
      const std::int64_t position = places.past(sequence) + row % tokens;
      const std::int64_t target =
          (places.slot(sequence) * args.cache.rows() + position % args.cache.rows()) * columns;
      copy_kernel(elements<const T>(args.value) + row * args.value.row_stride(), columns,
                  elements<T>(args.cache.value) + target);
      const T* const key = elements<const T>(args.key) + row * args.key.row_stride();
      T* const stored = elements<T>(args.cache.key) + target;
      copy_kernel(key, columns, stored);
      if (half == 0) continue;
      float angles[Rotary::dims_max];
      RotaryTable(args.rotary, angles).fill(args.rotary, {places.length(sequence), position, 1});
      for (std::int64_t head = 0; head < columns; head += args.head_size) {
        turn_kernel(key + head, angles, half, stored + head);
      }
    }
  });
}

/// Sum of the products of `count` pairs, a multiple of 16.
[[gnu::always_inline]] inline float dot(const float* a, const float* b, std::int64_t count) {
  Vector16 sums{};
  for (std::int64_t i = 0; i < count; i += 16) sums += load16(a + i) * load16(b + i);
  float values[16];
  store16(values, sums);
  for (int width = 8; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) values[i] += values[i + width];
  }
  return values[0];
}

/// A query, its output, and its running softmax in powers of two.
struct Row {
  float* query;   ///< (D'): times the scale
  float* output;  ///< (D')
  float* largest;
  float* sum;
};

/// The rows of the queries of a head of keys, in a slot of the workspace.
class Rows {
 public:
  Rows(float* memory, std::int64_t count, std::int64_t columns)
      : memory_(memory), sums_(memory + 2 * count * columns), columns_(columns) {}
  [[nodiscard]] Row operator[](std::int64_t i) const {
    float* const query = memory_ + 2 * i * columns_;
    return {query, query + columns_, sums_ + 2 * i, sums_ + 2 * i + 1};
  }

 private:
  float* memory_;
  float* sums_;
  std::int64_t columns_;
};

/// One tile of keys and values for a row. Biases are those of the keys, or null.
DSTRAIN_SIMD_CLONES
void row_kernel(const Row& row,
                const float* __restrict keys,
                const float* __restrict values,
                std::int64_t columns,
                const VisibleKeys& visible,
                const float* biases) {
  alignas(64) float weights[attention_block];
  const std::int64_t begin = std::max<std::int64_t>(visible.begin[0], 0);
  const std::int64_t end = std::min<std::int64_t>(visible.end[0], attention_block);
  float largest = *row.largest;
  for (std::int64_t key = begin; key < end; ++key) {
    const float score =
        dot(row.query, keys + key * columns, columns) + (biases == nullptr ? 0.0F : biases[key]);
    weights[key] = score;
    largest = score > largest ? score : largest;
  }
  const float factor = fast_exp2(*row.largest - largest);
  for (std::int64_t i = 0; i < columns; i += 16) {
    store16(row.output + i, load16(row.output + i) * factor);
  }
  float sum = *row.sum * factor;
  for (std::int64_t key = begin; key < end; ++key) {
    weights[key] = fast_exp2(weights[key] - largest);
    sum += weights[key];
  }
  for (std::int64_t i = 0; i < columns; i += 16) {
    Vector16 output = load16(row.output + i);
    for (std::int64_t key = begin; key < end; ++key) {
      output += load16(values + key * columns + i) * weights[key];
    }
    store16(row.output + i, output);
  }
  *row.largest = largest;
  *row.sum = sum;
}

template <class T>
DSTRAIN_SIMD_CLONES void start_row(const T* query,
                                   const HeadLayout& layout,
                                   float factor,
                                   const Row& row) {
  const std::int64_t columns = layout.tile_columns();
  for (std::int64_t i = 0; i < layout.head_size; ++i) row.query[i] = to_float(query[i]) * factor;
  for (std::int64_t i = layout.head_size; i < columns; ++i) row.query[i] = 0;
  for (std::int64_t i = 0; i < columns; ++i) row.output[i] = 0;
  *row.largest = std::numeric_limits<float>::lowest();
  *row.sum = 0;
}

template <class T>
DSTRAIN_SIMD_CLONES void finish_row(const Row& row, std::int64_t count, T* output) {
  const float factor = 1 / *row.sum;
  for (std::int64_t i = 0; i < count; ++i) output[i] = from_float<T>(row.output[i] * factor);
}

/// The row of the table of biases for each distance of a key before its query.
class BiasRows {
 public:
  BiasRows(const RelativeBuckets& buckets, const AttentionSizes& sizes, std::int32_t* memory)
      : rows_(buckets.active() ? memory : nullptr) {
    if (rows_ == nullptr) return;
    for (std::int64_t distance = 0; distance < sizes.keys; ++distance) {
      rows_[distance] = static_cast<std::int32_t>(buckets.row_of(-distance));
    }
  }
  /// Returns the biases of a tile's keys up to the query, times log2(e); null if there are none.
  template <class T>
  const float* of(const CachedAttentionArgs& args,
                  std::int64_t head,
                  std::int64_t query,
                  std::int64_t first_key,
                  float* biases) const {
    if (rows_ == nullptr) return nullptr;
    const T* const table = elements<const T>(args.bias);
    for (std::int64_t key = 0; key < attention_block && first_key + key <= query; ++key) {
      const std::int64_t row = rows_[query - first_key - key];
      biases[key] = to_float(table[row * args.sizes.heads + head]) * log2_e;
    }
    return biases;
  }

 private:
  std::int32_t* rows_;
};

/// The heads of queries that share a head of keys: each tile of keys is loaded once for all.
template <class T>
void run_few(const CachedAttentionArgs& args,
             const HeadLayout& layout,
             const CachedSequence& sequence,
             const KvHead& at,
             const BiasRows& bias_rows,
             float* memory) {
  const std::int64_t columns = layout.tile_columns();
  const std::int64_t count = layout.group() * layout.tokens;
  float* const key_tile = memory;
  float* const value_tile = memory + layout.tile_numel();
  const Rows rows(memory + 2 * layout.tile_numel(), count, columns);
  const Visibility sight(args.rule, layout, sequence.past);
  const auto row_of = [&](std::int64_t i) {
    const std::int64_t head = at.head * layout.group() + i / layout.tokens;
    return std::pair(head, i % layout.tokens);
  };
  for (std::int64_t i = 0; i < count; ++i) {
    const auto [head, query] = row_of(i);
    const auto from = head_rows<const T>(args.query, layout, layout.tokens, at.sequence, head);
    start_row(from.row(query), layout, log2_e / args.rule.divisor, rows[i]);
    sequence.angles.turn({rows[i].query, 1, columns, query}, RotaryTable::Direction::forward);
  }
  const auto keys = cached_rows<T>(args.cache.key, layout, sequence.slot, at.head);
  const auto values = cached_rows<T>(args.cache.value, layout, sequence.slot, at.head);
  const std::int64_t last = sight.last_tile(layout.query_tiles() - 1);
  for (std::int64_t tile = sight.first_tile(0); tile <= last; ++tile) {
    const std::int64_t first = tile * attention_block;
    const std::int64_t place = first % args.cache.rows();
    load_rows(keys.from(place), layout.keys_in(tile), key_tile);
    load_rows(values.from(place), layout.keys_in(tile), value_tile);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto [head, query] = row_of(i);
      const Visibility::Range range = sight.of(query);
      if (range.end <= first || range.begin >= first + attention_block) continue;
      VisibleKeys visible{};
      visible.begin[0] = static_cast<std::int32_t>(range.begin - first);
      visible.end[0] = static_cast<std::int32_t>(range.end - first);
      float biases[attention_block];
      row_kernel(rows[i], key_tile, value_tile, columns, visible,
                 bias_rows.of<T>(args, head, sequence.past + query, first, biases));
    }
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const auto [head, query] = row_of(i);
    const auto to = head_rows<T>(args.output, layout, layout.tokens, at.sequence, head);
    finish_row(rows[i], layout.head_size, to.row(query));
  }
}

/// A call, with its tables and slots in the workspace.
class CachedCall {
 public:
  explicit CachedCall(const CachedAttentionArgs& args)
      : args_(args),
        few_(attends_one_by_one(args.sizes, args.rule)),
        layout_(layout_of(args, few_)),
        cut_(layout_, args.rule, few_),
        memory_(floats(args.workspace)),
        places_(args.places, args.cache) {
    check();
  }

  void run() const {
    const AttentionSizes& sizes = args_.sizes;
    for (std::int64_t i = 0; i < sizes.sequences; ++i) {
      sequence(i).angles.fill(args_.rule.rotary,
                              {places_.length(i), places_.past(i), sizes.tokens});
    }
    const BiasRows bias_rows(args_.rule.buckets, sizes,
                             reinterpret_cast<std::int32_t*>(memory_ + cut_.bias_rows));
    for_kv_heads(layout_, [&](const KvHead& at) {
      float* const slot = memory_ + cut_.slots + at.slot * cut_.slot_numel;
      if (!few_) return run_cached_tiles(args_, layout_, sequence(at.sequence), at, slot);
      with_element_type(args_.query.dtype(), [&](auto element) {
        run_few<decltype(element)>(args_, layout_at(at), sequence(at.sequence), at, bias_rows,
                                   slot);
      });
    });
  }

 private:
  static HeadLayout layout_of(const CachedAttentionArgs& args, bool few) {
    HeadLayout layout{args.sizes, args.query.dtype() == DType::bf16, args.rule.buckets.count};
    if (!few) layout.keys = cached_tile_keys(args.sizes, args.rule);
    return layout;
  }
  void check() const {
    if (!args_.rule.causal) {
      AttentionSizes most = args_.sizes;
      most.keys = args_.cache.rows();
      return require_key_counts(args_.key_count, most);
    }
    for (std::int64_t i = 0; i < args_.sizes.sequences; ++i) {
      DSTRAIN_CHECK(places_.past(i) + args_.sizes.tokens <= args_.sizes.keys, "{} + {} of {} keys",
                    places_.past(i), args_.sizes.tokens, args_.sizes.keys);
    }
  }
  [[nodiscard]] CachedSequence sequence(std::int64_t i) const {
    const std::int64_t numel = args_.sizes.tokens * args_.rule.rotary.dims;
    return {places_.slot(i), places_.past(i),
            RotaryTable(args_.rule.rotary, memory_ + cut_.angles + i * numel)};
  }
  /// With as many keys as the sequence has.
  [[nodiscard]] HeadLayout layout_at(const KvHead& at) const {
    HeadLayout own = layout_;
    own.keys = args_.rule.causal ? places_.past(at.sequence) + args_.sizes.tokens
                                 : key_count(args_.key_count, at.sequence, args_.cache.rows());
    return own;
  }

  const CachedAttentionArgs& args_;
  bool few_;
  HeadLayout layout_;
  CachedWorkspace cut_;
  float* memory_;
  Places places_;
};

}  // namespace

namespace cpu {

void append_cache(const AppendCacheArgs& args, StreamView stream) {
  cpu_stream(stream).launch([args] {
    with_element_type(args.key.dtype(), [&](auto element) { append<decltype(element)>(args); });
  });
}

void cached_attention(const CachedAttentionArgs& args, StreamView stream) {
  cpu_stream(stream).launch([args] { CachedCall(args).run(); });
}

}  // namespace cpu
}  // namespace dstrain::ops
