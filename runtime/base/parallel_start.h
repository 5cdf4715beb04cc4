#pragma once

namespace dstrain {

/// Throws Error{usage} when mpirun, srun or the like has started this process as one of several
/// tasks, by the variables that they set for tasks; those of an allocation alone (SLURM_NTASKS) say
/// nothing. For a process that has no rank of ours and would take itself for the only one.
void check_started_alone();

}  // namespace dstrain
