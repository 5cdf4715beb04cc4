#pragma once
#include <cstdint>
#include <span>

#include "runtime/base/label.h"
#include "runtime/data/sample_order.h"
#include "runtime/data/sample_source.h"

namespace dstrain::data {

/// The ranks that load, and the sequences of each.
struct LoaderShare {
  std::int64_t micro_batch = 0;  ///< B: sequences per rank and micro step
  std::int64_t rank = 0;
  std::int64_t world = 1;  ///< N
};

/// Fills micro-batches of training data. Place i of micro step a on rank r is place (aN + r)B + i
/// of the step's global batch: the global batch is the same set of samples for every split of G
/// into N, B and micro steps. Keeps no position: any step can be loaded at any time. Thread-safe;
/// `source` must outlive it.
class BatchLoader {
 public:
  /// Uses the first order.samples samples, or all if that is 0. Throws Error{input} as SampleOrder
  /// does.
  BatchLoader(const SampleSource& source, const LoaderShare& share, const OrderOptions& order);

  [[nodiscard]] const SampleOrder& order() const { return order_; }
  /// Returns the micro steps of optimizer step `step` (from 0); after them no rank has a sample.
  [[nodiscard]] std::int64_t micro_steps(std::int64_t step) const;
  /// Returns the epochs after `steps` steps, which Hugging Face counts in micro steps.
  [[nodiscard]] double epochs_after(std::int64_t steps) const;

  [[nodiscard]] const SampleSizes& sizes() const { return source_.sizes(); }

  /// Writes the B samples of one micro step of optimizer step `step`, both counted from 0. Where an
  /// epoch's last batch has no more samples, labels are `ignored_label`. Returns the place of the
  /// first sample within the global batch. Throws Error{input} if a file of it has changed
  /// (check_mapped_files()), or holds an id beyond the vocabulary.
  std::int64_t fill(std::int64_t step, std::int64_t micro_step, const SampleRows& rows) const;

 private:
  [[nodiscard]] std::int64_t micro_steps_of(std::int64_t samples) const;

  const SampleSource& source_;
  LoaderShare share_;
  std::int64_t micro_steps_;
  SampleOrder order_;
};

/// Reads samples of a source once, in order: batch b holds samples [bNB, (b+1)NB), of which rank r
/// has the r-th run of B. After the last sample, labels are `ignored_label`; every rank has the
/// same number of batches. `source` must outlive it.
class EvaluationLoader {
 public:
  /// Throws Error{input} if the range does not hold a sample.
  EvaluationLoader(const SampleSource& source, const LoaderShare& share, SampleRange range = {});

  [[nodiscard]] std::int64_t batches() const;
  void fill(std::int64_t batch, const SampleRows& rows) const;
  /// Returns B.
  [[nodiscard]] std::int64_t micro_batch() const { return share_.micro_batch; }
  [[nodiscard]] const SampleSizes& sizes() const { return source_.sizes(); }

 private:
  const SampleSource& source_;
  LoaderShare share_;
  SampleRange range_;
};

}  // namespace dstrain::data
