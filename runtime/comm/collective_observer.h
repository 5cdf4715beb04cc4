#pragma once
#include "runtime/comm/call.h"
#include "runtime/device/stream.h"

namespace dstrain::comm {

/// Observes when the operations of a communicator run, which is later than they are launched. The
/// calls come one at a time, where the operation runs. begin without end: the operation failed.
class CollectiveObserver {
 public:
  virtual ~CollectiveObserver() = default;
  virtual void begin(const Call& call) = 0;
  virtual void end(const Call& call) = 0;
  /// Called where an operation is launched on a stream of a device, before and after, for one
  /// operation after another. begin and end are called too, for the operation or for each part of
  /// it that the host runs.
  virtual void launch(const Call& /*call*/, StreamView /*stream*/) {}
  virtual void launched(const Call& /*call*/, StreamView /*stream*/) {}
};

}  // namespace dstrain::comm
