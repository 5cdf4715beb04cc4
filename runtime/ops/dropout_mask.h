#pragma once
#include <cmath>
#include <cstdint>

#include "runtime/base/philox.h"

namespace dstrain::ops {

/// One place of the model that drops, in one step: what a mask depends on besides the sample and
/// the element. The same place gives the same mask in forward, in recompute and in backward.
struct DropoutSite {
  float rate = 0;  ///< probability of dropping, [0, 1)
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
  std::int64_t first_sample = 0;  ///< index of sequence 0 in the global batch, below 2^24
  [[nodiscard]] bool active() const { return rate > 0; }
};

/// The seed of place `site` of unit `unit`: drawn from the run's seed, so that places have streams
/// of their own and the 64-bit index is left to samples and elements.
inline std::uint64_t dropout_site_seed(std::uint64_t seed, std::uint32_t unit, std::uint32_t site) {
  const auto words = philox({seed, RandomPurpose::dropout, unit, ~std::uint64_t{site}});
  return (std::uint64_t{words[1]} << 32U) | words[0];
}

/// Elements whose multipliers are drawn together.
inline constexpr std::int64_t dropout_group = 64;

/// The index of the first Philox block of a group of 64 elements of a sample; a group takes 16.
inline std::uint64_t dropout_block(const DropoutSite& site,
                                   std::int64_t sequence,
                                   std::int64_t group) {
  return (static_cast<std::uint64_t>(site.first_sample + sequence) << 40U) +
         static_cast<std::uint64_t>(group) * 16;
}

/// Writes 0 or 1 / (1 - rate) for the 64 elements of `group` of a sequence. Element e of the group
/// takes word e / 16 of block e % 16, so that sixteen blocks run side by side in a vector.
inline void dropout_multipliers(const DropoutSite& site,
                                std::int64_t sequence,
                                std::int64_t group,
                                float* multipliers) {
  constexpr int lanes = 16;
  const std::uint64_t index = dropout_block(site, sequence, group);
  std::uint32_t c0[lanes];
  std::uint32_t c1[lanes];
  std::uint32_t c2[lanes];
  std::uint32_t c3[lanes];
  for (int j = 0; j < lanes;
       ++j) {  // groups start at multiples of 16: no carry out of the low word
    c0[j] = static_cast<std::uint32_t>(index) + static_cast<std::uint32_t>(j);
    c1[j] = static_cast<std::uint32_t>(index >> 32U);
    c2[j] = site.step;
    c3[j] = static_cast<std::uint32_t>(RandomPurpose::dropout);
  }
  auto key_low = static_cast<std::uint32_t>(site.seed);
  auto key_high = static_cast<std::uint32_t>(site.seed >> 32U);
  for (int round = 0; round < 10; ++round) {  // philox() of runtime/base, lane by lane
    for (int j = 0; j < lanes; ++j) {
      const std::uint64_t first = std::uint64_t{0xD2511F53} * c0[j];
      const std::uint64_t second = std::uint64_t{0xCD9E8D57} * c2[j];
      c0[j] = static_cast<std::uint32_t>(second >> 32U) ^ c1[j] ^ key_low;
      c1[j] = static_cast<std::uint32_t>(second);
      c2[j] = static_cast<std::uint32_t>(first >> 32U) ^ c3[j] ^ key_high;
      c3[j] = static_cast<std::uint32_t>(first);
    }
    key_low += 0x9E3779B9;
    key_high += 0xBB67AE85;
  }
  const auto dropped_below = static_cast<std::uint32_t>(static_cast<double>(site.rate) * 0x1.0p32);
  const float kept = 1.0F / (1.0F - site.rate);
  for (int j = 0; j < lanes; ++j) {
    multipliers[j] = c0[j] < dropped_below ? 0.0F : kept;
    multipliers[j + lanes] = c1[j] < dropped_below ? 0.0F : kept;
    multipliers[j + 2 * lanes] = c2[j] < dropped_below ? 0.0F : kept;
    multipliers[j + 3 * lanes] = c3[j] < dropped_below ? 0.0F : kept;
  }
}

}  // namespace dstrain::ops
