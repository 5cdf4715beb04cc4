#pragma once
#include <memory>

#include "runtime/comm/control/control_group.h"
#include "runtime/comm/shm/segment.h"
#include "runtime/comm/split_plan.h"

namespace dstrain::comm {

/// The control group of ranks that share memory: processes of one node, or threads. Every rank
/// writes its value to its own slot and reads those of the others after a barrier; long values take
/// rounds of control_slot_bytes.
class SharedControlGroup final : public ControlGroup {
 public:
  /// Does not wait. Threads may share one `segment`.
  SharedControlGroup(std::shared_ptr<const Segment> segment, GroupBarrier::Options options);
  void agree(const Call& call) override;
  std::vector<std::string> exchange(const Call& call, std::string_view own) override;
  std::unique_ptr<ControlGroup> split(Communicator::Split split) override;
  void spread(const GroupFailure& failure) noexcept override { barrier_.spread(failure); }
  std::optional<GroupFailure> failure() override { return barrier_.failure(); }

  /// The memory of the group that split() makes.
  struct SplitMemory {
    SplitPlan plan;
    std::shared_ptr<const Segment> segment;
  };
  SplitMemory split_memory(Communicator::Split split);

 private:
  void show(std::string_view own, std::size_t at);
  std::size_t take(std::vector<std::string>& texts) const;

  std::shared_ptr<const Segment> segment_;
  double timeout_seconds_;
  GroupBarrier barrier_;
  std::uint32_t round_ = 0;
};

/// Makes the control groups of ranks that are threads of this process, in rank order; each is used
/// by one thread.
std::vector<std::unique_ptr<ControlGroup>> make_thread_control_groups(int size,
                                                                      double timeout_seconds = 600);

}  // namespace dstrain::comm
