#pragma once
#include <array>
#include <cstdint>
#include <span>

namespace dstrain {

/// The use of random numbers: separates the streams of different uses.
enum class RandomPurpose : std::uint32_t {
  init = 1,
  shuffle = 2,
  dropout = 3,
  sample = 4,
  rounding = 5
};

/// Names one random block. Equal keys give equal numbers on every rank, machine and restart.
struct RandomKey {
  std::uint64_t seed = 0;
  RandomPurpose purpose = RandomPurpose::init;
  std::uint32_t stream = 0;  ///< e.g. the optimizer step, the epoch or the parameter's number
  std::uint64_t index = 0;   ///< position within the stream
};

/// Philox4x32-10 (Salmon et al., SC'11): four uniform 32-bit words for a key, without state.
constexpr std::array<std::uint32_t, 4> philox(const RandomKey& key) {
  std::array<std::uint32_t, 4> counter{static_cast<std::uint32_t>(key.index),
                                       static_cast<std::uint32_t>(key.index >> 32), key.stream,
                                       static_cast<std::uint32_t>(key.purpose)};
  auto key_low = static_cast<std::uint32_t>(key.seed);
  auto key_high = static_cast<std::uint32_t>(key.seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t first = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t second = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(second >> 32) ^ counter[1] ^ key_low,
               static_cast<std::uint32_t>(second),
               static_cast<std::uint32_t>(first >> 32) ^ counter[3] ^ key_high,
               static_cast<std::uint32_t>(first)};
    key_low += 0x9E3779B9;
    key_high += 0xBB67AE85;
  }
  return counter;
}

/// Maps a 32-bit word to a uniform number in [0, 1), exact in float.
constexpr float uniform_float(std::uint32_t word) {
  return static_cast<float>(word >> 8) * 0x1.0p-24F;
}

/// Standard normal numbers of the elements from `key.index` on, by Box-Muller in double, rounded to
/// float. Element e is number e % 4 of Philox block e / 4: any range equals that of a whole draw.
void normal_floats(RandomKey key, std::span<float> values);

/// The standard normal number of element `key.index`.
float normal_float(const RandomKey& key);

/// Uniform integer in [0, bound) by multiply-shift (Lemire 2019); bound > 0. The bias is below
/// bound / 2^64.
std::uint64_t uniform_below(const RandomKey& key, std::uint64_t bound);

}  // namespace dstrain
