#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/engine/checkpointer.h"
#include "runtime/rank/rank_control.h"

namespace dstrain::engine {

/// Checkpoints that someone outside asks a run for. Every rank holds one and makes the same calls;
/// requests arrive at any rank, numbered by whoever talks to it, and the trainer's vote makes them
/// known to all. The rank that heard of one tells what becomes of it.
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

  /// This rank's part of the vote: the number of the newest request that it has heard of.
  [[nodiscard]] std::uint32_t vote() { return control_.newest_save_request(); }
  /// Between steps, the votes of all ranks known: whether to save now, after `step`. A request
  /// waits for the first step, and for the end of an earlier save.
  [[nodiscard]] bool due(std::span<const std::uint32_t> votes, std::int64_t step);
  /// Tells what has become of the last request, if that is known by now and was not told.
  void answer();

 private:
  RankControl& control_;
  const Checkpointer& checkpointer_;
  std::vector<std::uint32_t> granted_;  ///< by rank: requests up to this one
  const std::uint32_t& own_granted_;    ///< of this rank
  std::uint32_t answered_ = 0;          ///< of this rank
  std::int64_t step_ = 0;               ///< whose checkpoint grants the last
};

}  // namespace dstrain::engine
