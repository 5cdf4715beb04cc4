#include "runtime/backend/cuda/gpu_places.h"

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

std::string describe(const GpuPlace& place) {
  return fmt::format("{}\n{}\n{}\n{}", place.ordinal, place.gpu, place.slot, place.obstacle);
}

GpuPlace parse(const std::string& text) {
  GpuPlace place;
  std::istringstream lines(text);
  std::string ordinal;
  std::getline(lines, ordinal);
  std::from_chars(ordinal.data(), ordinal.data() + ordinal.size(), place.ordinal);
  std::getline(lines, place.gpu);
  std::getline(lines, place.slot);
  std::getline(lines, place.obstacle);
  return place;
}

bool share(const GpuPlace& one, const GpuPlace& other) {
  return one.gpu == other.gpu || one.slot == other.slot;
}

/// "ranks 0 1 share GPU 0"; empty: no ranks share one.
std::string shared_gpu(const std::vector<GpuPlace>& places) {
  for (std::size_t first = 0; first < places.size(); ++first) {
    std::vector<int> ranks;
    for (std::size_t rank = first; rank < places.size(); ++rank) {
      if (share(places[first], places[rank])) ranks.push_back(static_cast<int>(rank));
    }
    if (ranks.size() == 1) continue;
    return fmt::format("{} share GPU {}", comm::name_ranks(ranks), places[first].ordinal);
  }
  return "";
}

}  // namespace

GpuPlace place_of_gpu(int ordinal, std::string obstacle) {
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

std::vector<GpuPlace> gather_places(const GpuPlace& own, comm::ControlGroup& control) {
  std::vector<GpuPlace> places;
  for (const std::string& text : control.gather_texts(describe(own))) places.push_back(parse(text));
  return places;
}

std::string obstacle_to_nccl(const std::vector<GpuPlace>& places) {
  const auto lacking =
      std::ranges::find_if(places, [](const GpuPlace& place) { return !place.obstacle.empty(); });
  if (lacking == places.end()) return shared_gpu(places);
  const bool same = std::ranges::all_of(
      places, [&](const GpuPlace& place) { return place.obstacle == lacking->obstacle; });
  if (same) return lacking->obstacle;
  return fmt::format("rank {}: {}", lacking - places.begin(), lacking->obstacle);
}

}  // namespace dstrain::cuda
