#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/config/batch_size.h"

namespace dstrain::config {

/// The section "elasticity" of a configuration. It asks for a global batch that many numbers of
/// ranks can share, each with whole micro batches of one of the given sizes.
struct Elasticity {
  /// Version 0.1 counts ranks. Version 0.2 counts nodes of num_gpus_per_node GPUs, and finds
  /// another batch for a count that its own batch does not fit.
  enum class Version { v0_1, v0_2 };
  Version version = Version::v0_2;
  std::int64_t max_train_batch_size = 0;
  std::vector<std::int64_t> micro_batch_sizes;
  std::int64_t min_gpus = 1;
  std::int64_t max_gpus = 10'000;
  bool prefer_larger_batch = true;  ///< breaks ties between batches that fit equally many counts
  std::int64_t num_gpus_per_node = 1;
  std::int64_t model_parallel_size = 1;  ///< GPUs that share one rank of data parallelism
};

struct ElasticBatch {
  std::int64_t train_batch_size = 0;
  std::vector<std::int64_t> valid_counts;  ///< of data-parallel ranks, ascending; never empty
};

/// Returns the batch that fits the most counts of ranks. Candidates are the micro batches and their
/// least common multiple, each times the largest highly composite number that keeps it within the
/// maximum. A failure names the key, the value and the remedy.
Result<ElasticBatch> elastic_batch(const Elasticity& elasticity);

/// Returns the batch for this many data-parallel ranks. Version 0.2 has a separate batch for a
/// count that does not fit, which other counts may not fit.
Result<ElasticBatch> elastic_batch(const Elasticity& elasticity, std::int64_t ranks);

/// Returns how the ranks share that batch, with the largest micro batch that fits. A failure names
/// the nearest valid counts.
Result<Batch> share_elastic_batch(const Elasticity& elasticity, std::int64_t ranks);

/// Compares with the section that a scheduler was given (`json`, from DEEPSPEED_ELASTICITY_CONFIG).
/// Returns the differences in the maximum batch, the micro batches and the version, with both
/// values; empty: none.
std::string differs_from_scheduler(const Elasticity& elasticity, std::string_view json);

}  // namespace dstrain::config
