#include "runtime/config/elastic_job.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/config/elasticity.h"
#include "runtime/config/given_batch.h"
#include "runtime/config/read_elasticity.h"

namespace dstrain::config {
namespace {

void check_shared_checkpoints(const TrainOptions& options, const DsConfig& config) {
  constexpr std::string_view key = "checkpoint.use_node_local_storage";
  if (!options.save_on_each_node.value && !config.boolean(key).value_or(false)) return;
  fail(ErrorCode::config,
       "{}: a host that an elastic job loses takes its shards of each checkpoint with it; keep "
       "checkpoints in a directory that all hosts share, or leave the job's elasticity out",
       key);
}

KeptBatch kept_batch(const BatchGiven& given, std::int64_t ranks) {
  const std::string problem = batch_problem_anywhere(given);
  if (!problem.empty()) fail(ErrorCode::config, "{}", problem);
  const std::int64_t accumulation = given.accumulation.value_or(1);
  if (given.train) {
    const std::int64_t inferred = std::max<std::int64_t>(1, *given.train / ranks / accumulation);
    return {*given.train, given.micro.value_or(inferred), given.micro.has_value()};
  }
  const Result<Batch> whole = solve_batch(given, ranks);
  if (!whole.ok()) fail(ErrorCode::config, "{}", whole.error());
  return {whole.value().train, whole.value().micro, true};
}

}  // namespace

ElasticJob elastic_job(const TrainOptions& options, std::int64_t ranks) {
  const DsConfig config = DsConfig::of(options);
  config.problems().throw_if_any();
  check_shared_checkpoints(options, config);
  if (elasticity_enabled(config)) {
    Problems problems = config.problems();
    const std::optional<Elasticity> elasticity = read_elasticity(options, config, problems);
    problems.throw_if_any();
    Result<ElasticBatch> batch = elastic_batch(*elasticity);
    if (!batch.ok()) fail(ErrorCode::config, "{}: {}", config.file(), batch.error());
    return {std::nullopt, std::move(batch.value().valid_counts)};
  }
  return {kept_batch(given_batch(options, config).values(), ranks), {}};
}

std::int64_t ElasticJob::most_ranks(std::int64_t available) const {
  if (!kept) {
    const auto above = std::ranges::upper_bound(valid_counts, available);
    return above == valid_counts.begin() ? 0 : *(above - 1);
  }
  while (available > 0 && !share_kept_batch(*kept, available)) --available;
  return available;
}

}  // namespace dstrain::config
