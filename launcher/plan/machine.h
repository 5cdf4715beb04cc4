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

/// Asks the kernel and links no driver: counts GPUs by their device files, such as nvidia0, in /dev
/// or in DSTRAIN_GPU_DIRECTORY.
Machine this_machine();

/// How many GPUs it has; 0 when CUDA_VISIBLE_DEVICES hides them all.
int usable_gpus(const Machine& machine);

/// The GPU of each slot, as CUDA_VISIBLE_DEVICES names it: slot k is entry k of
/// CUDA_VISIBLE_DEVICES or, if that is not set, GPU k. Throws Error{usage} for a wrong list
/// (visible_gpus.h).
std::vector<std::string> gpu_slots(const Machine& machine);

/// Throws what gpu_slots() throws, and Error{usage} when one of `slots`, ascending, has no GPU.
void check_gpu_slots(const std::vector<int>& slots, const Machine& machine);

/// Why slots of `place`, which has `gpus`, cannot be its GPUs: "w1 has 4 GPUs, which ...".
std::string unusable_gpus(std::string_view place, int gpus);

/// The rank's share of `cores` when `local_size` ranks divide them: at least 1.
int cores_per_rank(int cores, int local_size);

}  // namespace dstrain::launcher
