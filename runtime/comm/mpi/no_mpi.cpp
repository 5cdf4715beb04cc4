#include "runtime/base/error.h"
#include "runtime/comm/mpi/mpi_transport.h"

/// A build without MPI.
namespace dstrain::comm {

class MpiLibrary {};

std::shared_ptr<MpiLibrary> open_mpi() {
  fail(ErrorCode::config,
       "this build has no MPI: install libopenmpi-dev, configure and build again, or set "
       "DSTRAIN_COMM=gloo");
}

std::unique_ptr<Transport> make_mpi_transport(std::shared_ptr<MpiLibrary> /*library*/,
                                              Store& /*store*/,
                                              const MpiOptions& /*options*/) {
  open_mpi();
  return nullptr;
}

std::unique_ptr<Communicator> make_mpi_communicator(std::shared_ptr<MpiLibrary> /*library*/,
                                                    Store& /*store*/,
                                                    const MpiOptions& /*options*/) {
  open_mpi();
  return nullptr;
}

bool has_mpi() {
  return false;
}

}  // namespace dstrain::comm
