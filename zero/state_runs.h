#pragma once
#include <cstdint>
#include <vector>

#include "zero/flat_layout.h"
#include "zero/offload.h"

namespace dstrain::zero {

/// A part of what a rank updates, whose optimizer states lie in one place.
struct StateRun {
  int segment = 0;
  std::int64_t offset = 0;  ///< first element within what the rank updates of the segment
  std::int64_t numel = 0;
  std::int64_t states =
      0;                ///< floats per element: the optimizer's, then the master, if there is one
  bool master = false;  ///< the parameters that units see are copies of an f32 master
  MemoryTier home = MemoryTier::device;
  bool gradients = false;  ///< a place for the summed gradients is beside the states
};

struct StateRunOptions {
  int stage = 0;
  std::int64_t optimizer_states = 2;  ///< floats per element
  Offload offload{};
};

/// What a rank updates, in order: every segment or its shards, in pieces where they come from a
/// disk. A master is kept of what units see rounded, or somewhere else than where it is updated.
std::vector<StateRun> state_runs(const FlatLayout& layout, const StateRunOptions& options);

/// Per segment: where its shard lies, and its whole when no rank has less.
std::vector<MemoryTier> parameter_homes(const FlatLayout& layout, const Offload& offload);
/// Per segment: where its summed gradients and optimizer states lie.
std::vector<MemoryTier> optimizer_homes(const FlatLayout& layout, const Offload& offload);

}  // namespace dstrain::zero
