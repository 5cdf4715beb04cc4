#include "runtime/config/given_batch.h"

namespace dstrain::config {
namespace {

GivenSize size_of(const std::optional<std::int64_t>& in_file, const Flag<std::int64_t>& flag) {
  if (in_file) return {in_file, "file"};
  if (flag.typed()) return {flag.value, "flag " + flag.typed_as};
  return {};
}

}  // namespace

GivenBatch given_batch(const TrainOptions& options, const DsConfig& config) {
  GivenBatch given{size_of(config.integer(train_batch_key), options.global_batch_size),
                   size_of(config.integer(micro_batch_key), options.per_device_train_batch_size),
                   size_of(config.integer(accumulation_key), options.gradient_accumulation_steps)};
  // For "auto" and without a configuration, the options' defaults apply unless a batch size is
  // given: a default never causes a conflict.
  const bool none = config.file().empty();
  const auto by_default = [&](std::string_view key) {
    return none || config.is_auto(key) || config.is_auto(train_batch_key);
  };
  if (!given.train.value && !given.micro.value && by_default(micro_batch_key)) {
    given.micro = {options.per_device_train_batch_size.value, "default"};
  }
  if (!given.train.value && !given.accumulation.value && by_default(accumulation_key)) {
    given.accumulation = {options.gradient_accumulation_steps.value, "default"};
  }
  return given;
}

}  // namespace dstrain::config
