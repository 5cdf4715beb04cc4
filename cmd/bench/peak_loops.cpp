#include "cmd/bench/peak_loops.h"

#include <immintrin.h>

#include "runtime/base/error.h"
#include "runtime/numeric/parallel_for.h"

namespace dstrain::bench {
namespace {

/// Chains that do not wait for each other: enough for two units of four to five cycles' latency,
/// few enough for sixteen registers.
constexpr std::size_t chains = 12;

// The sums are used up once, after the loop: within it that would hold them in memory.

__attribute__((target("avx512f"))) void fma_512(std::int64_t rounds) {
  const __m512 factor = _mm512_set1_ps(0.5F);
  __m512 sums[chains];
  for (__m512& sum : sums) sum = factor;
  for (std::int64_t i = 0; i < rounds; ++i) {
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(sum, factor, factor);
  }
  for (__m512& sum : sums) asm volatile("" : "+v"(sum));
}

__attribute__((target("avx2,fma"))) void fma_256(std::int64_t rounds) {
  const __m256 factor = _mm256_set1_ps(0.5F);
  __m256 sums[chains];
  for (__m256& sum : sums) sum = factor;
  for (std::int64_t i = 0; i < rounds; ++i) {
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(sum, factor, factor);
  }
  for (__m256& sum : sums) asm volatile("" : "+x"(sum));
}

/// Without fused multiply-adds: a product and a sum.
void multiply_add_128(std::int64_t rounds) {
  const __m128 factor = _mm_set1_ps(0.5F);
  __m128 sums[chains];
  for (__m128& sum : sums) sum = factor;
  for (std::int64_t i = 0; i < rounds; ++i) {
    for (__m128& sum : sums) sum = _mm_add_ps(_mm_mul_ps(sum, factor), factor);
  }
  for (__m128& sum : sums) asm volatile("" : "+x"(sum));
}

__attribute__((target("avx512f,avx512bf16"))) void dot_products_512(std::int64_t rounds) {
  const auto pairs = reinterpret_cast<__m512bh>(_mm512_set1_epi32(0x3f003f00));  // 0.5, 0.5
  __m512 sums[chains];
  for (__m512& sum : sums) sum = _mm512_set1_ps(0.5F);
  for (std::int64_t i = 0; i < rounds; ++i) {
    for (__m512& sum : sums) sum = _mm512_dpbf16_ps(sum, pairs, pairs);
  }
  for (__m512& sum : sums) asm volatile("" : "+v"(sum));
}

using Loop = void (*)(std::int64_t rounds);

double run_on_all_threads(Loop loop, std::int64_t rounds, double flops_per_instruction) {
  const int threads = compute_threads();
  parallel_for(threads, [&](std::int64_t) { loop(rounds); });
  return flops_per_instruction * static_cast<double>(chains) * static_cast<double>(rounds) *
         threads;
}

}  // namespace

double fma_peak_flops(std::int64_t rounds) {
  if (__builtin_cpu_supports("avx512f")) return run_on_all_threads(fma_512, rounds, 2 * 16);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return run_on_all_threads(fma_256, rounds, 2 * 8);
  }
  return run_on_all_threads(multiply_add_128, rounds, 2 * 4);
}

bool has_bf16_dot_products() {
  return __builtin_cpu_supports("avx512bf16");
}

double bf16_peak_flops(std::int64_t rounds) {
  DSTRAIN_CHECK(has_bf16_dot_products(), "no VDPBF16PS here");
  return run_on_all_threads(dot_products_512, rounds, 2 * 32);
}

}  // namespace dstrain::bench
