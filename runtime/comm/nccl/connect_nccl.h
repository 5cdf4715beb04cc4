#pragma once
#include <memory>
#include <string>

#include "runtime/comm/communicator.h"
#include "runtime/comm/control/control_group.h"

namespace dstrain::comm {

/// NCCL in this process: whether the build supports it and its library is found.
struct NcclPresence {
  std::string version;   ///< "2.28.9"; empty if not found
  std::string obstacle;  ///< why it is not available, on one line
};
/// Opens the library and keeps it open.
NcclPresence find_nccl();

/// The inputs of one rank for an NCCL communicator.
struct NcclMember {
  std::unique_ptr<ControlGroup> control;  ///< of the same ranks, with no other user
  int gpu = 0;                            ///< CUDA's number of the GPU, which no other rank uses
  double timeout_seconds = 600;           ///< for connecting and for each collective
  std::unique_ptr<Communicator> host;     ///< kept because its memory may be in use; may be null
};
/// Makes collectives between GPUs. Requires that find_nccl() has found NCCL. Collective; returns
/// when all ranks are connected. Throws Error{timeout} or Error{comm} that names the call or the
/// ranks.
std::unique_ptr<Communicator> make_nccl_communicator(NcclMember member);

}  // namespace dstrain::comm
