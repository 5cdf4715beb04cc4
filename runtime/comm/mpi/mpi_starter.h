#pragma once
namespace dstrain::comm {

/// Call this first in the process. mpirun ends its ranks through their parent, which is a proxy
/// (MPICH) or a daemon (OpenMPI, whose mpirun is its own daemon on its node). If the parent is
/// killed, the kernel then kills this process. Does nothing under other starters.
void end_with_mpirun() noexcept;

/// Call this with the exit status of a rank, at its end. MPICH's mpirun ignores a rank that fails
/// before it enters MPI, and the others would wait for it; it loses the status of one that fails
/// later. This call asks mpirun to end the job with `status`. Does nothing for status 0, after MPI
/// has been left, and under other starters, which do not need it.
void report_failure_to_mpirun(int status) noexcept;

}  // namespace dstrain::comm
