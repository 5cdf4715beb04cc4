#pragma once
#include <memory>
#include <string>

#include "runtime/base/units.h"
#include "runtime/comm/message/transport.h"
#include "runtime/comm/store.h"

namespace dstrain::comm {

struct MpiOptions {
  int rank = 0;
  int size = 1;
  double timeout_seconds = 600;  ///< of joining and of each later wait
  std::string name = "world";    ///< separates the groups that use one store
  Bytes piece_bytes = gibibyte;  ///< larger messages are cut: MPI counts bytes in 31 bits
};

class MpiLibrary;

/// Makes a group of processes that mpirun, or srun with PMI, has started. MPI only moves bytes. The
/// store assigns the ranks, not the order in MPI_COMM_WORLD; it is not used afterwards. Every rank
/// calls it. MPI does not report when a process dies: unless mpirun ends the job, as it does by
/// default, the others find out by their timeout. Throws Error{config} if the plug-in cannot be
/// loaded or MPI_COMM_WORLD is too small.
std::unique_ptr<Transport> make_mpi_transport(std::shared_ptr<MpiLibrary> library,
                                              Store& store,
                                              const MpiOptions& options);

}  // namespace dstrain::comm
