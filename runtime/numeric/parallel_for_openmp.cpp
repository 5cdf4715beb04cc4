#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include <immintrin.h>
#include <omp.h>
#include <sched.h>

#include "runtime/base/environment.h"
#include "runtime/numeric/parallel_for.h"

namespace dstrain {
namespace {

/// Flush-to-zero and denormals-are-zero bits of the SSE control register.
constexpr unsigned flush_denormals = 0x8040;

/// Undoes binding: the places of all OpenMP threads together are the cores that the process started
/// with. Without binding there are no places, and nothing to undo.
void leave_own_place() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  for (int place = 0; place < omp_get_num_places(); ++place) {
    std::vector<int> ids(static_cast<std::size_t>(omp_get_place_num_procs(place)));
    omp_get_place_proc_ids(place, ids.data());
    for (const int id : ids) CPU_SET(static_cast<std::size_t>(id), &cores);
  }
  // At worst this is refused, and the thread keeps its cores.
  if (CPU_COUNT(&cores) > 0) ::sched_setaffinity(0, sizeof cores, &cores);
}

/// Starts as many threads as OpenMP will, and ends them. Throws std::system_error.
bool try_all_threads() {
  std::mutex mutex;
  std::condition_variable_any never;
  std::vector<std::jthread> threads;  // asked to stop before they are joined
  for (int i = 1; i < omp_get_max_threads(); ++i) {
    threads.emplace_back([&](const std::stop_token& stop) {
      std::unique_lock lock(mutex);
      never.wait(lock, stop, [] { return false; });
    });
  }
  return true;
}

/// GNU's OpenMP ends the process, without naming the limit, if the system starts no more threads.
/// So the same number of threads is tried first, once. Throws std::system_error.
void try_threads() {
  [[maybe_unused]] static const bool tried = try_all_threads();
}

}  // namespace

void parallel_for(std::int64_t count, FunctionRef<void(std::int64_t)> body) {
  if (count > 1) try_threads();
#pragma omp parallel for schedule(static) if (count > 1)
  for (std::int64_t i = 0; i < count; ++i) body(i);
}

int compute_threads() {
  return omp_get_max_threads();
}

void limit_compute_threads(int most) {
  if (std::getenv(env::omp_num_threads) != nullptr) return;
  omp_set_num_threads(std::clamp(most, 1, omp_get_max_threads()));
}

void prepare_compute_threads(int most) {
  limit_compute_threads(most);
  try_threads();
#pragma omp parallel
  { _mm_setcsr(_mm_getcsr() | flush_denormals); }
}

void become_compute_thread(int threads) {
  leave_own_place();
  prepare_compute_threads(threads);
}

void become_helper_thread() {
  omp_set_num_threads(1);  // for the regions that this thread opens
  _mm_setcsr(_mm_getcsr() | flush_denormals);
  leave_own_place();
}

}  // namespace dstrain
