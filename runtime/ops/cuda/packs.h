#pragma once
#include <algorithm>

#include "runtime/ops/cuda/gpu.h"
#include "runtime/ops/cuda/gpu_elements.h"
#include "runtime/ops/cuda/warp_instructions.h"
#include "runtime/ops/elements.h"

namespace dstrain::ops::gpu {

/// The most bytes that one instruction of a thread loads or stores.
inline constexpr int widest_access = 16;

/// Adjacent elements, loaded and stored with the fewest possible instructions.
template <class T, int numel>
struct alignas(std::min(widest_access, numel* static_cast<int>(sizeof(T)))) Pack {
  T at[numel];
};

/// The number of elements of the narrowest type in the widest access.
template <class... Types>
inline constexpr int pack_numel = widest_access / static_cast<int>(std::min({sizeof(Types)...}));

/// Loads elements [i, i + numel). If numel > 1, `from + i` must be aligned to 16 bytes.
template <int numel, class T>
DSTRAIN_DEVICE Pack<T, numel> load(const T* from, std::int64_t i) {
  return *reinterpret_cast<const Pack<T, numel>*>(from + i);
}
template <int numel, class T>
DSTRAIN_DEVICE void store(const Pack<T, numel>& pack, T* to, std::int64_t i) {
  *reinterpret_cast<Pack<T, numel>*>(to + i) = pack;
}

/// Returns the values rounded to another type.
template <class To, class From, int numel>
DSTRAIN_DEVICE Pack<To, numel> converted(const Pack<From, numel>& from) {
  Pack<To, numel> to;
#pragma unroll
  for (int i = 0; i < numel; ++i) to.at[i] = from_float<To>(to_float(from.at[i]));
  return to;
}

/// Returns the values rounded to T, two 16-bit values per instruction. A NaN becomes the GPU's NaN:
/// use converted() where the CPU's bits are promised.
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

/// Whether addresses are aligned for packs; null is.
template <class... Types>
bool are_aligned(const Types*... memory) {
  return ((reinterpret_cast<std::uintptr_t>(memory) % widest_access == 0) && ...);
}

}  // namespace dstrain::ops::gpu
