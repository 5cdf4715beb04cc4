#pragma once
#include <memory>
#include <string>

#include "runtime/comm/communicator.h"
#include "runtime/comm/control/control_group.h"

namespace dstrain::comm {

/// NCCL in this process: whether the build knows it and its library is here.
struct NcclPresence {
  std::string version;   ///< "2.28.9"; empty where there is none
  std::string obstacle;  ///< why there is none, on one line
};
/// Opens the library, for good.
NcclPresence find_nccl();

/// What a rank brings to a communicator of NCCL's.
struct NcclMember {
  std::unique_ptr<ControlGroup> control;  ///< of its ranks, for nothing else
  int gpu = 0;                            ///< by which CUDA knows the GPU; of no other rank
  double timeout_seconds = 600;           ///< of connecting, and of each collective
  std::unique_ptr<Communicator> host;     ///< kept, as its memory may be in use; or null
};
/// Collectives between GPUs, where find_nccl() has found NCCL. Collective; returns when all ranks
/// are connected. Throws Error{timeout} or Error{comm} that names the call or the ranks.
std::unique_ptr<Communicator> make_nccl_communicator(NcclMember member);

}  // namespace dstrain::comm
