#pragma once
#include "runtime/comm/call.h"

namespace dstrain::comm {

/// Is told when the operations of a communicator run, which is later than they are launched. The
/// calls come one at a time, where the operation runs. One that fails does not end.
class CollectiveObserver {
 public:
  virtual ~CollectiveObserver() = default;
  virtual void begin(const Call& call) = 0;
  virtual void end(const Call& call) = 0;
};

}  // namespace dstrain::comm
