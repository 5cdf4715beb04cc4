#include "runtime/comm/host_sum.h"

#include <algorithm>
#include <array>

#include <emmintrin.h>

namespace dstrain::comm {
namespace {

// ivdep: the terms and the sum are the same memory or disjoint, so no iteration sees another's.
void add_cached(const float* first, const float* second, float* sum, std::int64_t numel) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < numel; ++i) sum[i] = first[i] + second[i];
}

constexpr Bytes line_bytes = 64;
constexpr std::int64_t line_numel = line_bytes / Bytes{sizeof(float)};

/// The whole lines of `bytes` bytes at `to`, and what stands before them.
struct Lines {
  Lines(const void* to, Bytes bytes) {
    const auto address = static_cast<Bytes>(reinterpret_cast<std::uintptr_t>(to));
    head = std::min(bytes, round_up(address, line_bytes) - address);
    end = head + (bytes - head) / line_bytes * line_bytes;
  }
  Bytes head;
  Bytes end;
};

void copy_streamed(const std::byte* from, std::byte* to, Bytes bytes) {
  const Lines lines(to, bytes);
  copy_bytes(from, to, lines.head);
  for (Bytes at = lines.head; at < lines.end; at += line_bytes) {
    for (Bytes part = at; part < at + line_bytes; part += Bytes{sizeof(__m128i)}) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + part),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + part)));
    }
  }
  _mm_sfence();  // streamed stores are not ordered with the atomics that tell of them
  copy_bytes(from + lines.end, to + lines.end, bytes - lines.end);
}

void add_streamed(const float* first, const float* second, float* sum, std::int64_t numel) {
  const Lines lines(sum, numel * Bytes{sizeof(float)});
  const std::int64_t begin = lines.head / Bytes{sizeof(float)};
  const std::int64_t end = lines.end / Bytes{sizeof(float)};
  add_cached(first, second, sum, begin);
  for (std::int64_t at = begin; at < end; at += line_numel) {
    for (std::int64_t i = at; i < at + line_numel; i += 4) {
      _mm_stream_ps(sum + i, _mm_add_ps(_mm_loadu_ps(first + i), _mm_loadu_ps(second + i)));
    }
  }
  _mm_sfence();
  add_cached(first + end, second + end, sum + end, numel - end);
}

/// Floats summed at a time: 4 KiB stay in the first-level cache while the terms stream by.
constexpr std::int64_t block_numel = 1024;

}  // namespace

void copy_bytes(const void* from, void* to, Bytes bytes, Writes writes) {
  if (writes == Writes::cached || from == to) {
    copy_bytes(from, to, bytes);
  } else {
    copy_streamed(static_cast<const std::byte*>(from), static_cast<std::byte*>(to), bytes);
  }
}

void add_floats(
    const float* first, const float* second, float* sum, std::int64_t numel, Writes writes) {
  // A sum in the place of a term has its lines in the cache already.
  const bool streamed = writes == Writes::streamed && sum != first && sum != second;
  streamed ? add_streamed(first, second, sum, numel) : add_cached(first, second, sum, numel);
}

namespace {

/// Through a local block, because `sum` may be a term that is still to be read.
void add_block(std::span<const float* const> terms,
               std::int64_t offset,
               float* sum,
               std::int64_t numel,
               Writes writes) {
  std::array<float, block_numel> partial;
  const float* so_far = terms[0] + offset;
  for (std::size_t r = 1; r + 1 < terms.size(); ++r) {
    add_floats(so_far, terms[r] + offset, partial.data(), numel, Writes::cached);
    so_far = partial.data();
  }
  add_floats(so_far, terms.back() + offset, sum + offset, numel, writes);
}

}  // namespace

void add_in_rank_order(std::span<const float* const> terms,
                       float* sum,
                       std::int64_t numel,
                       Writes writes) {
  if (terms.size() == 1) {
    copy_bytes(terms[0], sum, numel * Bytes{sizeof(float)}, writes);
  } else if (terms.size() == 2) {
    add_floats(terms[0], terms[1], sum, numel, writes);
  } else {
    // A sum in the place of a term has its lines in the cache already.
    if (std::ranges::find(terms, sum) != terms.end()) writes = Writes::cached;
    for (std::int64_t offset = 0; offset < numel; offset += block_numel) {
      add_block(terms, offset, sum, std::min(block_numel, numel - offset), writes);
    }
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

/// Unsigned, because only that wraps around by definition.
void add_integers(const std::byte* terms, int count, const HostView& sum) {
  if (sum.dtype() == DType::i32) {
    add_terms(terms, count, reinterpret_cast<std::uint32_t*>(sum.data()), sum.numel());
  } else {
    add_terms(terms, count, reinterpret_cast<std::uint64_t*>(sum.data()), sum.numel());
  }
}

}  // namespace dstrain::comm
