#include "runtime/config/read_elasticity.h"

#include <array>
#include <cstdlib>

#include <fmt/format.h>

#include "runtime/config/given_batch.h"

namespace dstrain::config {
namespace {

constexpr std::string_view batch_max_key = "elasticity.max_train_batch_size";
constexpr std::string_view micro_sizes_key = "elasticity.micro_batch_sizes";
constexpr std::string_view version_key = "elasticity.version";

/// Refuses other settings that elasticity decides, unless it says to ignore them.
void check_elastic_alone(const TrainOptions& options, const DsConfig& config, Problems& problems) {
  constexpr std::string_view ignores = "elasticity.ignore_non_elastic_batch_info";
  const bool ignored = config.boolean(ignores).value_or(false);
  const GivenBatch given = given_batch(options, config);
  const std::array<std::pair<std::string_view, const GivenSize&>, 3> sizes{
      {{train_batch_key, given.train},
       {micro_batch_key, given.micro},
       {accumulation_key, given.accumulation}}};
  for (const auto& [key, size] : sizes) {
    if (!size.value || size.origin == "default") continue;
    const std::string what = size.origin == "file" ? "" : fmt::format(" ({})", size.origin);
    if (ignored) {
      problems.warn(config.position(key), key,
                    fmt::format("{}{} has no effect: elasticity decides", *size.value, what));
    } else {
      problems.add(config.position(key), key,
                   fmt::format("{}{}: elasticity decides it; leave it out, or set {} to true",
                               *size.value, what, ignores));
    }
  }
}

/// Reads the micro batches. Adds invalid ones to `problems`.
std::vector<std::int64_t> read_micro_batches(const DsConfig& config, Problems& problems) {
  std::vector<std::int64_t> sizes;
  const JsonValue* const list = config.find(micro_sizes_key);
  if (list == nullptr) {
    if (!config.is_faulty(micro_sizes_key)) {
      problems.add(config.position("elasticity"), micro_sizes_key,
                   "is missing; list the micro batches that fit into memory, as [2, 4, 6]");
    }
    return sizes;
  }
  for (const JsonValue& element : list->elements) {
    if (element.integer && *element.integer > 0) {
      sizes.push_back(*element.integer);
    } else {
      problems.add(element.position, micro_sizes_key,
                   fmt::format("micro batches must be whole numbers of at least 1, got {}",
                               to_text(element)));
    }
  }
  return sizes;
}

void read_version(const DsConfig& config, Elasticity& elasticity, Problems& problems) {
  const double version = config.number(version_key).value_or(0.2);
  if (version == 0.1) elasticity.version = Elasticity::Version::v0_1;
  if (version == 0.1 || version == 0.2) return;
  problems.add(config.position(version_key), version_key,
               fmt::format("must be 0.1 or 0.2, got {}", version));
}

void compare_with_scheduler(const DsConfig& config,
                            const Elasticity& elasticity,
                            Problems& problems) {
  const char* const told = std::getenv("DEEPSPEED_ELASTICITY_CONFIG");
  if (told == nullptr) return;
  const std::string difference = differs_from_scheduler(elasticity, told);
  if (!difference.empty()) problems.add(config.position("elasticity"), "elasticity", difference);
}

}  // namespace

bool elasticity_enabled(const DsConfig& config) {
  return config.boolean("elasticity.enabled").value_or(false);
}

std::optional<Elasticity> read_elasticity(const TrainOptions& options,
                                          const DsConfig& config,
                                          Problems& problems) {
  check_elastic_alone(options, config, problems);
  const std::size_t before = problems.lines().size();
  const auto number = [&](std::string_view name, std::int64_t fallback) {
    return config.integer(fmt::format("elasticity.{}", name)).value_or(fallback);
  };
  Elasticity elasticity;
  elasticity.max_train_batch_size = number("max_train_batch_size", 0);
  if (!config.has(batch_max_key) && !config.is_faulty(batch_max_key)) {
    problems.add(config.position("elasticity"), batch_max_key,
                 "is missing; set the largest global batch");
  }
  elasticity.micro_batch_sizes = read_micro_batches(config, problems);
  read_version(config, elasticity, problems);
  elasticity.min_gpus = number("min_gpus", elasticity.min_gpus);
  elasticity.max_gpus = number("max_gpus", elasticity.max_gpus);
  elasticity.prefer_larger_batch = config.boolean("elasticity.prefer_larger_batch").value_or(true);
  elasticity.num_gpus_per_node = number("num_gpus_per_node", elasticity.num_gpus_per_node);
  elasticity.model_parallel_size = number("model_parallel_size", elasticity.model_parallel_size);
  for (const std::string_view key : {batch_max_key, micro_sizes_key, version_key}) {
    if (config.is_faulty(key)) return std::nullopt;
  }
  if (problems.lines().size() != before) return std::nullopt;
  compare_with_scheduler(config, elasticity, problems);
  return elasticity;
}

}  // namespace dstrain::config
