#pragma once
#include "launcher/protocol/protocol.h"

namespace dstrain::launcher {

/// Notices kills by the kernel's OOM killer, from counters that every user may read.
class OomWatch {
 public:
  OomWatch();
  /// The verdict on a process that SIGKILL ended: certain if the control group's counter rose since
  /// the last call, likely if only the machine's did, else possible.
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
