#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/engine/checkpointer.h"
#include "runtime/rank/rank_control.h"

namespace dstrain::engine {

/// Requests from outside to save a checkpoint. Every rank holds one and makes the same calls. A
/// request arrives at any rank, numbered by its sender, and the trainer's vote tells all ranks. The
/// rank that received it answers.
class SaveRequests {
 public:
  /// `ranks`: those that vote. `control` and `checkpointer` must outlive it.
  SaveRequests(RankControl& control,
               const Checkpointer& checkpointer,
               const comm::ControlGroup& ranks)
      : control_(control),
        checkpointer_(checkpointer),
        granted_(static_cast<std::size_t>(ranks.size())),
        own_granted_(granted_.at(static_cast<std::size_t>(ranks.rank()))) {}
  SaveRequests(const SaveRequests&) = delete;
  SaveRequests& operator=(const SaveRequests&) = delete;
  SaveRequests(SaveRequests&&) = delete;
  SaveRequests& operator=(SaveRequests&&) = delete;
  ~SaveRequests() = default;

  /// This rank's vote: the number of the newest request that it has received.
  [[nodiscard]] std::uint32_t vote() { return control_.newest_save_request(); }
  /// Whether to save now, after `step`, given the votes of all ranks. A request waits for the first
  /// step, and for the end of an earlier save.
  [[nodiscard]] bool due(std::span<const std::uint32_t> votes, std::int64_t step);
  /// Answers the last request if its outcome is known and was not answered yet.
  void answer();

 private:
  RankControl& control_;
  const Checkpointer& checkpointer_;
  std::vector<std::uint32_t> granted_;  ///< by rank: the last request that was granted
  const std::uint32_t& own_granted_;    ///< of this rank
  std::int64_t step_ = 0;               ///< whose checkpoint answers the last request
};

}  // namespace dstrain::engine
