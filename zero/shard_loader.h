#pragma once
#include "runtime/engine/parameter_store.h"
#include "zero/communication.h"
#include "zero/rank_shards.h"

namespace dstrain::zero {

/// Loads a rank's parameters and states from their sources. Each value is read in f32, and copied
/// or rounded to the dtype in which it is kept; padding becomes zero. Collective, segment by
/// segment.
class ShardLoader {
 public:
  /// All must outlive it.
  ShardLoader(RankShards& shards,
              const Communication& communication,
              const engine::StateSources& sources)
      : shards_(shards), communication_(communication), sources_(sources) {}

  /// Loads the elements of a segment that this rank updates or serves. Waits until they are loaded.
  void load(SegmentId segment);

 private:
  void load_sub_group(SubGroupId id, const RankShards::ParameterLease& parameters);
  void load_values(const SubGroup& sub_group,
                   const model::ParameterSource& source,
                   TensorView values,
                   StreamView stream);

  RankShards& shards_;
  const Communication& communication_;
  const engine::StateSources& sources_;
};

}  // namespace dstrain::zero
