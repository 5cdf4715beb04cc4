#include "runtime/engine/micro_batch.h"

#include <algorithm>

#include "runtime/base/label.h"

namespace dstrain::engine {

MicroBatch micro_batch(const data::SampleRows& rows, std::int64_t first_sample) {
  return {.tokens = rows.tokens,
          .labels = rows.labels,
          .first_sample = first_sample,
          .source = rows.source,
          .source_count = rows.source_count,
          .document_start = rows.document_start,
          .features = rows.features,
          .targets = rows.targets};
}

model::BatchShape batch_shape(std::int64_t sequences, const config::DataSettings& data) {
  return {sequences, data.block_size, data.source_length};
}

std::int64_t counted_labels(std::span<const MicroBatch> batches) {
  std::int64_t count = 0;
  for (const MicroBatch& batch : batches) {
    count += std::count_if(batch.labels.begin(), batch.labels.end(),
                           [](std::int32_t label) { return label != ignored_label; });
  }
  return count;
}

}  // namespace dstrain::engine
