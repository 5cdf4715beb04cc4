#pragma once
#include <bit>
#include <cstdint>
#include <cstring>

#include "runtime/base/philox.h"
#include "runtime/ops/dropout_site.h"
#include "runtime/ops/elements.h"

namespace dstrain::ops {

/// What kernels of the CPU draw for a site: its numbers, read where the op runs.
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
[[gnu::always_inline]] inline void dropout_multipliers(const DropoutMask& mask,
                                                       std::int64_t sequence,
                                                       std::int64_t group,
                                                       float* multipliers) {
  constexpr std::uint64_t low = 0xffffffff;
  const std::uint64_t index = dropout_block(mask, sequence, group);
  const std::uint64_t purpose = static_cast<std::uint64_t>(RandomPurpose::dropout);
  const Words8 zeros{};
  // Groups start at multiples of 16: no carry out of the low word.
  const Words8 lanes = Words8{0, 1, 2, 3, 4, 5, 6, 7} + (index & low);
  Words16 c0{lanes, lanes + 8U};
  Words16 c1{zeros + (index >> 32U), zeros + (index >> 32U)};
  Words16 c2{zeros + std::uint64_t{mask.step}, zeros + std::uint64_t{mask.step}};
  Words16 c3{zeros + purpose, zeros + purpose};
  std::uint64_t key_low = mask.seed & low;
  std::uint64_t key_high = mask.seed >> 32U;
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
  const auto dropped_below = static_cast<std::uint64_t>(static_cast<double>(mask.rate) * 0x1.0p32);
  const float kept = 1.0F / (1.0F - mask.rate);
  store_multipliers(c0, dropped_below, kept, multipliers);
  store_multipliers(c1, dropped_below, kept, multipliers + 16);
  store_multipliers(c2, dropped_below, kept, multipliers + 32);
  store_multipliers(c3, dropped_below, kept, multipliers + 48);
}

}  // namespace dstrain::ops
