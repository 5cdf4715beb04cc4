#pragma once
#include <cstdint>

#include "zero/flat_layout.h"
#include "zero/sharded_store.h"

namespace dstrain::zero {

/// The work of one rank in one optimizer step, as far as the choice of a plan changes it.
struct StepWork {
  double flops = 0;          ///< of the units' forward and backward
  Bytes sent = 0;            ///< to other ranks, by collectives
  Bytes updated = 0;         ///< read and written by AdamW
  Bytes copied = 0;          ///< between the device and the host's memory
  Bytes swapped = 0;         ///< read from and written to NVMe
  Bytes swapped_beside = 0;  ///< of these, during backward
};

struct StepWorkInput {
  ShardedStore::Options store;
  double flops = 0;              ///< Model::flops() of a rank and micro step
  std::int64_t micro_steps = 1;  ///< of a step
  bool checkpointing = false;    ///< a second forward: a third more FLOP
};

/// Counts what StagePolicy and ShardedStore compute and move.
StepWork step_work(const FlatLayout& layout, const StepWorkInput& input);

/// Predicted seconds of a step on the machine whose rates are in step_cost.cpp. Only early updates
/// from a disk are counted as overlapping: on that machine communication is work of the cores, and
/// overlap gained nothing. Use it only to compare the choices of one run.
double step_cost(const StepWork& work);

}  // namespace dstrain::zero
