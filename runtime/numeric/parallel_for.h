#pragma once
#include <cstdint>

#include "runtime/base/function_ref.h"

namespace dstrain {

/// Calls `body(i)` for every i in [0, count), shared out over the process's compute threads (the
/// ones oneDNN uses). Results must not depend on which thread runs which i: sum into slots by i,
/// then add the slots in order. An exception in `body` ends the process: check before the loop.
/// The first call throws std::system_error where the system does not start the threads.
void parallel_for(std::int64_t count, FunctionRef<void(std::int64_t)> body);

/// How many threads parallel_for uses.
int compute_threads();

/// Leaves the loops of the calling thread at most `most` of them, 1 or more, unless
/// OMP_NUM_THREADS says how many.
void limit_compute_threads(int most);

/// The same, and makes the calling thread and the compute threads flush denormals to zero: Adam's
/// second moment walks into them and would run ten times slower. Throws likewise.
void prepare_compute_threads(int most);

/// Makes the calling thread one that computes in place of the one that has `threads` compute
/// threads: with as many of its own. Throws likewise.
void become_compute_thread(int threads);

/// Makes the calling thread one that helps the computing ones, by communicating or loading: what
/// it gives to parallel_for runs on it alone, denormals are flushed, and it may run on every core
/// of the process, although OMP_PROC_BIND may have narrowed the thread that started it to one.
void become_helper_thread();

}  // namespace dstrain
