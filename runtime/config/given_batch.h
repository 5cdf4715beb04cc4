#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/config/batch_size.h"
#include "runtime/config/ds_config.h"
#include "runtime/config/train_options.h"

namespace dstrain::config {

inline constexpr std::string_view train_batch_key = "train_batch_size";
inline constexpr std::string_view micro_batch_key = "train_micro_batch_size_per_gpu";
inline constexpr std::string_view accumulation_key = "gradient_accumulation_steps";

/// A batch size from the file, a typed option or an option's default; or not given.
struct GivenSize {
  std::optional<std::int64_t> value;
  std::string origin = "derived";
};

/// The batch sizes that the user gave. Includes an option's default only if it cannot cause a
/// conflict.
struct GivenBatch {
  GivenSize train;
  GivenSize micro;
  GivenSize accumulation;
  [[nodiscard]] BatchGiven values() const { return {train.value, micro.value, accumulation.value}; }
};

GivenBatch given_batch(const TrainOptions& options, const DsConfig& config);

}  // namespace dstrain::config
