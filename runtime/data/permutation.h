#pragma once
#include <cstdint>

namespace dstrain::data {

/// A random order of [0, count), a function of (seed, epoch) alone: any place of it is computed on
/// its own, in O(1) time and memory, so that restarting or changing the number of ranks needs no
/// state.
///
/// Numbers are split into a pair (left, right) in a rectangle of at least `count` cells, and rounds
/// add a Philox number keyed by one half to the other half, modulo its side: each round can be
/// undone, so all of them together are a bijection (a Feistel network). Results outside [0, count)
/// are sent through again (cycle walking), which is seldom as the rectangle is barely larger.
class Permutation {
 public:
  Permutation(std::int64_t count, std::uint64_t seed, std::uint32_t epoch);

  /// The number at `position`, both in [0, count).
  [[nodiscard]] std::int64_t operator()(std::int64_t position) const;

 private:
  [[nodiscard]] std::uint64_t scramble(std::uint64_t number) const;

  std::uint64_t count_;
  std::uint64_t left_side_;
  std::uint64_t right_side_;
  std::uint64_t seed_;
  std::uint32_t epoch_;
};

}  // namespace dstrain::data
