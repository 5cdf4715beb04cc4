#include "runtime/backend/cuda/gpu_identity.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <sstream>

#include <cuda_runtime_api.h>

#include "runtime/comm/group_barrier.h"
#include "runtime/device/cuda/cuda_check.h"
#include "runtime/os/machine_identity.h"
#include "runtime/os/random_bytes.h"

namespace dstrain::cuda {
namespace {

std::string describe(const GpuIdentity& gpu) {
  return fmt::format("{}\n{}\n{}\n{}", gpu.ordinal, gpu.gpu, gpu.slot, gpu.obstacle);
}

GpuIdentity parse(const std::string& text) {
  GpuIdentity gpu;
  std::istringstream lines(text);
  std::string ordinal;
  std::getline(lines, ordinal);
  std::from_chars(ordinal.data(), ordinal.data() + ordinal.size(), gpu.ordinal);
  std::getline(lines, gpu.gpu);
  std::getline(lines, gpu.slot);
  std::getline(lines, gpu.obstacle);
  return gpu;
}

bool share(const GpuIdentity& one, const GpuIdentity& other) {
  return one.gpu == other.gpu || one.slot == other.slot;
}

/// Returns "ranks 0 1 share GPU 0"; empty: no ranks share one.
std::string shared_gpu(const std::vector<GpuIdentity>& gpus) {
  for (std::size_t first = 0; first < gpus.size(); ++first) {
    std::vector<int> ranks;
    for (std::size_t rank = first; rank < gpus.size(); ++rank) {
      if (share(gpus[first], gpus[rank])) ranks.push_back(static_cast<int>(rank));
    }
    if (ranks.size() == 1) continue;
    return fmt::format("{} share GPU {}", comm::name_ranks(ranks), gpus[first].ordinal);
  }
  return "";
}

}  // namespace

GpuIdentity identity_of_gpu(int ordinal, std::string obstacle) {
  cudaDeviceProp properties{};
  DSTRAIN_CUDA_CHECK(cudaGetDeviceProperties(&properties, ordinal), "GPU {}", ordinal);
  std::array<std::uint8_t, sizeof(properties.uuid)> uuid{};
  std::memcpy(uuid.data(), &properties.uuid, uuid.size());
  std::ranges::replace(obstacle, '\n', ' ');
  return {.ordinal = ordinal,
          .gpu = to_hex(uuid),
          .slot = fmt::format("{} {:x}:{:x}:{:x}", boot_id(), properties.pciDomainID,
                              properties.pciBusID, properties.pciDeviceID),
          .obstacle = std::move(obstacle)};
}

std::vector<GpuIdentity> gather_identities(const GpuIdentity& own, comm::ControlGroup& control) {
  std::vector<GpuIdentity> gpus;
  for (const std::string& text : control.gather_texts(describe(own))) gpus.push_back(parse(text));
  return gpus;
}

std::string obstacle_to_nccl(const std::vector<GpuIdentity>& gpus) {
  const auto lacking =
      std::ranges::find_if(gpus, [](const GpuIdentity& gpu) { return !gpu.obstacle.empty(); });
  if (lacking == gpus.end()) return shared_gpu(gpus);
  const bool same = std::ranges::all_of(
      gpus, [&](const GpuIdentity& gpu) { return gpu.obstacle == lacking->obstacle; });
  if (same) return lacking->obstacle;
  return fmt::format("rank {}: {}", lacking - gpus.begin(), lacking->obstacle);
}

}  // namespace dstrain::cuda
