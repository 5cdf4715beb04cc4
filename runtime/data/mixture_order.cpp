#include "runtime/data/mixture_order.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/base/error.h"

namespace dstrain::data {

std::vector<std::int64_t> mixture_counts(std::span<const MixtureShare> shares) {
  double time = 0;
  double weights = 0;
  for (const auto& [samples, weight] : shares) {
    DSTRAIN_CHECK(samples > 0 && weight > 0, "{} samples of weight {}", samples, weight);
    time = std::max(time, (static_cast<double>(samples) - 0.5) / weight);
    weights += weight;
  }
  constexpr double most = 0x1p50;
  if (!(time * weights < most)) {
    fail(ErrorCode::input,
         "the weights of the files differ too much: an epoch in which each sample occurs would "
         "have {:.3g} samples; raise the smallest weights",
         time * weights);
  }
  std::vector<std::int64_t> counts;
  for (const auto& [samples, weight] : shares) {
    const auto rounded = static_cast<std::int64_t>(std::floor(time * weight + 0.5));
    counts.push_back(std::max(samples, rounded));
  }
  return counts;
}

MixtureOrder::MixtureOrder(std::vector<std::int64_t> counts)
    : counts_(std::move(counts)),
      samples_(std::accumulate(counts_.begin(), counts_.end(), std::int64_t{0})) {
  DSTRAIN_CHECK(!counts_.empty() && std::ranges::min(counts_) > 0, "{} parts", counts_.size());
}

/// Returns how many samples of a part of `count` have times below interval / N: the integers k >= 0
/// with (2k + 1) N < 2 count interval.
std::int64_t MixtureOrder::before(std::int64_t count, std::int64_t interval) const {
  if (interval == 0) return 0;
  const auto bound = static_cast<__int128_t>(2 * count) * interval - 1;
  return static_cast<std::int64_t>((bound / samples_ + 1) / 2);
}

std::int64_t MixtureOrder::all_before(std::int64_t interval) const {
  std::int64_t sum = 0;
  for (const std::int64_t count : counts_) sum += before(count, interval);
  return sum;
}

/// Returns the interval of the sample at `position`: the last one with at most `position` samples
/// before it. Each part is at most half a sample from its share, so the interval is at most half
/// the number of parts from the position.
std::int64_t MixtureOrder::interval_of(std::int64_t position) const {
  const std::int64_t reach = std::ssize(counts_) / 2 + 1;
  std::int64_t low = std::max<std::int64_t>(0, position - reach);
  std::int64_t high = std::min(samples_, position + reach);
  while (high - low > 1) {
    const std::int64_t middle = std::midpoint(low, high);
    (all_before(middle) <= position ? low : high) = middle;
  }
  return low;
}

MixtureOrder::PartSample MixtureOrder::operator()(std::int64_t position) const {
  DSTRAIN_CHECK(position >= 0 && position < samples_, "position {} of {}", position, samples_);
  const std::int64_t interval = interval_of(position);
  std::int64_t first = 0;
  std::vector<PartSample> samples;
  for (std::size_t part = 0; part < counts_.size(); ++part) {
    const std::int64_t sample = before(counts_[part], interval);
    first += sample;
    if (before(counts_[part], interval + 1) > sample) samples.push_back({part, sample});
  }
  const auto earlier = [&](const PartSample& one, const PartSample& two) {
    const auto left = static_cast<__int128_t>(2 * one.sample + 1) * counts_[two.part];
    const auto right = static_cast<__int128_t>(2 * two.sample + 1) * counts_[one.part];
    return left != right ? left < right : one.part < two.part;
  };
  DSTRAIN_CHECK(position - first < std::ssize(samples), "{} samples", samples.size());
  const auto wanted = samples.begin() + (position - first);
  std::nth_element(samples.begin(), wanted, samples.end(), earlier);
  return *wanted;
}

}  // namespace dstrain::data
