#pragma once
#include <cstdint>
#include <span>

#include "runtime/base/label.h"
#include "runtime/data/sample_order.h"
#include "runtime/data/sample_source.h"

namespace dstrain::data {

/// Who loads, and how much at a time.
struct LoaderShare {
  std::int64_t micro_batch = 0;  ///< B: sequences per rank and micro step
  std::int64_t rank = 0;
  std::int64_t world = 1;  ///< N
};

/// Fills micro-batches of training data. Place i of micro step a on rank r is place (aN + r)B + i
/// of the step's global batch: the global batch is the same set of samples for every split of G
/// into N, B and micro steps. Keeps no position: any step can be asked for at any time. Safe from
/// several threads; `source` must outlive it.
class BatchLoader {
 public:
  /// Of the first order.samples samples, or as many as there are if that is 0. Throws Error{input}
  /// as SampleOrder does.
  BatchLoader(const SampleSource& source, const LoaderShare& share, const OrderOptions& order);

  [[nodiscard]] const SampleOrder& order() const { return order_; }
  /// Micro steps of optimizer step `step` (from 0): behind them no rank has a sample.
  [[nodiscard]] std::int64_t micro_steps(std::int64_t step) const;
  /// Epochs after `steps` steps, which Hugging Face counts in micro steps.
  [[nodiscard]] double epochs_after(std::int64_t steps) const;

  [[nodiscard]] const SampleSizes& sizes() const { return source_.sizes(); }

  /// Writes the B samples of one micro step of optimizer step `step`, both counted from 0; where an
  /// epoch's last batch has no more, labels are `ignored_label`. Returns the place of the first one
  /// within the global batch. Throws Error{input} when a file of it
  /// has changed as check_mapped_files() says, or holds an id beyond the vocabulary.
  std::int64_t fill(std::int64_t step, std::int64_t micro_step, const SampleRows& rows) const;

 private:
  [[nodiscard]] std::int64_t micro_steps_of(std::int64_t samples) const;

  const SampleSource& source_;
  LoaderShare share_;
  std::int64_t micro_steps_;
  SampleOrder order_;
};

/// Walks samples of a source once, in order: batch b holds samples [bNB, (b+1)NB), of which
/// rank r has the r-th run of B. Where samples run out, labels are `ignored_label`; every rank has
/// the same number of batches. `source` must outlive it.
class EvaluationLoader {
 public:
  /// Throws Error{input} when the range does not hold one sample.
  EvaluationLoader(const SampleSource& source, const LoaderShare& share, SampleRange range = {});

  [[nodiscard]] std::int64_t batches() const;
  void fill(std::int64_t batch, const SampleRows& rows) const;
  /// B.
  [[nodiscard]] std::int64_t micro_batch() const { return share_.micro_batch; }
  [[nodiscard]] const SampleSizes& sizes() const { return source_.sizes(); }

 private:
  const SampleSource& source_;
  LoaderShare share_;
  SampleRange range_;
};

}  // namespace dstrain::data
