#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/config/kept_batch.h"
#include "runtime/config/train_options.h"

namespace dstrain::config {

/// The numbers of ranks that can continue an elastic training with the same global batch.
struct ElasticJob {
  std::optional<KeptBatch> kept;           ///< nothing: the section "elasticity" decides
  std::vector<std::int64_t> valid_counts;  ///< from that section, ascending

  /// Returns the largest number of ranks, at most `available`, that can continue; 0: none.
  [[nodiscard]] std::int64_t most_ranks(std::int64_t available) const;
};

/// Describes the training of `options`. `ranks`: those of the whole job, from which the global
/// batch follows if only the batch of a rank is given. Throws Error{config} if the batch cannot be
/// determined, or if a lost host would take the only copy of its shards with it.
ElasticJob elastic_job(const TrainOptions& options, std::int64_t ranks);

}  // namespace dstrain::config
