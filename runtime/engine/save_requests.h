#pragma once
#include <cstdint>

#include "runtime/base/rank_control.h"
#include "runtime/engine/checkpointer.h"

namespace dstrain::engine {

/// Checkpoints that someone outside asks a run for. Every rank holds one and makes the same calls;
/// requests arrive at some rank, and the trainer's vote makes them known to all. What becomes of
/// one is told by rank 0.
class SaveRequests {
 public:
  /// Both must outlive it. `rank`: of this process.
  SaveRequests(RankControl& control, const Checkpointer& checkpointer, int rank)
      : control_(control), checkpointer_(checkpointer), rank_(rank) {}

  /// This rank's part of the vote: the number of the newest request that it has heard of.
  [[nodiscard]] std::uint32_t vote() { return control_.newest_save_request(); }
  /// Between steps, `newest` of all ranks known: whether to save now, after `step`. A request waits
  /// for the first step, and for the end of an earlier save.
  [[nodiscard]] bool due(std::uint32_t newest, std::int64_t step);
  /// Tells what has become of the last request, if that is known by now and was not told.
  void answer();

 private:
  RankControl& control_;
  const Checkpointer& checkpointer_;
  int rank_;
  std::uint32_t taken_ = 0;     ///< requests up to this one are granted
  std::uint32_t answered_ = 0;  ///< and up to this one answered
  std::int64_t step_ = 0;       ///< whose checkpoint grants the last
};

}  // namespace dstrain::engine
