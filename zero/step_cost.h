#pragma once
#include <cstdint>

#include "zero/flat_layout.h"
#include "zero/sharded_store.h"

namespace dstrain::zero {

/// What one rank does in one optimizer step, as far as the choice of a plan changes it.
struct StepWork {
  double flops = 0;          ///< of the units' forward and backward
  Bytes sent = 0;            ///< to other ranks, by collectives
  Bytes updated = 0;         ///< read and written by AdamW
  Bytes copied = 0;          ///< between the device and the host's memory
  Bytes swapped = 0;         ///< read from and written to NVMe
  Bytes swapped_beside = 0;  ///< of these, while backward computes
};

struct StepWorkInput {
  ShardedStore::Options store;
  double flops = 0;              ///< Model::flops() of a rank and micro step
  std::int64_t micro_steps = 1;  ///< of a step
  bool checkpointing = false;    ///< a second forward: a third more FLOP
};

/// Counts what StagePolicy and ShardedStore say is computed and moved.
StepWork step_work(const FlatLayout& layout, const StepWorkInput& input);

/// Predicted seconds of a step on the machine of the rates in step_cost.cpp. But for early updates
/// from a disk nothing is beside anything else: there communication is the cores' own work, and
/// overlap gained nothing. Only to compare the choices of one run with each other.
double step_cost(const StepWork& work);

}  // namespace dstrain::zero
