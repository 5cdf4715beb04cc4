#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/config/batch_size.h"

namespace dstrain::config {

/// The section "elasticity" of a configuration: a global batch is to be found that many numbers of
/// ranks can share, each with whole micro batches of one of the given sizes.
struct Elasticity {
  /// 0.1 counts ranks; 0.2 counts nodes of num_gpus_per_node GPUs each, and finds another batch for
  /// a count that its own does not fit.
  enum class Version { v0_1, v0_2 };
  Version version = Version::v0_2;
  std::int64_t max_train_batch_size = 0;
  std::vector<std::int64_t> micro_batch_sizes;
  std::int64_t min_gpus = 1;
  std::int64_t max_gpus = 10'000;
  bool prefer_larger_batch = true;  ///< of batches that equally many counts fit
  std::int64_t num_gpus_per_node = 1;
  std::int64_t model_parallel_size = 1;  ///< GPUs that share one rank of data parallelism
};

struct ElasticBatch {
  std::int64_t train_batch_size = 0;
  std::vector<std::int64_t> valid_counts;  ///< of data-parallel ranks, ascending; never empty
};

/// The batch that the most counts of ranks fit. Candidates are the micro batches and their least
/// common multiple, each times the largest highly composite number that keeps it at or below the
/// maximum. A failure names the key, the value and the remedy.
Result<ElasticBatch> elastic_batch(const Elasticity& elasticity);

/// The same for so many data-parallel ranks: version 0.2 has a batch of its own for a count that
/// does not fit, which no other count may share.
Result<ElasticBatch> elastic_batch(const Elasticity& elasticity, std::int64_t ranks);

/// How the ranks do that batch: with the largest micro batch that fits. A failure names the valid
/// counts that are nearest.
Result<Batch> share_elastic_batch(const Elasticity& elasticity, std::int64_t ranks);

/// Compares with what a scheduler was told: `json` is the section as DEEPSPEED_ELASTICITY_CONFIG
/// has it. What differs, with both values; empty: nothing of the largest batch, the micro batches
/// and the version.
std::string differs_from_scheduler(const Elasticity& elasticity, std::string_view json);

}  // namespace dstrain::config
