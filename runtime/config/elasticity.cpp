#include "runtime/config/elasticity.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "runtime/base/units.h"

namespace dstrain::config {
namespace {

/// Each has more divisors than any smaller number, so most counts of ranks divide its multiples.
/// DeepSpeed's list ends here too; another end would give other batches.
constexpr std::array<std::int64_t, 38> highly_composite{
    1,      2,      4,      6,      12,     24,     36,     48,    60,    120,
    180,    240,    360,    720,    840,    1260,   1680,   2520,  5040,  7560,
    10080,  15120,  20160,  25200,  27720,  45360,  50400,  55440, 83160, 110880,
    166320, 221760, 277200, 332640, 498960, 554400, 665280, 720720};

/// Limits on the number of ranks or nodes.
struct Limits {
  std::int64_t batch_max;
  std::int64_t counts_min;
  std::int64_t counts_max;
};

/// Returns nothing if it exceeds every possible batch.
std::optional<std::int64_t> least_common_multiple(const std::vector<std::int64_t>& numbers,
                                                  std::int64_t most) {
  std::int64_t multiple = 1;
  for (const std::int64_t number : numbers) {
    const std::int64_t factor = number / std::gcd(multiple, number);
    if (__builtin_mul_overflow(multiple, factor, &multiple) || multiple > most) return std::nullopt;
  }
  return multiple;
}

std::vector<std::int64_t> candidates(const Elasticity& elasticity, std::int64_t batch_max) {
  std::vector<std::int64_t> bases = elasticity.micro_batch_sizes;
  if (const auto multiple = least_common_multiple(bases, batch_max)) bases.push_back(*multiple);
  for (std::int64_t& base : bases) {
    const auto next = std::ranges::upper_bound(highly_composite, batch_max / base);
    base *= *(next - 1);
  }
  return bases;
}

std::vector<std::int64_t> counts_of(const Elasticity& elasticity,
                                    std::int64_t batch,
                                    const Limits& limits) {
  std::vector<std::int64_t> counts;
  const std::int64_t most = std::min(limits.counts_max, batch);
  for (std::int64_t count = limits.counts_min; count <= most; ++count) {
    const bool fits = std::ranges::any_of(elasticity.micro_batch_sizes, [&](std::int64_t micro) {
      return batch % micro == 0 && batch / micro % count == 0;
    });
    if (fits) counts.push_back(count);
  }
  return counts;
}

ElasticBatch best_candidate(const Elasticity& elasticity, const Limits& limits) {
  ElasticBatch best;
  for (const std::int64_t batch : candidates(elasticity, limits.batch_max)) {
    std::vector<std::int64_t> counts = counts_of(elasticity, batch, limits);
    const bool preferred = elasticity.prefer_larger_batch ? batch > best.train_batch_size
                                                          : batch < best.train_batch_size;
    const bool better = counts.size() > best.valid_counts.size();
    const bool equal = !counts.empty() && counts.size() == best.valid_counts.size();
    if (better || (equal && preferred)) best = {batch, std::move(counts)};
  }
  return best;
}

std::int64_t ranks_per_node(const Elasticity& elasticity) {
  return elasticity.num_gpus_per_node / elasticity.model_parallel_size;
}

std::string problem_of(const Elasticity& e) {
  const auto bad = std::ranges::find_if(e.micro_batch_sizes, [](auto micro) { return micro < 1; });
  if (e.micro_batch_sizes.empty()) {
    return "elasticity.micro_batch_sizes: is empty; list the micro batches that fit into memory";
  }
  if (bad != e.micro_batch_sizes.end()) {
    return fmt::format("elasticity.micro_batch_sizes: {} has to be greater than 0; leave it out",
                       *bad);
  }
  if (e.min_gpus > e.max_gpus) {
    return fmt::format("elasticity.min_gpus: {} is more than elasticity.max_gpus {}; lower it",
                       e.min_gpus, e.max_gpus);
  }
  const bool by_node = e.version == Elasticity::Version::v0_2;
  if (e.model_parallel_size > 1 && !by_node) {
    return fmt::format("elasticity.model_parallel_size: {} needs elasticity.version 0.2",
                       e.model_parallel_size);
  }
  if (by_node && e.num_gpus_per_node % e.model_parallel_size != 0) {
    return fmt::format(
        "elasticity.num_gpus_per_node: {} is not a multiple of elasticity.model_parallel_size {}",
        e.num_gpus_per_node, e.model_parallel_size);
  }
  if (by_node && e.max_gpus < e.num_gpus_per_node) {
    return fmt::format(
        "elasticity.max_gpus: {} is less than a node has (elasticity.num_gpus_per_node {}); raise "
        "it",
        e.max_gpus, e.num_gpus_per_node);
  }
  const std::int64_t largest = std::ranges::max(e.micro_batch_sizes);
  const std::int64_t per_node = by_node ? ranks_per_node(e) : 1;
  if (largest > e.max_train_batch_size / per_node) {
    return fmt::format(
        "elasticity.micro_batch_sizes: {} on {} is more than "
        "elasticity.max_train_batch_size {}; raise that, or leave this one out",
        largest, counted(per_node, "rank"), e.max_train_batch_size);
  }
  return {};
}

/// Returns the nearest counts on both sides: "4", "4 and 6".
std::string nearest(const std::vector<std::int64_t>& counts, std::int64_t ranks) {
  const auto above = std::ranges::upper_bound(counts, ranks);
  std::vector<std::int64_t> near;
  if (above != counts.begin()) near.push_back(*(above - 1));
  if (above != counts.end()) near.push_back(*above);
  return fmt::format("{}", fmt::join(near, " and "));
}

/// For version 0.2: as many micro batches as fit into the maximum, of the size that fills it best
/// (or least, if smaller batches are preferred).
std::int64_t batch_for_these_ranks(const Elasticity& elasticity, std::int64_t ranks) {
  std::optional<std::int64_t> best;
  for (const std::int64_t micro : elasticity.micro_batch_sizes) {
    if (micro > elasticity.max_train_batch_size / ranks) continue;
    const std::int64_t together = micro * ranks;
    const std::int64_t batch = elasticity.max_train_batch_size / together * together;
    const bool preferred = elasticity.prefer_larger_batch ? batch > best : batch < best;
    if (!best || preferred) best = batch;
  }
  return best.value_or(0);
}

}  // namespace

Result<ElasticBatch> elastic_batch(const Elasticity& elasticity) {
  const std::string problem = problem_of(elasticity);
  if (!problem.empty()) return Failure{problem};
  Limits limits{elasticity.max_train_batch_size, elasticity.min_gpus, elasticity.max_gpus};
  const bool by_node = elasticity.version == Elasticity::Version::v0_2;
  const std::int64_t per_node = by_node ? ranks_per_node(elasticity) : 1;
  if (by_node) {
    limits = {elasticity.max_train_batch_size / per_node,
              std::max<std::int64_t>(1, elasticity.min_gpus / elasticity.num_gpus_per_node),
              elasticity.max_gpus / elasticity.num_gpus_per_node};
  }
  ElasticBatch best = best_candidate(elasticity, limits);
  if (best.valid_counts.empty()) {
    return Failure{
        fmt::format("elasticity.min_gpus: no batch up to elasticity.max_train_batch_size {} can be "
                    "shared by {} to {} GPUs; raise that, or lower this",
                    elasticity.max_train_batch_size, elasticity.min_gpus, elasticity.max_gpus)};
  }
  best.train_batch_size *= per_node;
  for (std::int64_t& count : best.valid_counts) count *= per_node;
  return best;
}

Result<ElasticBatch> elastic_batch(const Elasticity& elasticity, std::int64_t ranks) {
  Result<ElasticBatch> best = elastic_batch(elasticity);
  const bool by_node = elasticity.version == Elasticity::Version::v0_2;
  if (!by_node || !problem_of(elasticity).empty()) return best;
  if (best.ok() && std::ranges::binary_search(best.value().valid_counts, ranks)) return best;
  const std::int64_t batch = batch_for_these_ranks(elasticity, ranks);
  if (batch > 0) return ElasticBatch{batch, {ranks}};
  return Failure{
      fmt::format("elasticity.max_train_batch_size: {} is less than {} ranks do with the smallest "
                  "of elasticity.micro_batch_sizes; raise it, or take fewer ranks",
                  elasticity.max_train_batch_size, ranks)};
}

Result<Batch> share_elastic_batch(const Elasticity& elasticity, std::int64_t ranks) {
  Result<ElasticBatch> found = elastic_batch(elasticity, ranks);
  if (!found.ok()) return Failure{found.error()};
  const ElasticBatch& batch = found.value();
  if (!std::ranges::binary_search(batch.valid_counts, ranks)) {
    return Failure{fmt::format(
        "elasticity: {} cannot share its batch of {}; the nearest that can: {}",
        counted(ranks, "rank"), batch.train_batch_size, nearest(batch.valid_counts, ranks))};
  }
  const std::int64_t each = batch.train_batch_size / ranks;
  std::int64_t micro = 0;
  for (const std::int64_t size : elasticity.micro_batch_sizes) {
    if (each % size == 0) micro = std::max(micro, size);
  }
  return Batch{batch.train_batch_size, micro, each / micro};
}

std::string differs_from_scheduler(const Elasticity& elasticity, std::string_view json) {
  constexpr const char* variable = "DEEPSPEED_ELASTICITY_CONFIG";
  using Json = nlohmann::json;
  const Json scheduler = Json::parse(json, nullptr, false);
  if (!scheduler.is_object()) {
    return fmt::format("{} must be a JSON object; set it to the section, or unset it", variable);
  }
  const bool by_node = elasticity.version == Elasticity::Version::v0_2;
  const std::array<std::pair<const char*, Json>, 3> own{
      {{"max_train_batch_size", elasticity.max_train_batch_size},
       {"micro_batch_sizes", elasticity.micro_batch_sizes},
       {"version", by_node ? 0.2 : 0.1}}};
  for (const auto& [key, value] : own) {
    const bool defaulted = std::string_view(key) == "version";
    const Json theirs = scheduler.value(key, defaulted ? Json(0.2) : Json());
    if (theirs == value) continue;
    return fmt::format("{} is {} here, and the scheduler was told {} ({}); make them the same", key,
                       value.dump(), theirs.dump(), variable);
  }
  return {};
}

}  // namespace dstrain::config
