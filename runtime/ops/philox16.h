#pragma once
#include <cstdint>

#include "runtime/numeric/philox.h"

namespace dstrain::ops {

/// Eight words of 32 bits, each in a 64-bit lane with room for a product.
typedef std::uint64_t Words8 __attribute__((vector_size(64)));

/// The same word of sixteen Philox blocks.
struct Words16 {
  Words8 first;
  Words8 second;
};

/// The four words of each of sixteen blocks.
struct PhiloxBlocks16 {
  Words16 words[4];
};

/// Computes philox() of runtime/numeric for the blocks key.index to key.index + 15, side by side;
/// key.index is a multiple of 16.
[[gnu::always_inline]] inline PhiloxBlocks16 philox16(const RandomKey& key) {
  constexpr std::uint64_t low = 0xffffffff;
  const Words8 zeros{};
  // From a multiple of 16 on, the low word does not carry.
  const Words8 lanes = Words8{0, 1, 2, 3, 4, 5, 6, 7} + (key.index & low);
  const std::uint64_t purpose = static_cast<std::uint64_t>(key.purpose);
  Words16 c0{lanes, lanes + 8U};
  Words16 c1{zeros + (key.index >> 32U), zeros + (key.index >> 32U)};
  Words16 c2{zeros + std::uint64_t{key.stream}, zeros + std::uint64_t{key.stream}};
  Words16 c3{zeros + purpose, zeros + purpose};
  std::uint64_t key_low = key.seed & low;
  std::uint64_t key_high = key.seed >> 32U;
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
  return {{c0, c1, c2, c3}};
}

}  // namespace dstrain::ops
