#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/device/buffer.h"
#include "runtime/engine/state_store.h"

namespace dstrain::zero {

/// Optimizer states that stay on the device.
class ResidentStates final : public engine::StateStore {
 public:
  /// `runs`: elements of each run; `states`: floats per element.
  ResidentStates(std::span<const std::int64_t> runs,
                 std::size_t states,
                 MemoryResource& memory,
                 StreamView stream);
  static Bytes bytes(std::span<const std::int64_t> runs, std::size_t states);

  std::span<const std::span<float>> acquire(int index, StreamView stream) override;
  void release(int /*index*/, StreamView /*stream*/) override {}

 private:
  Buffer memory_;
  std::vector<std::vector<std::span<float>>> runs_;
};

}  // namespace dstrain::zero
