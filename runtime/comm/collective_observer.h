#pragma once
#include "runtime/comm/call.h"
#include "runtime/device/stream.h"

namespace dstrain::comm {

/// Is told when the operations of a communicator run, which is later than they are launched. The
/// calls come one at a time, where the operation runs. One that fails does not end.
class CollectiveObserver {
 public:
  virtual ~CollectiveObserver() = default;
  virtual void begin(const Call& call) = 0;
  virtual void end(const Call& call) = 0;
  /// A stream of a device is given an operation between these two calls, which come where that is
  /// launched, one operation after another. Of it, or of the parts that the host does of it, the
  /// other two tell as well.
  virtual void launch(const Call& /*call*/, StreamView /*stream*/) {}
  virtual void launched(const Call& /*call*/, StreamView /*stream*/) {}
};

}  // namespace dstrain::comm
