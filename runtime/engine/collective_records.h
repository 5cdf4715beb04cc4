#pragma once
#include "runtime/base/progress_page.h"
#include "runtime/comm/collective_observer.h"
#include "runtime/profile/timeline.h"

namespace dstrain::engine {

/// Tells when each collective runs: the timeline, on its communication lane, and the page that the
/// agent reads.
class CollectiveRecords final : public comm::CollectiveObserver {
 public:
  /// Both must outlive it; null: is told nothing.
  CollectiveRecords(profile::Timeline* timeline, ProgressPage* progress)
      : timeline_(timeline), progress_(progress) {}
  void begin(const comm::Call& call) override;
  void end(const comm::Call& call) override;

 private:
  profile::Timeline* timeline_;
  ProgressPage* progress_;
  double begin_ = 0;  ///< of the operation that runs
};

}  // namespace dstrain::engine
