#pragma once
#include "runtime/base/mpi_kind.h"

namespace dstrain::comm {

/// Which MPI library's starter has started this process, by the variables that it sets.
MpiKind mpi_of_starter();

/// To be called with the exit status of a rank, at its end. MPICH's mpirun takes no notice of a
/// rank that ends in failure before it enters MPI, and the others would wait for it; of one that
/// fails later it loses the status: this asks it to end the job with `status`. Does nothing for
/// status 0, after MPI has been left, and under other starters, which need no word.
void report_failure_to_mpirun(int status) noexcept;

}  // namespace dstrain::comm
