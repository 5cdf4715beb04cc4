#include "runtime/comm/host_sum.h"

#include <algorithm>
#include <array>

#include <immintrin.h>

#include "runtime/ops/simd.h"

namespace dstrain::comm {
namespace {

constexpr Bytes line_bytes = 64;

/// Bytes from `address` to the next start of a cache line, 0 if it is one.
Bytes bytes_to_line(const void* address) {
  const auto at = static_cast<Bytes>(reinterpret_cast<std::uintptr_t>(address));
  return round_up(at, line_bytes) - at;
}

void stream_line(const void* from, void* to) {
  const auto* const source = static_cast<const __m128i*>(from);
  auto* const target = static_cast<__m128i*>(to);
  for (int i = 0; i < 4; ++i) _mm_stream_si128(target + i, _mm_loadu_si128(source + i));
}

void copy_streamed(const std::byte* from, std::byte* to, Bytes bytes) {
  const Bytes begin = std::min(bytes, bytes_to_line(to));
  const Bytes end = begin + (bytes - begin) / line_bytes * line_bytes;
  copy_bytes(from, to, begin);
  for (Bytes at = begin; at < end; at += line_bytes) stream_line(from + at, to + at);
  _mm_sfence();  // streamed stores are not ordered with the atomics that announce them
  copy_bytes(from + end, to + end, bytes - end);
}

}  // namespace

void copy_bytes(const void* from, void* to, Bytes bytes, Writes writes) {
  if (writes == Writes::cached || from == to) {
    copy_bytes(from, to, bytes);
  } else {
    copy_streamed(static_cast<const std::byte*>(from), static_cast<std::byte*>(to), bytes);
  }
}

namespace {

constexpr float sum_of(float first, float second) {
  return first + second;
}
constexpr BFloat16 sum_of(BFloat16 first, BFloat16 second) {
  return to_bfloat16(to_float(first) + to_float(second));
}
constexpr Float16 sum_of(Float16 first, Float16 second) {
  return to_float16(to_float(first) + to_float(second));
}

/// sum[i] = first[i] + second[i] for i in [0, numel).
template <class T>
struct Addition {
  const T* first;
  const T* second;
  T* sum;
  std::int64_t numel;

  [[nodiscard]] Addition part(std::int64_t begin, std::int64_t end) const {
    return {first + begin, second + begin, sum + begin, end - begin};
  }
  /// Number of elements before the first whole cache line of the sum.
  [[nodiscard]] std::int64_t head() const {
    return std::min(numel, bytes_to_line(sum) / Bytes{sizeof(T)});
  }
};

// Iterations are independent: the terms and the sum are the same memory or disjoint.
template <class T>
inline void add_cached(Addition<T> all) {
  DSTRAIN_INDEPENDENT_ITERATIONS
  for (std::int64_t i = 0; i < all.numel; ++i) all.sum[i] = sum_of(all.first[i], all.second[i]);
}

template <class T>
inline void add_streamed(Addition<T> all) {
  constexpr std::size_t line_numel = line_bytes / sizeof(T);
  alignas(line_bytes) std::array<T, line_numel> line;
  std::int64_t at = all.head();
  add_cached(all.part(0, at));
  for (; at + std::ssize(line) <= all.numel; at += std::ssize(line)) {
    add_cached<T>({all.first + at, all.second + at, line.data(), std::ssize(line)});
    stream_line(line.data(), all.sum + at);
  }
  add_cached(all.part(at, all.numel));
}

template <class T>
inline void add_as(Addition<T> all, Writes writes) {
  writes == Writes::streamed ? add_streamed(all) : add_cached(all);
}

/// Uses the processor's conversions, which round as those of Float16, twenty times as fast.
__attribute__((target("f16c"))) void add_native(Addition<Float16> all, Writes writes) {
  constexpr std::int64_t step = 8;
  std::int64_t at = writes == Writes::streamed ? all.head() : 0;
  add_cached(all.part(0, at));
  for (; at + step <= all.numel; at += step) {
    const auto* const first = reinterpret_cast<const __m128i*>(all.first + at);
    const auto* const second = reinterpret_cast<const __m128i*>(all.second + at);
    const __m256 exact = _mm256_add_ps(_mm256_cvtph_ps(_mm_loadu_si128(first)),
                                       _mm256_cvtph_ps(_mm_loadu_si128(second)));
    const __m128i sum = _mm256_cvtps_ph(exact, _MM_FROUND_TO_NEAREST_INT);
    auto* const to = reinterpret_cast<__m128i*>(all.sum + at);
    writes == Writes::streamed ? _mm_stream_si128(to, sum) : _mm_storeu_si128(to, sum);
  }
  add_cached(all.part(at, all.numel));
}

/// Does not use wider vectors, which took a fifth longer with terms from memory.
void add(Addition<float> all, Writes writes) {
  add_as(all, writes);
}
DSTRAIN_SIMD_CLONES void add(Addition<BFloat16> all, Writes writes) {
  add_as(all, writes);
}
void add(Addition<Float16> all, Writes writes) {
  // Clang cannot test for f16c, which every processor with AVX2 has.
  const bool native = DSTRAIN_SIMD_DISPATCH != 0 && __builtin_cpu_supports("avx2");
  native ? add_native(all, writes) : add_as(all, writes);
}

/// Bytes summed at a time: they stay in the first-level cache while the terms stream by.
constexpr Bytes block_bytes = 4 * kibibyte;

/// Sums through a local block, because `sum` may be a term that is still to be read.
template <class T>
void add_all(std::span<const std::byte* const> terms, const HostView& sum, Writes writes) {
  // A sum that replaces a term has its lines in the cache already.
  if (std::ranges::find(terms, sum.data()) != terms.end()) writes = Writes::cached;
  alignas(line_bytes) std::array<std::byte, block_bytes> block;
  auto* const partial = reinterpret_cast<T*>(block.data());
  auto* const result = reinterpret_cast<T*>(sum.data());
  const std::int64_t step = terms.size() == 2 ? sum.numel() : block_bytes / Bytes{sizeof(T)};
  for (std::int64_t at = 0; at < sum.numel(); at += step) {
    const std::int64_t numel = std::min(step, sum.numel() - at);
    const T* so_far = reinterpret_cast<const T*>(terms[0]) + at;
    for (const std::byte* const term : terms.subspan(1, terms.size() - 2)) {
      add({so_far, reinterpret_cast<const T*>(term) + at, partial, numel}, Writes::cached);
      so_far = partial;
    }
    add({so_far, reinterpret_cast<const T*>(terms.back()) + at, result + at, numel}, writes);
  }
  if (writes == Writes::streamed) _mm_sfence();
}

}  // namespace

void add_in_rank_order(std::span<const std::byte* const> terms,
                       const HostView& sum,
                       Writes writes) {
  if (terms.size() == 1) return copy_bytes(terms[0], sum.data(), sum.bytes(), writes);
  switch (sum.dtype()) {
    case DType::f32:
      return add_all<float>(terms, sum, writes);
    case DType::bf16:
      return add_all<BFloat16>(terms, sum, writes);
    case DType::f16:
      return add_all<Float16>(terms, sum, writes);
    default:
      DSTRAIN_CHECK(false, "sums in the order of ranks of {}", name_of(sum.dtype()));
  }
}

namespace {

template <class T>
void add_terms(const std::byte* terms, int count, T* sum, std::int64_t numel) {
  std::fill_n(sum, numel, T{0});
  for (int term = 0; term < count; ++term) {
    for (std::int64_t i = 0; i < numel; ++i, terms += sizeof(T)) {
      T value;
      std::memcpy(&value, terms, sizeof(T));
      sum[i] += value;
    }
  }
}

}  // namespace

/// Adds unsigned values, because only those wrap around by definition.
void add_integers(const std::byte* terms, int count, const HostView& sum) {
  if (sum.dtype() == DType::i32) {
    add_terms(terms, count, reinterpret_cast<std::uint32_t*>(sum.data()), sum.numel());
  } else {
    add_terms(terms, count, reinterpret_cast<std::uint64_t*>(sum.data()), sum.numel());
  }
}

}  // namespace dstrain::comm
