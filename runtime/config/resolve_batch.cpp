#include <array>

#include <fmt/format.h>

#include "runtime/base/units.h"
#include "runtime/config/batch_size.h"
#include "runtime/config/given_batch.h"
#include "runtime/config/read_elasticity.h"
#include "runtime/config/settings_builder.h"

namespace dstrain::config {
namespace {

void check_agreement(SettingsBuilder& builder) {
  const DsConfig& config = builder.config();
  const TrainOptions& options = builder.options();
  builder.check_agreement(train_batch_key, config.integer(train_batch_key),
                          options.global_batch_size);
  builder.check_agreement(micro_batch_key, config.integer(micro_batch_key),
                          options.per_device_train_batch_size);
  builder.check_agreement(accumulation_key, config.integer(accumulation_key),
                          options.gradient_accumulation_steps);
}

void decide(SettingsBuilder& builder, const Batch& batch, const BatchOrigins& origins = {}) {
  builder.settings().train_batch_size = batch.train;
  builder.settings().micro_batch_size = batch.micro;
  builder.settings().accumulation_steps = batch.accumulation;
  builder.settings().batch_origins = origins;
  if (builder.context().world_size == 0) return;
  builder.decided(train_batch_key, batch.train, origins.train);
  builder.decided(micro_batch_key, batch.micro, origins.micro);
  builder.decided(accumulation_key, batch.accumulation, origins.accumulation);
}

/// If the batch is valid only for this number of ranks, it would change when a host is lost.
void warn_of_other_batch(SettingsBuilder& builder, const Elasticity& elasticity) {
  const std::int64_t ranks = builder.context().world_size;
  const Result<ElasticBatch> shared = elastic_batch(elasticity);
  const std::int64_t own = elastic_batch(elasticity, ranks).value().train_batch_size;
  if (shared.ok() && shared.value().train_batch_size == own) return;
  const std::string why = shared.ok()
                              ? fmt::format("{} cannot share its batch of {}",
                                            counted(ranks, "rank"), shared.value().train_batch_size)
                              : shared.error();
  builder.add_warning(
      "elasticity",
      fmt::format("{}; they take a batch of {}, with which no other number of ranks could resume",
                  why, own));
}

void resolve_elasticity(SettingsBuilder& builder) {
  constexpr std::string_view parallel = "elasticity.model_parallel_size";
  const std::optional<Elasticity> elasticity =
      read_elasticity(builder.options(), builder.config(), builder.problems());
  if (!elasticity) return;
  if (elasticity->model_parallel_size > 1) {
    builder.add_problem(parallel, fmt::format("{}: tensor parallelism is not implemented; leave it "
                                              "out or set it to 1",
                                              elasticity->model_parallel_size));
    return;
  }
  if (builder.context().world_size == 0) {
    const Result<ElasticBatch> batch = elastic_batch(*elasticity);
    if (batch.ok()) return decide(builder, {batch.value().train_batch_size, 0, 0});
    return builder.problems().add(builder.config().position("elasticity"), "", batch.error());
  }
  const Result<Batch> batch = share_elastic_batch(*elasticity, builder.context().world_size);
  if (!batch.ok()) {
    return builder.problems().add(builder.config().position("elasticity"), "", batch.error());
  }
  warn_of_other_batch(builder, *elasticity);
  decide(builder, batch.value());
  builder.settings().batch_origins = {"elasticity", "elasticity", "elasticity"};
}

/// In an elastic job, more accumulation steps make up for lost ranks.
void resolve_kept(SettingsBuilder& builder, const KeptBatch& kept) {
  const std::int64_t ranks = builder.context().world_size;
  const std::optional<Batch> batch = share_kept_batch(kept, ranks);
  if (!batch) {
    builder.problems().add(builder.config().position(train_batch_key), train_batch_key,
                           fmt::format("{}: {} ranks of an elastic job cannot share it in micro "
                                       "batches of {}",
                                       kept.train, ranks, kept.micro));
    return;
  }
  const GivenBatch given = given_batch(builder.options(), builder.config());
  const auto steps = given.accumulation.value;
  if (steps && given.accumulation.origin != "default" && *steps != batch->accumulation) {
    builder.add_warning(
        accumulation_key,
        fmt::format("{} for {}, not {}: an elastic job keeps its batch of "
                    "{}",
                    batch->accumulation, counted(ranks, "rank"), *steps, kept.train));
  }
  decide(builder, *batch);
}

/// Describes where the sizes come from that are not in the file.
std::string describe_origins(const GivenBatch& given, std::int64_t ranks) {
  const std::array<std::pair<std::string_view, const GivenSize&>, 3> sizes{
      {{train_batch_key, given.train},
       {micro_batch_key, given.micro},
       {accumulation_key, given.accumulation}}};
  std::string text;
  for (const auto& [key, size] : sizes) {
    if (!size.value) {
      text += fmt::format("; {} follows from the others, rounded down", key);
    } else if (size.origin == "default") {
      text += fmt::format("; {} {} is the default", key, *size.value);
    } else if (size.origin != "file") {
      text += fmt::format("; {} {} is {}", key, *size.value,
                          size.origin.substr(size.origin.find(' ') + 1));
    }
  }
  return text + fmt::format("; the launch has {}", counted(ranks, "rank"));
}

/// Returns the user's name of a size: the key in the file, or the typed option.
std::string_view name_of(const GivenSize& size, std::string_view key) {
  const std::string_view origin = size.origin;
  return origin.starts_with("flag ") ? origin.substr(origin.find(' ') + 1) : key;
}

/// Returns a micro batch, at most the given one, that makes the train batch possible.
std::optional<std::int64_t> smaller_micro(const GivenBatch& given, std::int64_t ranks) {
  const std::int64_t steps = given.accumulation.value.value_or(1) * ranks;
  if (!given.micro.value || *given.train.value % steps != 0) return std::nullopt;
  const std::int64_t each = *given.train.value / steps;
  if (given.accumulation.value) return each;
  return largest_divisor(each, *given.micro.value);
}

/// Suggests sizes that would work.
std::string batch_advice(const GivenBatch& given, std::int64_t ranks) {
  const std::int64_t each =
      given.micro.value.value_or(1) * given.accumulation.value.value_or(1) * ranks;
  const std::int64_t fewer = *given.train.value / each * each;
  const bool all_given = given.micro.value && given.accumulation.value;
  const std::string train =
      all_given ? fmt::format("{}", each)
                : fmt::format("a multiple of {}, such as {}{}", each,
                              fewer > 0 ? fmt::format("{} or ", fewer) : "", fewer + each);
  std::string advice = fmt::format(": set {} to {}", name_of(given.train, train_batch_key), train);
  if (const std::optional<std::int64_t> micro = smaller_micro(given, ranks)) {
    advice += fmt::format(", or {} to {}", name_of(given.micro, micro_batch_key), *micro);
  }
  if (all_given && *given.train.value % (*given.micro.value * ranks) == 0) {
    advice += fmt::format(", or leave {} out", name_of(given.accumulation, accumulation_key));
  }
  return advice;
}

}  // namespace

void resolve_batch(SettingsBuilder& builder) {
  if (builder.options().inference) return decide(builder, {builder.context().world_size, 1, 1});
  check_agreement(builder);
  for (const std::string_view key : {train_batch_key, micro_batch_key, accumulation_key}) {
    if (builder.config().is_faulty(key)) return;
  }
  if (elasticity_enabled(builder.config())) return resolve_elasticity(builder);
  if (builder.context().kept_batch) return resolve_kept(builder, *builder.context().kept_batch);

  const GivenBatch given = given_batch(builder.options(), builder.config());
  const bool known = builder.context().world_size > 0;
  const Result<Batch> solved =
      solve_batch(given.values(), known ? builder.context().world_size : 1);
  const std::string anywhere = batch_problem_anywhere(given.values());
  if (known ? solved.ok() : anywhere.empty()) {
    return decide(builder, solved.ok() ? solved.value() : Batch{},
                  {given.train.origin, given.micro.origin, given.accumulation.origin});
  }
  std::string_view culprit = train_batch_key;
  if (!builder.config().has(train_batch_key)) {
    culprit = builder.config().has(micro_batch_key) ? micro_batch_key : accumulation_key;
  }
  std::string message = known ? solved.error() : anywhere;
  if (known && is_batch_mismatch(given.values(), builder.context().world_size)) {
    message += describe_origins(given, builder.context().world_size) +
               batch_advice(given, builder.context().world_size);
  }
  if (!given.train.value && !given.micro.value) {
    message += ", here or with --per_device_train_batch_size";
  }
  builder.problems().add(builder.config().position(culprit), "", message);
}

}  // namespace dstrain::config
