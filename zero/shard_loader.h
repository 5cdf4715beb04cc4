#pragma once
#include "runtime/engine/parameter_store.h"
#include "zero/communication.h"
#include "zero/rank_shards.h"

namespace dstrain::zero {

/// Sets a rank's parameters and states from where they are read, each value in f32, which is copied
/// or rounded to where it belongs; padding becomes zero. Collective, segment by segment.
class ShardLoader {
 public:
  /// All must outlive it.
  ShardLoader(RankShards& shards,
              const Communication& communication,
              const engine::StateSources& sources)
      : shards_(shards), communication_(communication), sources_(sources) {}

  /// What this rank updates of a segment, or serves. Waits until it is there.
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
