#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/config/kept_batch.h"
#include "runtime/config/train_options.h"

namespace dstrain::config {

/// Which numbers of ranks can go on with an elastic training, its global batch unchanged.
struct ElasticJob {
  std::optional<KeptBatch> kept;           ///< none: the section "elasticity" decides
  std::vector<std::int64_t> valid_counts;  ///< by that section, ascending

  /// The most ranks of so many that can; 0: no number of them.
  [[nodiscard]] std::int64_t most_ranks(std::int64_t available) const;
};

/// Of the training that `options` describe. `ranks`: of the whole job, which its global batch is
/// that of where only a rank's is given. Throws Error{config} when the batch cannot be told, or
/// when a lost host would take the only copy of its shards with it.
ElasticJob elastic_job(const TrainOptions& options, std::int64_t ranks);

}  // namespace dstrain::config
