#include "launcher/plan/machine.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include <unistd.h>

#include <climits>

#include "runtime/base/error.h"
#include "runtime/os/control_groups.h"
#include "runtime/os/gpu_files.h"
#include "runtime/os/visible_gpus.h"

namespace dstrain::launcher {

int usable_gpus(const Machine& machine) {
  const bool hidden = machine.visible_gpus && hides_all_gpus(*machine.visible_gpus);
  return hidden ? 0 : machine.gpus;
}

std::vector<std::string> gpu_slots(const Machine& machine) {
  if (machine.visible_gpus) {
    Result<std::vector<std::string>> listed = visible_gpus(*machine.visible_gpus, machine.gpus);
    if (!listed.ok()) fail(ErrorCode::usage, "{}", listed.error());
    return std::move(listed.value());
  }
  std::vector<std::string> names;
  names.reserve(static_cast<std::size_t>(machine.gpus));
  for (int gpu = 0; gpu < machine.gpus; ++gpu) names.push_back(std::to_string(gpu));
  return names;
}

void check_gpu_slots(const std::vector<int>& slots, const Machine& machine) {
  const auto gpus = static_cast<int>(gpu_slots(machine).size());
  if (slots.back() < gpus) return;
  const std::string present =
      machine.visible_gpus
          ? fmt::format(
                "CUDA_VISIBLE_DEVICES={} shows {} GPUs, and slot k is entry k of it, from 0",
                *machine.visible_gpus, gpus)
          : fmt::format("{} devices are present", gpus);
  fail(ErrorCode::usage, "slot {}: {} (pass --oversubscribe to run more ranks than devices)",
       slots.back(), present);
}

std::string unusable_gpus(std::string_view place, int gpus) {
  return fmt::format(
      "{} has {}, but libdstrain_cuda.so is not installed; pass --device cpu to use CPU ranks",
      place, gpus == 1 ? "a GPU" : fmt::format("{} GPUs", gpus));
}

int cores_per_rank(int cores, int local_size) {
  return std::max(1, cores / local_size);
}

Machine this_machine() {
  Machine machine;
  std::array<char, HOST_NAME_MAX + 1> name{};
  if (gethostname(name.data(), name.size() - 1) == 0) machine.host_name = name.data();
  machine.cores = usable_cores();
  machine.gpus = count_gpu_files();
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) machine.visible_gpus = visible;
  return machine;
}

}  // namespace dstrain::launcher
