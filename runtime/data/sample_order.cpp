#include "runtime/data/sample_order.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/base/error.h"
#include "runtime/base/steps_per_epoch.h"
#include "runtime/numeric/philox.h"

namespace dstrain::data {
namespace {

constexpr std::uint64_t rounds = 8;

}  // namespace

SampleSplit split_samples(std::int64_t samples, std::span<const double> weights) {
  std::array<std::int64_t, 4> begins{};
  DSTRAIN_CHECK(weights.size() + 1 == begins.size(), "{} weights", weights.size());
  double sum = 0;
  for (const double weight : weights) sum += weight;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double part = weights[i] / sum * static_cast<double>(samples);
    begins.at(i + 1) = begins.at(i) + static_cast<std::int64_t>(std::nearbyint(part));
  }
  const std::int64_t excess = begins.back() - samples;
  for (std::size_t i = 1; i < begins.size(); ++i) begins.at(i) -= excess;
  return {{0, begins[1]}, {begins[1], begins[2] - begins[1]}};
}

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

SampleOrder::SampleOrder(const OrderOptions& options) : options_(options) {
  DSTRAIN_CHECK(options.global_batch > 0, "global batch {}", options.global_batch);
  if (steps_per_epoch() == 0) {
    fail(ErrorCode::input,
         "the training data holds {} samples, fewer than the {} of one step (train_batch_size), "
         "and --dataloader_drop_last leaves them out; give more data or a smaller batch",
         options.samples, options.global_batch);
  }
  shift_ = options.anew_at % steps_per_epoch();
}

std::int64_t SampleOrder::steps_per_epoch() const {
  return dstrain::steps_per_epoch(options_.samples, options_.global_batch, options_.drop_last);
}

std::int64_t SampleOrder::batch_size(std::int64_t step) const {
  const std::int64_t left = options_.samples - step_in_epoch(step) * options_.global_batch;
  return std::min(options_.global_batch, left);
}

std::int64_t SampleOrder::epoch_samples() const {
  return std::min(options_.samples, steps_per_epoch() * options_.global_batch);
}

std::int64_t SampleOrder::samples_of(std::int64_t steps) const {
  return epoch_of(steps) * epoch_samples() + step_in_epoch(steps) * options_.global_batch;
}

std::int64_t SampleOrder::sample(std::int64_t step, std::int64_t place) const {
  DSTRAIN_CHECK(step >= shift_ && place >= 0 && place < batch_size(step), "step {}, place {}", step,
                place);
  const std::int64_t epoch = epoch_of(step);
  const std::int64_t position = step_in_epoch(step) * options_.global_batch + place;
  if (!options_.shuffle) return position;
  return Permutation(options_.samples, options_.seed, static_cast<std::uint32_t>(epoch))(position);
}

}  // namespace dstrain::data
