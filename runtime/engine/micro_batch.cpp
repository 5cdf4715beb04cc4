#include "runtime/engine/micro_batch.h"

#include <algorithm>

#include "runtime/base/label.h"

namespace dstrain::engine {

std::int64_t counted_labels(std::span<const MicroBatch> batches) {
  std::int64_t count = 0;
  for (const MicroBatch& batch : batches) {
    count += std::count_if(batch.labels.begin(), batch.labels.end(),
                           [](std::int32_t label) { return label != ignored_label; });
  }
  return count;
}

}  // namespace dstrain::engine
