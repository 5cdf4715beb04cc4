#pragma once
#include "runtime/numeric/philox.h"
#include "runtime/ops/cuda/launch.h"
#include "runtime/ops/dropout_site.h"

namespace dstrain::ops::gpu {

/// The dropout mask of a site, with the same bits as ops/dropout_mask.h on the CPU.
struct DropoutMask {
  explicit DropoutMask(const DropoutSite& site)
      : dropped_below(static_cast<std::uint64_t>(static_cast<double>(site.rate) * 0x1.0p32)),
        kept(1.0F / (1.0F - site.rate)),
        seed(site.seed),
        counter(site.active() ? elements<const std::int64_t>(site.counter) : nullptr) {}
  std::uint64_t dropped_below;
  float kept;  ///< the multiplier of elements that are not dropped
  std::uint64_t seed;
  const std::int64_t* counter;  ///< step, first sample; null: nothing is dropped
  DSTRAIN_DEVICE bool active() const { return counter != nullptr; }

  /// The multipliers of elements lane, lane + 16, lane + 32 and lane + 48 of a group of 64 of a
  /// sequence; `lane` in [0, 16).
  struct Four {
    float multiplier[4];
  };
  DSTRAIN_DEVICE Four draw(std::int64_t sequence, std::int64_t group, int lane) const {
    const std::uint64_t block = (static_cast<std::uint64_t>(counter[1] + sequence) << 40U) +
                                static_cast<std::uint64_t>(group) * 16 +
                                static_cast<std::uint64_t>(lane);
    const auto words =
        philox({seed, RandomPurpose::dropout, static_cast<std::uint32_t>(counter[0]), block});
    Four four{};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      four.multiplier[i] = words[static_cast<std::size_t>(i)] >= dropped_below ? kept : 0.0F;
    }
    return four;
  }
};

}  // namespace dstrain::ops::gpu
