#pragma once
#include <memory>
#include <string>
#include <vector>

#include "runtime/data/mixture_order.h"
#include "runtime/data/sample_order.h"
#include "runtime/data/sample_source.h"

namespace dstrain::data {

/// Samples of one file within a mixture.
struct MixturePart {
  std::shared_ptr<const SampleSource> source;
  SampleRange range;  ///< of the source's samples, within it; not empty
  double weight = 0;  ///< above 0, in any unit; 0 for all parts: each sample occurs once
};

/// An epoch of several files at given weights: the shortest in which each of their samples occurs.
/// A file with too few samples for its weight starts again: sample k of its part is k modulo their
/// number. The parts interleave evenly (`MixtureOrder`); a shuffled run permutes this order.
class MixtureSamples : public SampleSource {
 public:
  /// The parts must have one block size. Throws Error{input} if the weights differ too much.
  explicit MixtureSamples(std::vector<MixturePart> parts);

  [[nodiscard]] std::string name() const override;
  [[nodiscard]] std::string mixture() const override;
  [[nodiscard]] std::int64_t bytes() const override;
  [[nodiscard]] std::string digest() const override;
  [[nodiscard]] bool is_text() const override;
  [[nodiscard]] bool counts_all_labels() const override;
  [[nodiscard]] std::int64_t samples() const override { return order_.samples(); }
  void read(std::int64_t sample, const SampleRows& row) const override;

 private:
  void add_notes();

  std::vector<MixturePart> parts_;
  MixtureOrder order_;
};

}  // namespace dstrain::data
