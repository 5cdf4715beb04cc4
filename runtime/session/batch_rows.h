#pragma once
#include <cstdint>
#include <string>

#include <dstrain/engine.h>

#include "runtime/data/sample_rows.h"

namespace dstrain::session {

/// The batches of a caller, checked and padded to the shape of a run.
class BatchRows {
 public:
  struct Limits {
    data::SampleSizes sizes;      ///< the longest sequences, and what the model reads of them
    std::int64_t sequences = 0;   ///< taken at once
    std::int64_t vocabulary = 0;  ///< of tokens; 0: the model reads none
    std::int64_t classes = 0;     ///< of labels; 0: those that are not given count
  };
  explicit BatchRows(const Limits& limits)
      : limits_(limits), buffer_(limits.sequences, limits.sizes) {}

  /// Why a batch does not fit; empty: it does.
  [[nodiscard]] std::string problem(const Batch& batch, bool wants_loss) const;
  /// The labels of a batch that count.
  [[nodiscard]] std::int64_t counted(const Batch& batch) const;
  /// Copies sequences [first, first + count) of a batch that fits; no label of those that it does
  /// not have counts. Valid until the next call.
  data::SampleRows take(const Batch& batch, std::int64_t first, std::int64_t count);
  /// `count` of the sequences that were taken last, from `first` on.
  [[nodiscard]] data::SampleRows rows(std::int64_t first, std::int64_t count) {
    return buffer_.rows(first, count);
  }

 private:
  [[nodiscard]] std::string label_problem(const Batch& batch, bool wants_loss) const;
  [[nodiscard]] std::string float_problem(const Batch& batch) const;
  [[nodiscard]] std::string source_problem(const Batch& batch) const;
  [[nodiscard]] bool all_count(const Batch& batch) const {
    return limits_.classes == 0 && batch.labels.empty();
  }

  Limits limits_;
  data::SampleBuffer buffer_;
};

}  // namespace dstrain::session
