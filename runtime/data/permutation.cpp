#include "runtime/data/permutation.h"

#include <cmath>

#include "runtime/base/error.h"
#include "runtime/base/philox.h"

namespace dstrain::data {
namespace {

constexpr std::uint64_t rounds = 8;

}  // namespace

Permutation::Permutation(std::int64_t count, std::uint64_t seed, std::uint32_t epoch)
    : count_(static_cast<std::uint64_t>(count)), seed_(seed), epoch_(epoch) {
  DSTRAIN_CHECK(count > 0 && count < (std::int64_t{1} << 52), "count {}", count);
  left_side_ = static_cast<std::uint64_t>(std::ceil(std::sqrt(static_cast<double>(count))));
  right_side_ = (count_ + left_side_ - 1) / left_side_;
}

std::int64_t Permutation::operator()(std::int64_t position) const {
  auto number = static_cast<std::uint64_t>(position);
  DSTRAIN_CHECK(position >= 0 && number < count_, "position {} of {}", position, count_);
  do {
    number = scramble(number);
  } while (number >= count_);
  return static_cast<std::int64_t>(number);
}

std::uint64_t Permutation::scramble(std::uint64_t number) const {
  std::uint64_t left = number / right_side_;
  std::uint64_t right = number % right_side_;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const bool on_left = round % 2 == 0;
    const std::uint64_t side = on_left ? left_side_ : right_side_;
    std::uint64_t& target = on_left ? left : right;
    const RandomKey key{seed_, RandomPurpose::shuffle, epoch_,
                        (round << 56U) | (on_left ? right : left)};
    target = (target + uniform_below(key, side)) % side;
  }
  return left * right_side_ + right;
}

}  // namespace dstrain::data
