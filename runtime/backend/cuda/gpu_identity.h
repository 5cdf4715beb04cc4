#pragma once
#include <string>
#include <vector>

#include "runtime/comm/control/control_group.h"

namespace dstrain::cuda {

/// What each rank tells the others before they connect their GPUs.
struct GpuIdentity {
  int ordinal = 0;       ///< CUDA's number of the GPU in the rank's process
  std::string gpu;       ///< its UUID
  std::string slot;      ///< its machine and its place on the PCI bus
  std::string obstacle;  ///< why the rank has no NCCL; empty: it has it
};

/// Returns the identity of this process's GPU.
GpuIdentity identity_of_gpu(int ordinal, std::string obstacle);

/// Returns the identities of all ranks, by rank. Collective.
std::vector<GpuIdentity> gather_identities(const GpuIdentity& own, comm::ControlGroup& control);

/// Returns why NCCL cannot connect these ranks, the same text on each of them; empty: it can. Each
/// rank needs NCCL and a GPU of its own: two instances of one GPU (MIG) do not count as two.
std::string obstacle_to_nccl(const std::vector<GpuIdentity>& gpus);

}  // namespace dstrain::cuda
