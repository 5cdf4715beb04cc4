#pragma once
#include <string>
#include <vector>

#include "runtime/comm/control/control_group.h"

namespace dstrain::cuda {

/// What a rank tells the others before they connect their GPUs.
struct GpuIdentity {
  int ordinal = 0;       ///< by which CUDA knows the GPU in the rank's process
  std::string gpu;       ///< its UUID
  std::string slot;      ///< its machine, and where it sits there on the bus
  std::string obstacle;  ///< why the rank has no NCCL; empty: it has
};

/// Of the GPU that a process computes on.
GpuIdentity identity_of_gpu(int ordinal, std::string obstacle);

/// Those of all ranks, by rank. Collective.
std::vector<GpuIdentity> gather_identities(const GpuIdentity& own, comm::ControlGroup& control);

/// Why NCCL cannot connect these ranks, the same on each of them; empty: it can. Each needs NCCL,
/// and a GPU of its own: instances of one GPU (MIG) are no two.
std::string obstacle_to_nccl(const std::vector<GpuIdentity>& gpus);

}  // namespace dstrain::cuda
