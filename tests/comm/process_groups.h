#pragma once
#include "runtime/rank/worker_env.h"
#include "tests/comm/groups.h"

namespace dstrain::test {

/// How the processes of a group communicate.
enum class Over { tcp, mpi, mpi_in_small_pieces, shm_and_tcp, shm_and_mpi };

/// Groups of the processes that the environment promises: this one holds one rank, in groups that
/// are larger than its number. All processes run the same tests in the same order.
GroupMaker process_groups(Over over);

/// How many processes there are.
int process_count();

}  // namespace dstrain::test
