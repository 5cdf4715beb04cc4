#include "runtime/comm/streaming.h"

#include <algorithm>
#include <cstring>

#include <emmintrin.h>

#include "runtime/comm/bytes.h"

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

}  // namespace dstrain::comm
