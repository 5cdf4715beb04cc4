#pragma once
#include "launcher/protocol/protocol.h"

namespace dstrain::launcher {

/// Notices that the kernel's OOM killer was at work, by counters anyone may read.
class OomWatch {
 public:
  OomWatch();
  /// For a process that SIGKILL ended: certain when the control group's counter rose since the last
  /// question, likely when only the machine's did, else possible.
  KillCause verdict();

 private:
  struct Counters {
    long long group = 0;
    long long machine = 0;
  };
  static Counters read();
  Counters before_;
};

}  // namespace dstrain::launcher
