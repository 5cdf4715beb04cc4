#include "launcher/plan/machine.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <numeric>

#include <sched.h>
#include <unistd.h>

#include <climits>

#include "launcher/process/text.h"
#include "runtime/base/error.h"
#include "runtime/base/gpu_files.h"
#include "runtime/base/visible_gpus.h"

namespace dstrain::launcher {
namespace {

/// Cores in the affinity mask, which may be larger than cpu_set_t.
int affinity_cores() {
  for (int cpus = 1024; cpus <= 1 << 16; cpus *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(
        CPU_ALLOC(static_cast<std::size_t>(cpus)), [](cpu_set_t* s) { CPU_FREE(s); });
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(cpus));
    if (sched_getaffinity(0, bytes, set.get()) == 0) return CPU_COUNT_S(bytes, set.get());
  }
  return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
}

/// The quota of this control group, in the form of cpu.max, for version 2 and 1.
std::string cpu_quota() {
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (line.starts_with("0::")) {
      std::string text = first_line_of_file("/sys/fs/cgroup" + line.substr(3) + "/cpu.max");
      if (!text.empty()) return text;
    }
  }
  const std::string quota = first_line_of_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  return quota + " " + first_line_of_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
}

}  // namespace

std::optional<int> cores_of_quota(std::string_view cpu_max) {
  long long quota = 0;
  long long period = 0;
  const char* const end = cpu_max.data() + cpu_max.size();
  const auto first = std::from_chars(cpu_max.data(), end, quota);
  if (first.ec != std::errc{} || first.ptr == end || *first.ptr != ' ') return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, period);
  if (second.ec != std::errc{} || quota <= 0 || period <= 0) return std::nullopt;
  const long long cores = quota / period + (quota % period != 0 ? 1 : 0);
  return static_cast<int>(std::min<long long>(cores, INT_MAX));
}

int usable_gpus(const Machine& machine) {
  const bool hidden = machine.visible_gpus && hides_all_gpus(*machine.visible_gpus);
  return hidden ? 0 : machine.gpus;
}

GpuSlots gpu_slots(const Machine& machine, GpuNumbering numbering) {
  GpuSlots slots;
  for (int gpu = 0; gpu < machine.gpus; ++gpu) {
    slots.names.push_back(std::to_string(gpu));
    slots.shown.push_back(gpu);
  }
  if (!machine.visible_gpus) return slots;
  const Result<std::vector<std::string>> listed = visible_gpus(*machine.visible_gpus, machine.gpus);
  if (!listed.ok()) fail(ErrorCode::usage, "{}", listed.error());
  slots.shown.clear();
  if (numbering == GpuNumbering::of_shown || std::ranges::any_of(listed.value(), is_gpu_uuid)) {
    slots.names = listed.value();
    slots.shown.resize(slots.names.size());
    std::iota(slots.shown.begin(), slots.shown.end(), 0);
    slots.numbering = GpuNumbering::of_shown;
  } else {
    for (const std::string& entry : listed.value()) slots.shown.push_back(std::stoi(entry));
    std::ranges::sort(slots.shown);
  }
  return slots;
}

void check_gpu_slots(const std::vector<int>& slots, int gpus) {
  if (slots.back() < gpus) return;
  fail(ErrorCode::usage,
       "slot {}: {} devices are present (--oversubscribe runs more ranks than devices)",
       slots.back(), gpus);
}

std::string unusable_gpus(std::string_view place, int gpus) {
  return fmt::format(
      "{} has {}, and libdstrain_cuda.so is not installed; --device cpu makes slots CPU ranks",
      place, gpus == 1 ? "a GPU" : fmt::format("{} GPUs", gpus));
}

int usable_cores() {
  const int cores = std::max(1, affinity_cores());
  return std::min(cores, cores_of_quota(cpu_quota()).value_or(cores));
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
