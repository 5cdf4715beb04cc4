#pragma once
namespace dstrain::comm {

/// To be called first of all. mpirun ends its ranks through a proxy (MPICH) or a daemon (OpenMPI,
/// whose mpirun is its own on its node), which is their parent: if that is killed, the kernel kills
/// this process. Does nothing for what another starter has started.
void end_with_mpirun() noexcept;

/// To be called with the exit status of a rank, at its end. MPICH's mpirun takes no notice of a
/// rank that ends in failure before it enters MPI, and the others would wait for it; of one that
/// fails later it loses the status: this asks it to end the job with `status`. Does nothing for
/// status 0, after MPI has been left, and under other starters, which need no word.
void report_failure_to_mpirun(int status) noexcept;

}  // namespace dstrain::comm
