#pragma once
#include <bit>
#include <cstdint>
#include <cstring>

#include "runtime/ops/dropout_site.h"
#include "runtime/ops/elements.h"
#include "runtime/ops/philox16.h"

namespace dstrain::ops {

/// The numbers that CPU kernels draw a site's mask from, read when the op runs.
struct DropoutMask {
  explicit DropoutMask(const DropoutSite& site) : rate(site.rate), seed(site.seed) {
    if (!active()) return;
    const std::int64_t* const counter = elements<std::int64_t>(site.counter);
    step = static_cast<std::uint32_t>(counter[0]);
    first_sample = counter[1];
  }
  [[nodiscard]] bool active() const { return rate > 0; }
  float rate;
  std::uint64_t seed;
  std::uint32_t step = 0;
  std::int64_t first_sample = 0;
};

/// Elements whose multipliers are drawn together.
inline constexpr std::int64_t dropout_group = 64;

/// The index of the first Philox block of a group of 64 elements of a sample; a group takes 16.
inline std::uint64_t dropout_block(const DropoutMask& mask,
                                   std::int64_t sequence,
                                   std::int64_t group) {
  return (static_cast<std::uint64_t>(mask.first_sample + sequence) << 40U) +
         static_cast<std::uint64_t>(group) * 16;
}

typedef std::int32_t Masks8 __attribute__((vector_size(32)));

/// target[j] = kept where word j is not below `dropped_below`, else 0.
[[gnu::always_inline]] inline void store_multipliers(const Words16& words,
                                                     std::uint64_t dropped_below,
                                                     float kept,
                                                     float* target) {
  const auto bits = std::bit_cast<std::int32_t>(kept);
  const Masks8 first = __builtin_convertvector(words.first >= dropped_below, Masks8) & bits;
  const Masks8 second = __builtin_convertvector(words.second >= dropped_below, Masks8) & bits;
  std::memcpy(target, &first, sizeof(first));
  std::memcpy(target + 8, &second, sizeof(second));
}

/// Writes 0 or 1 / (1 - rate) for the 64 elements of `group` of a sequence. Element e of the group
/// uses word e / 16 of block e % 16.
[[gnu::always_inline]] inline void dropout_multipliers(const DropoutMask& mask,
                                                       std::int64_t sequence,
                                                       std::int64_t group,
                                                       float* multipliers) {
  const PhiloxBlocks16 drawn = philox16(
      {mask.seed, RandomPurpose::dropout, mask.step, dropout_block(mask, sequence, group)});
  const auto dropped_below = static_cast<std::uint64_t>(static_cast<double>(mask.rate) * 0x1.0p32);
  const float kept = 1.0F / (1.0F - mask.rate);
  for (const Words16& word : drawn.words) {
    store_multipliers(word, dropped_below, kept, multipliers);
    multipliers += 16;
  }
}

}  // namespace dstrain::ops
