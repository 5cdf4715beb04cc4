#include <immintrin.h>
#include <omp.h>

#include "runtime/base/parallel_for.h"

namespace dstrain {
namespace {

/// Flush-to-zero and denormals-are-zero bits of the SSE control register.
constexpr unsigned flush_denormals = 0x8040;

}  // namespace

void parallel_for(std::int64_t count, FunctionRef<void(std::int64_t)> body) {
#pragma omp parallel for schedule(static) if (count > 1)
  for (std::int64_t i = 0; i < count; ++i) body(i);
}

int compute_threads() {
  return omp_get_max_threads();
}

void flush_denormals_in_compute_threads() {
#pragma omp parallel
  { _mm_setcsr(_mm_getcsr() | flush_denormals); }
}

}  // namespace dstrain
