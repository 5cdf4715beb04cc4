#pragma once
#include <cstdint>

#include "runtime/base/function_ref.h"

namespace dstrain {

/// Calls `body(i)` for every i in [0, count), split over the process's compute threads (the ones
/// oneDNN uses). Results must not depend on which thread runs which i: sum into slots by i, then
/// add the slots in order. An exception in `body` ends the process: check before the loop. The
/// first call throws std::system_error if the system does not start the threads.
void parallel_for(std::int64_t count, FunctionRef<void(std::int64_t)> body);

/// Returns the number of threads that parallel_for uses.
int compute_threads();

/// Limits the loops of the calling thread to `most` threads (1 or more), unless OMP_NUM_THREADS is
/// set.
void limit_compute_threads(int most);

/// Does the same, and makes the calling thread and the compute threads flush denormals to zero:
/// Adam's second moment decays into denormals, which would run ten times slower. Throws likewise.
void prepare_compute_threads(int most);

/// Makes the calling thread compute in place of the thread that has `threads` compute threads: it
/// gets as many of its own. Throws likewise.
void become_compute_thread(int threads);

/// Makes the calling thread a helper of the computing threads, for communication or loading. Its
/// parallel_for loops run on it alone, denormals are flushed, and it may run on every core of the
/// process, although OMP_PROC_BIND may have bound its parent thread to one core.
void become_helper_thread();

}  // namespace dstrain
