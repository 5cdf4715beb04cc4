#include "runtime/data/sample_order.h"

#include "runtime/base/error.h"
#include "runtime/data/permutation.h"

namespace dstrain::data {

SampleOrder::SampleOrder(const OrderOptions& options) : options_(options) {
  DSTRAIN_CHECK(options.global_batch > 0, "global batch {}", options.global_batch);
  if (options.samples < options.global_batch) {
    fail(ErrorCode::input,
         "the training data holds {} samples, fewer than the {} of one step (train_batch_size); "
         "give more text, a smaller batch or a smaller block_size",
         options.samples, options.global_batch);
  }
}

std::int64_t SampleOrder::steps_per_epoch() const {
  return options_.samples / options_.global_batch;
}

std::int64_t SampleOrder::sample(std::int64_t step, std::int64_t place) const {
  DSTRAIN_CHECK(step >= 0 && place >= 0 && place < options_.global_batch, "step {}, place {}", step,
                place);
  const std::int64_t epoch = epoch_of(step);
  const std::int64_t position = step % steps_per_epoch() * options_.global_batch + place;
  if (!options_.shuffle) return position;
  return Permutation(options_.samples, options_.seed, static_cast<std::uint32_t>(epoch))(position);
}

}  // namespace dstrain::data
