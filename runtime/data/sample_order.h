#pragma once
#include <cstdint>

namespace dstrain::data {

struct OrderOptions {
  std::int64_t samples = 0;       ///< of an epoch
  std::int64_t global_batch = 0;  ///< G: samples per optimizer step
  bool shuffle = true;            ///< false: file order
  std::uint64_t seed = 0;
};

/// Which samples an optimizer step consumes: step s of an epoch takes [sG, (s+1)G) of the epoch's
/// order, and what does not fill a G at the end of the epoch is left out. Depends on nothing else:
/// not on ranks, micro-batches or what ran before.
class SampleOrder {
 public:
  /// Throws Error{input} when the data does not hold G samples.
  explicit SampleOrder(const OrderOptions& options);

  [[nodiscard]] std::int64_t steps_per_epoch() const;
  /// The epoch of optimizer step `step`; both from 0.
  [[nodiscard]] std::int64_t epoch_of(std::int64_t step) const { return step / steps_per_epoch(); }
  /// The sample at `place` in [0, G) of the global batch of optimizer step `step` (from 0).
  [[nodiscard]] std::int64_t sample(std::int64_t step, std::int64_t place) const;

 private:
  OrderOptions options_;
};

}  // namespace dstrain::data
