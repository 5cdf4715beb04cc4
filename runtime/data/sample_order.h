#pragma once
#include <cstdint>
#include <limits>
#include <span>

namespace dstrain::data {

/// The samples of a stream that are used: `count` of them, or as many as there are, from `first`
/// on.
struct SampleRange {
  std::int64_t first = 0;
  std::int64_t count = std::numeric_limits<std::int64_t>::max();
};

struct SampleSplit {
  SampleRange training;
  SampleRange validation;
};

/// The parts of `samples` samples that three weights give, by Megatron's rounding: each part has
/// round(weight / sum of weights * samples), halves to even, and what is left over or missing is
/// taken from the first. The last part, for tests, is not used.
SampleSplit split_samples(std::int64_t samples, std::span<const double> weights);

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

struct OrderOptions {
  std::int64_t samples = 0;       ///< of an epoch
  std::int64_t global_batch = 0;  ///< G: samples per optimizer step
  bool shuffle = true;            ///< false: file order
  bool drop_last = false;         ///< what does not fill a G at the end of an epoch is left out
  std::uint64_t seed = 0;
  /// The step before which the data began anew (--ignore_data_skip): it is the first one of its
  /// epoch, and no earlier one is asked for. 0: they never did.
  std::int64_t anew_at = 0;
};

/// Which samples an optimizer step consumes: step s of an epoch takes [sG, (s+1)G) of the epoch's
/// order, the last one those that are left. Depends on nothing else: not on ranks, micro-batches or
/// what ran before. If the data begin anew at a step, its epoch has the number that it has anyway,
/// and all later ones end that much later.
class SampleOrder {
 public:
  /// Throws Error{input} when the data holds no sample, or fewer than G and the last are dropped.
  explicit SampleOrder(const OrderOptions& options);

  [[nodiscard]] std::int64_t steps_per_epoch() const;
  /// The epoch of optimizer step `step`; both from 0.
  [[nodiscard]] std::int64_t epoch_of(std::int64_t step) const {
    return (step - shift_) / steps_per_epoch();
  }
  /// The steps of its epoch before optimizer step `step` (from 0).
  [[nodiscard]] std::int64_t step_in_epoch(std::int64_t step) const {
    return (step - shift_) % steps_per_epoch();
  }
  /// How many samples an epoch takes.
  [[nodiscard]] std::int64_t epoch_samples() const;
  /// How many samples the global batch of optimizer step `step` (from 0) has: G, or what is left.
  [[nodiscard]] std::int64_t batch_size(std::int64_t step) const;
  /// How many samples the first `steps` steps take, or would have taken in whole epochs before the
  /// data began anew.
  [[nodiscard]] std::int64_t samples_of(std::int64_t steps) const;
  /// The sample at `place` in [0, batch_size(step)) of that batch.
  [[nodiscard]] std::int64_t sample(std::int64_t step, std::int64_t place) const;

 private:
  OrderOptions options_;
  std::int64_t shift_ = 0;  ///< steps that belong to no epoch
};

}  // namespace dstrain::data
