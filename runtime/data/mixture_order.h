#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace dstrain::data {

/// A part of a mixture: a file, or some of its samples.
struct MixtureShare {
  std::int64_t samples = 0;  ///< n, at least 1
  double weight = 0;         ///< w, above 0, in any unit
};

/// Returns the number of samples of each part in an epoch: c = round(t w), halves up, with the
/// least t for which every c >= n, so that each sample occurs. That t is the largest (n - 1/2) / w;
/// the part with that quotient is seen once. Throws Error{input} if the sum would be 2^50 samples
/// or more.
std::vector<std::int64_t> mixture_counts(std::span<const MixtureShare> shares);

/// An order of all samples of an epoch in which the parts, of c samples each, are spread as evenly
/// as possible. Sample k of a part has the time (2k + 1) / 2c in [0, 1); samples are ordered by
/// time, then by part. Any prefix is a division by Webster's method: of its first p samples a part
/// with the share f has p f, with an error below 1/2 + f parts / 2.
///
/// Positions are computed, not looked up. Time is cut into as many intervals as there are samples,
/// the interval of a position is found by bisection near it, and each part has at most one sample
/// there. O(m log m) time and O(m) memory for m parts, for any number of samples.
class MixtureOrder {
 public:
  /// @p counts c of each part, at least 1; their sum is below 2^52.
  explicit MixtureOrder(std::vector<std::int64_t> counts);

  /// Returns N, the number of samples of an epoch.
  [[nodiscard]] std::int64_t samples() const { return samples_; }
  [[nodiscard]] const std::vector<std::int64_t>& counts() const { return counts_; }

  struct PartSample {
    std::size_t part = 0;
    std::int64_t sample = 0;  ///< in [0, c)
  };
  /// Returns the sample at `position` in [0, N).
  [[nodiscard]] PartSample operator()(std::int64_t position) const;

 private:
  [[nodiscard]] std::int64_t before(std::int64_t count, std::int64_t interval) const;
  [[nodiscard]] std::int64_t all_before(std::int64_t interval) const;
  [[nodiscard]] std::int64_t interval_of(std::int64_t position) const;

  std::vector<std::int64_t> counts_;
  std::int64_t samples_ = 0;
};

}  // namespace dstrain::data
