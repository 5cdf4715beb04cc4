#pragma once
#include "runtime/comm/collective_observer.h"
#include "runtime/profile/timeline.h"
#include "runtime/rank/progress_page.h"

namespace dstrain::engine {

/// Records when each collective runs: in the timeline, on its communication lane and with the
/// device's times if it has some, and on the page that the agent reads.
class CollectiveRecords final : public comm::CollectiveObserver {
 public:
  /// Both must outlive it; a null one records nothing.
  CollectiveRecords(profile::Timeline* timeline, ProgressPage* progress)
      : timeline_(timeline), progress_(progress) {}
  void begin(const comm::Call& call) override;
  void end(const comm::Call& call) override;
  void launch(const comm::Call& call, StreamView stream) override;
  void launched(const comm::Call& call, StreamView stream) override;

 private:
  profile::Timeline* timeline_;
  ProgressPage* progress_;
  double begin_ = 0;                     ///< when the running operation began
  profile::Timeline::Stamp launch_ = 0;  ///< of the operation being launched
};

}  // namespace dstrain::engine
