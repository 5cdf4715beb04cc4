#include "runtime/ops/attention_tiles.h"

#include "runtime/ops/simd.h"

namespace dstrain::ops {
namespace {

template <class T>
DSTRAIN_SIMD_CLONES void load_kernel(const HeadRows<const T>& rows,
                                     std::int64_t count,
                                     float factor,
                                     float* __restrict tile) {
  const std::int64_t padded = (rows.columns + 15) / 16 * 16;
  for (std::int64_t i = 0; i < count; ++i) {
    const T* const row = rows.row(i);
    float* const target = tile + i * padded;
    for (std::int64_t j = 0; j < rows.columns; ++j) target[j] = to_float(row[j]) * factor;
    for (std::int64_t j = rows.columns; j < padded; ++j) target[j] = 0;
  }
}

template <class T>
DSTRAIN_SIMD_CLONES void store_kernel(const float* __restrict tile,
                                      float factor,
                                      const HeadRows<T>& rows,
                                      std::int64_t count) {
  const std::int64_t padded = (rows.columns + 15) / 16 * 16;
  for (std::int64_t i = 0; i < count; ++i) {
    T* const row = rows.row(i);
    const float* const source = tile + i * padded;
    for (std::int64_t j = 0; j < rows.columns; ++j) row[j] = from_float<T>(source[j] * factor);
  }
}

typedef float Vector4 __attribute__((vector_size(16)));
typedef float Memory4 __attribute__((vector_size(16), aligned(4), may_alias));

}  // namespace

void require_key_counts(const TensorView& counts, const AttentionSizes& sizes) {
  for (std::int64_t sequence = 0; sequence < sizes.sequences; ++sequence) {
    const std::int64_t count = key_count(counts, sequence, sizes.keys);
    DSTRAIN_CHECK(count >= 1 && count <= sizes.keys, "{} of {} keys count", count, sizes.keys);
  }
}

void require_first_keys(const TensorView& first_keys) {
  if (first_keys.empty()) return;
  const std::int64_t tokens = first_keys.shape()[1];
  const auto* const values = elements<const std::int32_t>(first_keys);
  for (std::int64_t i = 0; i < first_keys.shape().numel(); ++i) {
    const std::int64_t query = i % tokens;
    const std::int32_t least = query == 0 ? 0 : values[i - 1];
    DSTRAIN_CHECK(values[i] >= least && values[i] <= query, "first key {} of query {}", values[i],
                  query);
  }
}

Visibility::Tile Visibility::tile(std::int64_t query_tile, std::int64_t key_tile) const {
  const std::int64_t first_key = key_tile * attention_block;
  const std::int64_t end_key = std::min(first_key + attention_block, keys_);
  const Range first = of(query_tile * attention_block);
  const Range last = of(last_query(query_tile));
  if (last.end <= first_key || first.begin >= end_key) return Tile::none;
  const bool from_begin = last.begin <= first_key;
  if (from_begin && first.end >= first_key + attention_block) return Tile::all;
  const bool to_end = !causal_ || count_ >= end_key;
  const bool meet = past_ + query_tile * attention_block == first_key;
  return causal_ && meet && from_begin && to_end ? Tile::diagonal : Tile::some;
}

std::int64_t Visibility::first_tile(std::int64_t query_tile) const {
  const std::int64_t key = of(query_tile * attention_block).begin;
  return std::min(key, count_ - 1) / attention_block;
}

std::int64_t Visibility::last_tile(std::int64_t query_tile) const {
  return (of(last_query(query_tile)).end - 1) / attention_block;
}

VisibleKeys visible_keys(const Visibility& sight, std::int64_t query_tile, std::int64_t key_tile) {
  VisibleKeys visible{};
  const std::int64_t first_key = key_tile * attention_block;
  for (std::int64_t i = 0; i < attention_block; ++i) {
    const Visibility::Range range = sight.of(query_tile * attention_block + i);
    visible.begin[i] = static_cast<std::int32_t>(range.begin - first_key);
    visible.end[i] = static_cast<std::int32_t>(range.end - first_key);
  }
  return visible;
}

template <class T>
void load_tile(const HeadRows<const T>& rows, std::int64_t count, float factor, float* tile) {
  load_kernel(rows, count, factor, tile);
  const std::int64_t padded = (rows.columns + 15) / 16 * 16;
  std::fill(tile + count * padded, tile + attention_block * padded, 0.0F);
}

template <class T>
void load_rows(const HeadRows<const T>& rows, std::int64_t count, float* tile) {
  load_kernel(rows, count, 1.0F, tile);
}

template <class T>
void store_tile(const float* tile, float factor, const HeadRows<T>& rows, std::int64_t count) {
  store_kernel(tile, factor, rows, count);
}

template void load_tile(const HeadRows<const float>&, std::int64_t, float, float*);
template void load_tile(const HeadRows<const BFloat16>&, std::int64_t, float, float*);
template void load_tile(const HeadRows<const Float16>&, std::int64_t, float, float*);
template void load_rows(const HeadRows<const float>&, std::int64_t, float*);
template void load_rows(const HeadRows<const BFloat16>&, std::int64_t, float*);
template void load_rows(const HeadRows<const Float16>&, std::int64_t, float*);
template void store_tile(const float*, float, const HeadRows<float>&, std::int64_t);
template void store_tile(const float*, float, const HeadRows<BFloat16>&, std::int64_t);
template void store_tile(const float*, float, const HeadRows<Float16>&, std::int64_t);

DSTRAIN_SIMD_CLONES
void transpose_tile(const float* from, std::int64_t rows, std::int64_t columns, float* to) {
  for (std::int64_t i = 0; i < rows; i += 4) {
    for (std::int64_t j = 0; j < columns; j += 4) {
      const float* const source = from + i * columns + j;
      const Vector4 a = *reinterpret_cast<const Memory4*>(source);
      const Vector4 b = *reinterpret_cast<const Memory4*>(source + columns);
      const Vector4 c = *reinterpret_cast<const Memory4*>(source + 2 * columns);
      const Vector4 d = *reinterpret_cast<const Memory4*>(source + 3 * columns);
      const Vector4 ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
      const Vector4 ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
      const Vector4 cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
      const Vector4 cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
      float* const target = to + j * rows + i;
      *reinterpret_cast<Memory4*>(target) = __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5);
      *reinterpret_cast<Memory4*>(target + rows) =
          __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7);
      *reinterpret_cast<Memory4*>(target + 2 * rows) =
          __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
      *reinterpret_cast<Memory4*>(target + 3 * rows) =
          __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
    }
  }
}

}  // namespace dstrain::ops
