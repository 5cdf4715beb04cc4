#include <fmt/format.h>

#include "runtime/config/batch_size.h"
#include "runtime/config/settings_builder.h"

namespace dstrain::config {
namespace {

constexpr std::string_view train_key = "train_batch_size";
constexpr std::string_view micro_key = "train_micro_batch_size_per_gpu";
constexpr std::string_view steps_key = "gradient_accumulation_steps";

/// A size of the batch: from the file, from a typed option, or not given.
struct Size {
  std::optional<std::int64_t> value;
  std::string origin = "derived";
};

Size size_of(const std::optional<std::int64_t>& in_file, const Flag<std::int64_t>& flag) {
  if (in_file) return {in_file, "file"};
  if (flag.typed()) return {flag.value, "flag " + flag.typed_as};
  return {};
}

}  // namespace

void resolve_batch(SettingsBuilder& builder) {
  const auto in_file = [&](std::string_view key) {
    return builder.config().integer(key);
  };
  builder.check_agreement(train_key, in_file(train_key), builder.options().global_batch_size);
  builder.check_agreement(micro_key, in_file(micro_key),
                          builder.options().per_device_train_batch_size);
  builder.check_agreement(steps_key, in_file(steps_key),
                          builder.options().gradient_accumulation_steps);
  for (const std::string_view key : {train_key, micro_key, steps_key}) {
    if (builder.config().is_faulty(key)) return;
  }
  Size train = size_of(in_file(train_key), builder.options().global_batch_size);
  Size micro = size_of(in_file(micro_key), builder.options().per_device_train_batch_size);
  Size steps = size_of(in_file(steps_key), builder.options().gradient_accumulation_steps);

  // "auto" and a run without configuration take the options' defaults, which yield to a batch size
  // that is given: defaults conflict with nothing.
  const bool none = builder.config().file().empty();
  const auto by_default = [&](std::string_view key) {
    return none || builder.config().is_auto(key) || builder.config().is_auto(train_key);
  };
  if (!train.value && !micro.value && by_default(micro_key)) {
    micro = {builder.options().per_device_train_batch_size.value, "default"};
  }
  if (!train.value && !steps.value && by_default(steps_key)) {
    steps = {builder.options().gradient_accumulation_steps.value, "default"};
  }

  const BatchGiven given{train.value, micro.value, steps.value};
  const bool known = builder.context().world_size > 0;
  const Result<Batch> solved = solve_batch(given, known ? builder.context().world_size : 1);
  const std::string anywhere = batch_problem_anywhere(given);
  if (known ? solved.ok() : anywhere.empty()) {
    const Batch batch = solved.ok() ? solved.value() : Batch{};
    builder.settings().train_batch_size = batch.train;
    builder.settings().micro_batch_size = batch.micro;
    builder.settings().accumulation_steps = batch.accumulation;
    if (!known) return;
    builder.decided(train_key, batch.train, train.origin);
    builder.decided(micro_key, batch.micro, micro.origin);
    builder.decided(steps_key, batch.accumulation, steps.origin);
    return;
  }
  std::string_view culprit = train_key;
  if (!builder.config().has(train_key))
    culprit = builder.config().has(micro_key) ? micro_key : steps_key;
  std::string message = known ? solved.error() : anywhere;
  if (!train.value && !micro.value) message += ", here or with --per_device_train_batch_size";
  builder.problems().add(builder.config().position(culprit), "", message);
}

}  // namespace dstrain::config
