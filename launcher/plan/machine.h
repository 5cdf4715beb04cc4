#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dstrain::launcher {

/// What the launcher knows about the machine it runs on.
struct Machine {
  std::string host_name;
  int cores = 1;  ///< that this process may use
  int gpus = 0;
  std::optional<std::string> visible_gpus;  ///< CUDA_VISIBLE_DEVICES of the user, when set
};

/// Asks the kernel; links no driver: GPUs are counted by their device files, nvidia0 and the
/// like, in /dev or where DSTRAIN_GPU_DIRECTORY says.
Machine this_machine();

/// How many GPUs it has; 0 when CUDA_VISIBLE_DEVICES hides them all.
int usable_gpus(const Machine& machine);

/// The GPUs that are its slots, by slot and as CUDA_VISIBLE_DEVICES names them: slot k is entry k
/// of CUDA_VISIBLE_DEVICES or, where that is not set, GPU k. Throws Error{usage} for a list that is
/// wrong (visible_gpus.h).
std::vector<std::string> gpu_slots(const Machine& machine);

/// Throws what gpu_slots() throws, and Error{usage} when one of `slots`, ascending, has no GPU.
void check_gpu_slots(const std::vector<int>& slots, const Machine& machine);

/// Why slots of `place`, which has `gpus`, cannot be its GPUs: "w1 has 4 GPUs, which ...".
std::string unusable_gpus(std::string_view place, int gpus);

/// The rank's share of `cores` when `local_size` ranks divide them: at least 1.
int cores_per_rank(int cores, int local_size);

}  // namespace dstrain::launcher
