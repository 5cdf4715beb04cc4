#pragma once
#include <cstdint>
#include <span>

#include "runtime/config/train_settings.h"
#include "runtime/data/sample_rows.h"
#include "runtime/model/unit.h"

namespace dstrain::engine {

/// The samples that one rank trains on or evaluates at once.
struct MicroBatch {
  std::span<const std::int32_t> tokens;  ///< (B, T)
  std::span<const std::int32_t> labels;  ///< (B, T); -100 does not count; empty: there is no loss
  std::int64_t first_sample = 0;  ///< index of sequence 0 within the global batch of the step
  std::span<const std::int32_t> source{};          ///< (B, S), of an encoder-decoder
  std::span<const std::int32_t> source_count{};    ///< (B): see model::UnitCall, also for the next
  std::span<const std::int32_t> document_start{};  ///< (B, T), or empty
  std::span<const float> features{};               ///< (B, T, F), or empty
  std::span<const float> targets{};                ///< (B, T, K), or empty
};

MicroBatch micro_batch(const data::SampleRows& rows, std::int64_t first_sample);

/// The shape of a batch of `sequences` sequences of a run.
model::BatchShape batch_shape(std::int64_t sequences, const config::DataSettings& data);

/// The number of labels that count.
std::int64_t counted_labels(std::span<const MicroBatch> batches);

}  // namespace dstrain::engine
