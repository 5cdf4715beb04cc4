#pragma once
#include "runtime/ops/cuda/packs.h"
#include "runtime/ops/cuda/warp_instructions.h"

namespace dstrain::ops::gpu {

/// The values rounded to T, two of 16 bits by one instruction. A NaN becomes the GPU's: where bits
/// of the CPU are promised, use converted().
template <class T, int numel>
DSTRAIN_DEVICE Pack<T, numel> rounded(const Pack<float, numel>& values) {
  if constexpr (std::is_same_v<T, float>) {
    return values;
  } else {
    Pack<T, numel> halves;
#pragma unroll
    for (int i = 0; i < numel; i += 2) {
      const float next = i + 1 < numel ? values.at[(i + 1) % numel] : 0.0F;
      const std::uint32_t pair = pack<T>(values.at[i], next);
      halves.at[i].bits = static_cast<std::uint16_t>(pair);
      if (i + 1 < numel) halves.at[(i + 1) % numel].bits = static_cast<std::uint16_t>(pair >> 16U);
    }
    return halves;
  }
}

}  // namespace dstrain::ops::gpu
