#pragma once
#include <cstdint>
#include <limits>
#include <span>

namespace dstrain::data {

/// The samples of a stream that are used: from `first` on, `count` of them or all.
struct SampleRange {
  std::int64_t first = 0;
  std::int64_t count = std::numeric_limits<std::int64_t>::max();
};

struct SampleSplit {
  SampleRange training;
  SampleRange validation;
};

/// Splits `samples` samples by three weights, with Megatron's rounding: each part has round(weight
/// / sum of weights * samples), halves to even, and the first part absorbs the difference. The last
/// part, for tests, is not used.
SampleSplit split_samples(std::int64_t samples, std::span<const double> weights);

/// A random order of [0, count), which depends only on (seed, epoch). Any position is computed
/// separately, in O(1) time and memory, so that restarting or changing the number of ranks needs no
/// state.
///
/// Numbers are split into a pair (left, right) in a rectangle of at least `count` cells. Rounds add
/// a Philox number keyed by one half to the other half, modulo its side. Each round is invertible,
/// so together they are a bijection (a Feistel network). Results outside of [0, count) go through
/// the rounds again (cycle walking), which is rare because the rectangle is barely larger.
class Permutation {
 public:
  Permutation(std::int64_t count, std::uint64_t seed, std::uint32_t epoch);

  /// Returns the number at `position`, both in [0, count).
  [[nodiscard]] std::int64_t operator()(std::int64_t position) const;

 private:
  [[nodiscard]] std::uint64_t scramble(std::uint64_t number) const;

  std::uint64_t count_;
  std::uint64_t left_side_;
  std::uint64_t right_side_;
  std::uint64_t seed_;
  std::uint32_t epoch_;
};

struct OrderOptions {
  std::int64_t samples = 0;       ///< of an epoch
  std::int64_t global_batch = 0;  ///< G: samples per optimizer step
  bool shuffle = true;            ///< false: file order
  bool drop_last = false;         ///< drop the samples at the end of an epoch that do not fill a G
  std::uint64_t seed = 0;
  /// The step before which the data started anew (--ignore_data_skip). It is the first one of its
  /// epoch, and no earlier one is requested. 0: never.
  std::int64_t anew_at = 0;
};

/// The samples that an optimizer step consumes: step s of an epoch takes [sG, (s+1)G) of the
/// epoch's order, the last one the rest. Depends on nothing else: not on ranks, micro-batches or
/// earlier steps. If the data start anew at a step, its epoch keeps its number, and all later ones
/// end that much later.
class SampleOrder {
 public:
  /// Throws Error{input} if the data hold no sample, or fewer than G with drop_last.
  explicit SampleOrder(const OrderOptions& options);

  [[nodiscard]] std::int64_t steps_per_epoch() const;
  /// Returns the epoch of optimizer step `step`; both from 0.
  [[nodiscard]] std::int64_t epoch_of(std::int64_t step) const {
    return (step - shift_) / steps_per_epoch();
  }
  /// Returns the steps of its epoch before optimizer step `step` (from 0).
  [[nodiscard]] std::int64_t step_in_epoch(std::int64_t step) const {
    return (step - shift_) % steps_per_epoch();
  }
  /// Returns the number of samples in an epoch.
  [[nodiscard]] std::int64_t epoch_samples() const;
  /// Returns the number of samples in the global batch of optimizer step `step` (from 0): G, or the
  /// rest.
  [[nodiscard]] std::int64_t batch_size(std::int64_t step) const;
  /// Returns the number of samples of the first `steps` steps; steps before the data started anew
  /// count as in whole epochs.
  [[nodiscard]] std::int64_t samples_of(std::int64_t steps) const;
  /// Returns the sample at `place` in [0, batch_size(step)) of that batch.
  [[nodiscard]] std::int64_t sample(std::int64_t step, std::int64_t place) const;

 private:
  OrderOptions options_;
  std::int64_t shift_ = 0;  ///< steps that belong to no epoch
};

}  // namespace dstrain::data
