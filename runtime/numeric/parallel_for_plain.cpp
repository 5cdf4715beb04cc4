// Plain loops for the thread sanitizer, which cannot see through libgomp.
#include <immintrin.h>

#include "runtime/numeric/parallel_for.h"

namespace dstrain {
namespace {

/// Flush-to-zero and denormals-are-zero bits of the SSE control register.
constexpr unsigned flush_denormals = 0x8040;

}  // namespace

void parallel_for(std::int64_t count, FunctionRef<void(std::int64_t)> body) {
  for (std::int64_t i = 0; i < count; ++i) body(i);
}

int compute_threads() {
  return 1;
}

void limit_compute_threads(int /*most*/) {}

void prepare_compute_threads(int /*most*/) {
  _mm_setcsr(_mm_getcsr() | flush_denormals);
}

void become_compute_thread(int /*threads*/) {
  prepare_compute_threads(1);
}

void become_helper_thread() {
  prepare_compute_threads(1);
}

}  // namespace dstrain
