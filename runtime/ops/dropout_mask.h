#pragma once
#include <bit>
#include <cstdint>
#include <cstring>

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

/// Eight words of 32 bits, each in a lane of 64 where a product finds room.
typedef std::uint64_t Words8 __attribute__((vector_size(64)));
typedef std::int32_t Masks8 __attribute__((vector_size(32)));

/// The same word of sixteen Philox blocks.
struct Words16 {
  Words8 first;
  Words8 second;
};

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
/// takes word e / 16 of block e % 16: philox() of runtime/base, sixteen blocks side by side.
[[gnu::always_inline]] inline void dropout_multipliers(const DropoutSite& site,
                                                       std::int64_t sequence,
                                                       std::int64_t group,
                                                       float* multipliers) {
  constexpr std::uint64_t low = 0xffffffff;
  const std::uint64_t index = dropout_block(site, sequence, group);
  const std::uint64_t purpose = static_cast<std::uint64_t>(RandomPurpose::dropout);
  const Words8 zeros{};
  // Groups start at multiples of 16: no carry out of the low word.
  const Words8 lanes = Words8{0, 1, 2, 3, 4, 5, 6, 7} + (index & low);
  Words16 c0{lanes, lanes + 8U};
  Words16 c1{zeros + (index >> 32U), zeros + (index >> 32U)};
  Words16 c2{zeros + std::uint64_t{site.step}, zeros + std::uint64_t{site.step}};
  Words16 c3{zeros + purpose, zeros + purpose};
  std::uint64_t key_low = site.seed & low;
  std::uint64_t key_high = site.seed >> 32U;
  for (int round = 0; round < 10; ++round) {
    const Words16 a{c0.first * 0xD2511F53U, c0.second * 0xD2511F53U};
    const Words16 b{c2.first * 0xCD9E8D57U, c2.second * 0xCD9E8D57U};
    c0 = {(b.first >> 32U) ^ c1.first ^ key_low, (b.second >> 32U) ^ c1.second ^ key_low};
    c1 = {b.first & low, b.second & low};
    c2 = {(a.first >> 32U) ^ c3.first ^ key_high, (a.second >> 32U) ^ c3.second ^ key_high};
    c3 = {a.first & low, a.second & low};
    key_low = (key_low + 0x9E3779B9U) & low;
    key_high = (key_high + 0xBB67AE85U) & low;
  }
  const auto dropped_below = static_cast<std::uint64_t>(static_cast<double>(site.rate) * 0x1.0p32);
  const float kept = 1.0F / (1.0F - site.rate);
  store_multipliers(c0, dropped_below, kept, multipliers);
  store_multipliers(c1, dropped_below, kept, multipliers + 16);
  store_multipliers(c2, dropped_below, kept, multipliers + 32);
  store_multipliers(c3, dropped_below, kept, multipliers + 48);
}

}  // namespace dstrain::ops
