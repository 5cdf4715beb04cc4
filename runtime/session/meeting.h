#pragma once
#include <cstdint>
#include <vector>

#include "runtime/comm/control/control_group.h"

namespace dstrain::session {

/// The collective calls of the library.
enum class Call : std::int64_t {
  train_batch,
  forward_backward,
  step,
  evaluate,
  logits,
  save_checkpoint,
  load_checkpoint,
  save_pretrained,
  gathered_parameters,
  release,
  stop_requested,
  save_requested,
  barrier
};

/// What a rank tells the others of its call.
struct Share {
  static constexpr std::int64_t no_engine = -1;  ///< a call of the rank itself
  Call call{};
  std::int64_t engine = no_engine;
  std::int64_t told = 0;    ///< the labels that forward_backward() was told
  std::int64_t labels = 0;  ///< that count
  std::int64_t positions = 0;
  std::int64_t batches = 0;  ///< micro-batches that it fills, the last one not wholly
  std::int64_t refused = 0;  ///< 1: its batch does not fit
  std::int64_t asked = 0;    ///< 1: to stop, or to save
};

/// Returns what all ranks tell. Throws Error{usage} on every rank if their calls differ, and
/// Error{timeout} that names the call if one does not come.
std::vector<Share> meet(comm::ControlGroup& ranks, const Share& own);

}  // namespace dstrain::session
